//! Traces of a small stream, as the recorder would write it: marks, threads, images, and blocks that an exception cut.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use analysis::names::Names;
use analysis::replay::summary::{CondensedSummary, EXACT_TABLES, Summary, SummarySettings};
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use engine::Plan;
use events::record::{Entries, Entry, Mark, address_of_word};
use image::Image;
use pathlength_system::stream::StreamError;
use pathlength_system::{Converted, Error, GuestImages, INSTRUCTION_SET, PalEntry, Palcode, convert, count};
use table::Table;
use trace::{Header, RecordTimes, Trace, Writer};

const PAL: u64 = 0xffff_fc00_0000_0000;
const KERNEL: u64 = 0xffff_fc00_0031_0000;
const PROGRAM: u64 = 0x1_2000_0000;
/// Where the first process is, of which there is no image.
const INIT: u64 = 0x1_3000_0000;
const FAULT: u64 = PAL + 0x280;
const BEGIN: u32 = 0x23ff_504c;
const END: u32 = 0x23ff_504d;
const CALLSYS: u32 = 0x83;
const RTI: u32 = 0x3f;
const SWPCTX: u32 = 0x30;
const HW_RET: u32 = 0x7be8_8000;

/// Builds an image whose code begins at an address.
fn build(folder: &Path, name: &str, address: u64, assembler: &str) -> PathBuf {
    let (source, image) = (folder.join(name).with_extension("s"), folder.join(name));
    fs::write(&source, format!(".set noat\n.set noreorder\n.text\n{assembler}\n")).unwrap();
    let status = Command::new("alpha-linux-gnu-gcc")
        .args(["-nostdlib", "-nostartfiles", "-static", "-Wl,--build-id", "-o"])
        .arg(&image)
        .arg(format!("-Wl,-Ttext={address:#x}"))
        .arg(format!("-Wl,-Tdata={:#x}", address + 0x10_0000))
        .args(["-Wl,-N,--no-warn-rwx-segments", &format!("-Wl,-e,{address:#x}")])
        .arg(&source)
        .status();
    assert!(status.expect("the cross compiler, which ./setup installs").success());
    image
}

/// The images, in a folder.
fn guest(folder: &Path) -> GuestImages {
    let kernel = build(
        folder,
        "kernel",
        KERNEL,
        ".globl entSys\n.type entSys,@function\nentSys: ldq $27,0($5)\n jsr $26,($27)\n call_pal 0x3f\n.size entSys,.-entSys\n\
         .globl schedule\n.type schedule,@function\nschedule: lda $16,8($16)\n call_pal 0x30\n ret\n.size schedule,.-schedule\n\
         .data\n.globl sys_call_table\n.type sys_call_table,@object\nsys_call_table: .quad 0,0,0,0,0,0,0,0\n.size sys_call_table,64",
    );
    let program = build(
        folder,
        "program",
        PROGRAM,
        ".globl main\n.type main,@function\nmain: lda $16,8($31)\n lda $17,16($31)\n ldq $1,0($16)\n stq $1,8($17)\n call_pal 0x83\n\
         addq $1,1,$1\n ret\n.size main,.-main",
    );
    let path = build(folder, "palcode", PAL, ".fill 0x3000/4,4,0x7be88000");
    GuestImages { kernel, palcode: Palcode { path, code: PAL..PAL + 0x3000 }, programs: vec![program] }
}

/// A stream that is being made.
#[derive(Default)]
struct Stream {
    words: Vec<u64>,
    blocks: u64,
}

impl Stream {
    /// Enters a new block, with the addresses that it accesses.
    fn block(&mut self, address: u64, words: &[u32], accesses: &[u64]) -> &mut Stream {
        self.words.extend([2 << 62 | words.len() as u64, address]);
        let pairs =
            words.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(*pair.get(1).unwrap_or(&0)) << 32);
        self.words.extend(pairs);
        self.words.push(1 << 62 | self.blocks);
        self.words.extend_from_slice(accesses);
        self.blocks += 1;
        self
    }

    /// PALcode for a call switches to a thread.
    fn switch(&mut self, pid: u64, is_user: bool) -> &mut Stream {
        let name = u64::from_le_bytes(*b"thread\0\0");
        self.words.extend([
            2 << 62 | 1 << 56,
            PAL + 0x10_0000 * pid,
            pid << 32 | pid,
            name,
            0,
            is_user.into(),
        ]);
        self
    }

    /// PALcode: entered at an address, and left.
    fn pal(&mut self, entry: u64, accesses: &[u64]) -> &mut Stream {
        self.block(entry, &[HW_RET], accesses)
    }

    fn end(&mut self) -> Vec<u8> {
        self.words.push(2 << 62 | 3 << 56);
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// The program makes the system call with this number, which schedules another thread or does not.
fn example(guest: &GuestImages) -> Stream {
    let kernel = Image::open(&guest.kernel).unwrap();
    let table = kernel.symbol("sys_call_table").unwrap().address;
    let entry = |function| guest.palcode.entry(function);
    let words: Vec<u32> = {
        let program = Image::open(&guest.programs[0]).unwrap();
        program.instructions(&program.code()[0]).map(|(_, word)| word).collect()
    };
    let system_call = |stream: &mut Stream, number: u64| {
        stream.pal(entry(CALLSYS), &[]);
        stream.block(KERNEL, &[0xa765_0000, 0x6b5b_4000], &[table + 8 * number]);
    };
    let back = |stream: &mut Stream| {
        stream.block(KERNEL + 8, &[RTI], &[]).pal(entry(RTI), &[]);
    };
    let mut stream = Stream::default();
    // The first process calls execve, number 5 here.
    stream.switch(17, true).block(INIT, &[BEGIN, CALLSYS], &[]);
    system_call(&mut stream, 5);
    back(&mut stream);
    // The program's first load faults, and is repeated.
    stream.block(PROGRAM, &words[..5], &[]).pal(FAULT, &[]);
    back(&mut stream);
    stream.block(PROGRAM + 8, &words[2..5], &[0x8, 0x18]);
    system_call(&mut stream, 4);
    // Another thread of the kernel runs.
    let schedule = kernel.symbol("schedule").unwrap().address;
    stream.block(schedule, &[0x2210_0008, SWPCTX], &[]).pal(entry(SWPCTX), &[]).switch(3, false);
    stream.block(schedule + 8, &[0x6bfa_8001], &[]);
    stream.block(schedule, &[0x2210_0008, SWPCTX], &[]).pal(entry(SWPCTX), &[]).switch(17, true);
    stream.block(schedule + 8, &[0x6bfa_8001], &[]);
    back(&mut stream);
    stream.block(PROGRAM + 20, &words[5..], &[]).block(INIT + 64, &[END], &[]);
    stream
}

fn header(guest: &GuestImages) -> Header {
    Header {
        instruction_set: INSTRUCTION_SET.into(),
        palcode: Some((guest.palcode.code.start, guest.palcode.code.end)),
        ..Header::default()
    }
}

fn converted(guest: &GuestImages, stream: &[u8], path: &Path) -> Result<Converted, Error> {
    let header = header(guest);
    let _new = File::create(path).unwrap();
    convert(stream, guest, &Plan::default(), |process| {
        assert_eq!(process, 17);
        Writer::new(OpenOptions::new().append(true).open(path)?, &header)
    })
}

/// The records of a stream: blocks by address, number of instructions and accesses; and marks.
fn text(trace: &Trace, stream: u32) -> Vec<String> {
    let mut lines = Vec::new();
    for &chunk in trace.stream_chunks(stream) {
        let mut words = Vec::new();
        trace.read(chunk, &mut words).unwrap();
        for entry in Entries::new(&words, trace.shapes()) {
            lines.push(match entry {
                Entry::Mark(Mark::Order(_)) => continue,
                Entry::Mark(mark) => format!("{mark:?}"),
                Entry::Execution(execution) => {
                    let block = &trace.blocks()[execution.block as usize];
                    let function = trace.function_of(execution.block);
                    let name = function.map_or("?", |function| &trace.functions()[function as usize].name);
                    let addresses =
                        execution.addresses.iter().map(|&word| format!(" {:x}", address_of_word(word)));
                    let (address, length) = (block.address & 0xfff, block.words.len());
                    format!("{name} {address:x} {length}{}", addresses.collect::<String>())
                }
            });
        }
    }
    lines
}

#[test]
fn a_stream_becomes_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (guest, path) = (guest(folder.path()), folder.path().join("trace"));
    let stream = example(&guest).end();
    let converted = converted(&guest, &stream, &path).unwrap();
    assert_eq!((converted.unexplained, converted.partial), (0, 1), "{converted:?}");
    assert_eq!(converted.processes, [(17, "thread".to_owned()), (2, "kernel".to_owned())]);
    let trace = Trace::open(&path).unwrap();
    assert!(trace.problems().is_empty(), "{:?}", trace.problems());
    let report = trace::check::check(&trace);
    assert_eq!((report.violations, report.instructions), (0, converted.instructions), "{:?}", report.listed);
    let table = Image::open(&guest.kernel).unwrap().symbol("sys_call_table").unwrap().address;
    let call = format!("entSys 0 2 {:x}", table + 32);
    let program = [
        // Two instructions come before the load that faults.
        "main 0 2",
        "Exception(PageFault)",
        "? 280 1",
        "PalReturn",
        "entSys 8 1",
        "PalCall(63)",
        "? fc0 1",
        "PalReturn",
        "main 8 3 8 18",
        "SystemCall(4)",
        "PalCall(131)",
        "? 0c0 1",
        "PalReturn",
        &call,
        "schedule c 2",
        "PalCall(48)",
        "? c00 1",
        "PalReturn",
        "schedule 14 1",
        "entSys 8 1",
        "PalCall(63)",
        "? fc0 1",
        "PalReturn",
        "main 14 2",
    ];
    let program = program.map(|line| line.replace("? 0c0", "? c0"));
    assert_eq!(text(&trace, 0), program);
    assert_eq!(text(&trace, 1), ["Gap", "schedule 14 1", "schedule c 2", "PalCall(48)", "? c00 1"]);
    let images: Vec<_> = trace.images().iter().map(|image| image.path.clone()).collect();
    assert!(images.contains(&guest.programs[0]) && images.contains(&guest.kernel));
}

/// ldl_l t0,0(t1); stl_c t0,0(t1); bne; in the kernel between them an interrupt locks another address.
#[test]
fn an_interrupt_has_a_lock_of_its_own() {
    const INTERRUPT: u64 = PAL + 0x180;
    const LOAD: u32 = 0xa822_0000;
    const STORE: u32 = 0xb822_0000;
    const NOP: u32 = 0x47ff_041f;
    let folder = tempfile::tempdir().unwrap();
    let (guest, path) = (guest(folder.path()), folder.path().join("trace"));
    let entry = |function| guest.palcode.entry(function);
    let kernel = Image::open(&guest.kernel).unwrap();
    let table = kernel.symbol("sys_call_table").unwrap().address;
    let mut stream = Stream::default();
    stream.switch(17, true).block(INIT, &[BEGIN, CALLSYS], &[]).pal(entry(CALLSYS), &[]);
    stream.block(KERNEL, &[0xa765_0000, 0x6b5b_4000], &[table + 40]);
    stream.block(KERNEL + 8, &[RTI], &[]).pal(entry(RTI), &[]);
    // The program's own lock, which its system call does not change.
    stream.block(PROGRAM, &[LOAD, CALLSYS], &[0x1000]).pal(entry(CALLSYS), &[]);
    stream.block(KERNEL, &[0xa765_0000, 0x6b5b_4000], &[table + 40]);
    stream.block(KERNEL + 0x100, &[LOAD], &[0x2000]).pal(INTERRUPT, &[]);
    stream.block(KERNEL + 0x200, &[LOAD, NOP, RTI], &[0x3000]).pal(entry(RTI), &[]);
    stream.block(KERNEL + 0x104, &[STORE, RTI], &[]).pal(entry(RTI), &[]);
    stream.block(PROGRAM + 8, &[STORE], &[]).block(INIT + 64, &[END], &[]);
    converted(&guest, &stream.end(), &path).unwrap();
    let trace = Trace::open(&path).unwrap();
    let lines = text(&trace, 0);
    for expected in [" 104 2 2000", " 8 1 1000"] {
        assert!(lines.iter().any(|line| line.ends_with(expected)), "{expected}: {lines:?}");
    }
}

#[test]
fn order_marks_stand_where_threads_are_switched() {
    let folder = tempfile::tempdir().unwrap();
    let (guest, path) = (guest(folder.path()), folder.path().join("trace"));
    converted(&guest, &example(&guest).end(), &path).unwrap();
    let trace = Trace::open(&path).unwrap();
    let (mut runs, mut streams) = (trace.ordered(), Vec::new());
    while let Some(run) = runs.next_run().unwrap() {
        streams.push(run.stream);
    }
    assert_eq!(streams, [0, 1, 0]);
}

#[test]
fn streams_that_end_early_or_are_damaged_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (guest, path) = (guest(folder.path()), folder.path().join("trace"));
    let stream = example(&guest).end();
    let mut seen = 0;
    for length in (0..stream.len()).step_by(8) {
        let result = converted(&guest, &stream[..length], &path);
        assert!(matches!(result, Err(Error::Stream(StreamError::Incomplete))), "{length}: {result:?}");
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
    // No damage makes the converter panic.
    let mut random = fastrand::Rng::with_seed(3);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut damaged = stream.clone();
        let at = random.usize(..damaged.len());
        damaged[at] ^= 1 << random.u32(..8);
        refused += u32::from(converted_quietly(&guest, &damaged, &path).is_err());
    }
    assert!(refused > 100, "{refused}");
    let never = Stream::default().switch(1, true).block(INIT, &[CALLSYS], &[]).end();
    assert!(matches!(converted(&guest, &never, &path), Err(Error::NotStarted)));
}

/// As [`converted`], whatever process begins.
fn converted_quietly(guest: &GuestImages, stream: &[u8], path: &Path) -> Result<Converted, Error> {
    let header = Header { instruction_set: INSTRUCTION_SET.into(), ..Header::default() };
    let _new = File::create(path).unwrap();
    convert(stream, guest, &Plan::default(), |_| {
        Writer::new(OpenOptions::new().append(true).open(path)?, &header)
    })
}

/// The tables of a trace that counts have, too.
fn tables(path: &Path, times: Option<RecordTimes>) -> Vec<Table> {
    let trace = Trace::open(path).unwrap();
    let names = Names::of_trace(&trace);
    let (dictionary, accesses) = (Dictionary::new(&trace, &names), Accesses::new(&trace));
    let filter = Filter::new(&Selection::default(), &dictionary).unwrap();
    let order = ReplayOrder::Time;
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order };
    let settings = SummarySettings { line_sizes: Vec::new(), page_sizes: Vec::new(), window: 1 };
    let mut summary = Summary::new(&dictionary, &accesses, settings);
    let summary = match times {
        Some(times) => {
            let mut condensed = CondensedSummary::new(summary, times);
            assert!(replay.run(&mut condensed, &mut |_| {}).unwrap().is_empty());
            condensed.into_summary()
        }
        None => {
            assert!(replay.run(&mut summary, &mut |_| {}).unwrap().is_empty());
            summary
        }
    };
    let mut tables = summary.tables(&|number| number.to_string());
    tables.retain(|table| EXACT_TABLES.contains(&table.name.as_str()));
    assert_eq!(tables.len(), EXACT_TABLES.len());
    tables
}

/// What the recorder writes if addresses are not wanted: numbers of accesses, but for blocks of the kernel's entry.
fn without_addresses(stream: &Stream) -> Vec<u8> {
    let mut words = stream.words.iter().copied().peekable();
    let (mut counted, mut defined, mut accesses) = (Vec::new(), Vec::new(), 0);
    while let Some(word) = words.next() {
        match word >> 62 {
            2 => {
                counted.push(word);
                let more = match word >> 56 & 0x3f {
                    0 => {
                        defined.push(*words.peek().unwrap());
                        1 + (word & 0xffff_ffff).div_ceil(2)
                    }
                    1 => 5,
                    _ => 0,
                };
                counted.extend(words.by_ref().take(more as usize));
            }
            1 => {
                counted.push(word | accesses << 48);
                accesses = 0;
                if defined[word as u32 as usize] == KERNEL {
                    while let Some(address) = words.next_if(|next| !(1..=2).contains(&(next >> 62))) {
                        counted.push(address);
                    }
                }
            }
            _ => accesses += 1,
        }
    }
    counted.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn counts_are_those_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (guest, path) = (guest(folder.path()), folder.path().join("trace"));
    let mut stream = example(&guest);
    let bytes = stream.end();
    let traced = converted(&guest, &bytes, &path).unwrap();
    let of_trace = tables(&path, None);
    for (name, bytes) in [("with", bytes), ("without", without_addresses(&stream))] {
        let path = folder.path().join(name);
        let _new = File::create(&path).unwrap();
        let open = |_| Writer::new(OpenOptions::new().append(true).open(&path)?, &header(&guest));
        let counted = count(&bytes[..], &guest, open).unwrap();
        assert_eq!(tables(&path, Some(counted.times.clone())), of_trace, "{name} addresses");
        assert_eq!(Converted { times: RecordTimes::new(), ..counted }, traced);
    }
    let calls = of_trace.iter().find(|table| table.name == "system-call-costs").unwrap();
    assert_eq!(calls.rows.len(), 2, "{calls:?}");
}

#[test]
fn a_transfer_that_nothing_explains_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (guest, path) = (guest(folder.path()), folder.path().join("trace"));
    let mut stream = example(&guest);
    // After the program's last block another one, to which `ret` may go, and one that it does not branch to.
    let words = stream.words.len() - 4;
    stream.words.truncate(words);
    stream.blocks -= 1;
    stream.block(PROGRAM, &[0x47ff_041f], &[]).block(PROGRAM + 64, &[0x47ff_041f], &[]);
    let stream = stream.block(INIT, &[END], &[]).end();
    let converted = converted(&guest, &stream, &path).unwrap();
    assert_eq!(converted.listed, [(PROGRAM, PROGRAM + 64), (PROGRAM + 64, INIT)]);
    assert_eq!(
        guest.palcode.entered_at(FAULT),
        Some(PalEntry::Exception(events::record::ExceptionKind::PageFault))
    );
}
