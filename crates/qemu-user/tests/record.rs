//! Programs of x86-64 and AArch64 are recorded, and compared with the emulator's own log and with counts made by hand.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use events::record::{Entries, Entry, Execution, Mark, address_of_word};
use isa::InstructionDescription;
use pathlength_qemu_user::{ConvertedRun, EmulatedProgram, record};
use trace::Trace;

/// A program without a library: calls, recursion, loops, accesses of several sizes, a jump by a table, and a result.
const SOURCE: &str = r#"
static long table[64];
static unsigned char bytes[64];
__attribute__((noinline)) static long fibonacci(long n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__attribute__((noinline)) static void sort(long *from, int count) {
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && from[j - 1] > from[j]; j--) {
            long other = from[j];
            from[j] = from[j - 1], from[j - 1] = other;
        }
}
__attribute__((noinline)) static long choose(int n) {
    switch (n & 7) {
    case 0: return table[1]; case 1: return bytes[2]; case 2: return 7; case 3: return table[3] * 3;
    case 4: return -table[4]; case 5: return bytes[5] ^ 5; case 6: return n; default: return table[n];
    }
}
void _start(void) {
    for (int i = 0; i < 64; i++) table[i] = (i * 37) % 64, bytes[i] = i;
    sort(table, 64);
    long sum = fibonacci(12);
    for (int i = 0; i < 64; i++) sum += choose(i);
    asm volatile("syscall" : : "a"(60), "D"(sum & 63) : "memory");
}
"#;

struct Recorded {
    trace: Trace,
    converted: ConvertedRun,
    status: Option<i32>,
}

fn recorded(path: &Path, arguments: &[&str]) -> Recorded {
    let output = path.with_extension("trace");
    let arguments = arguments.iter().map(Into::into).collect();
    let program = EmulatedProgram { path: path.into(), arguments, sysroot: None };
    let (status, converted) = record(&program, &output).unwrap();
    Recorded { trace: Trace::open(&output).unwrap(), converted, status: status.code() }
}

/// Calls `consume` with each execution of a block, and returns the number of discontinuities.
fn executions(trace: &Trace, mut consume: impl FnMut(&events::Block, Execution)) -> usize {
    let (mut words, mut discontinuities) = (Vec::new(), 0);
    for chunk in 0..trace.chunks().len() {
        trace.read(chunk, &mut words).unwrap();
        for entry in Entries::new(&words, trace.shapes()) {
            match entry {
                Entry::Execution(one) => consume(&trace.blocks()[one.block as usize], one),
                Entry::Mark(mark) => discontinuities += usize::from(mark == Mark::Discontinuity),
            }
        }
    }
    discontinuities
}

fn compiled(folder: &Path, options: &[&str]) -> PathBuf {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    fs::write(&source, SOURCE).unwrap();
    let status = Command::new("cc").args(options).arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(status.success());
    program
}

/// The blocks that the emulator executed by its own log, in order: their addresses, and their numbers of instructions by its
/// disassembler.
fn logged(program: &Path) -> Vec<(u64, usize)> {
    let log = program.with_extension("log");
    let mut command = Command::new("qemu-x86_64");
    command.args(["-d", "nochain,exec,in_asm", "-D"]).arg(&log).arg(program).status().unwrap();
    let text = fs::read_to_string(log).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (mut blocks, mut sizes, mut disassembled) = (Vec::new(), HashMap::new(), Vec::new());
    for line in text.lines() {
        if let Some((address, text)) = line.strip_prefix("0x").and_then(|line| line.split_once(':')) {
            // The second line of a long instruction has its last bytes only.
            let is_instruction = text.split_whitespace().any(|word| word.len() != 2);
            disassembled.extend(is_instruction.then(|| number(address)));
        } else if let Some(&first) = disassembled.first() {
            sizes.insert(first, std::mem::take(&mut disassembled).len());
        }
        // Trace 0: 0x7fe550000100 [0000000000000000/00000000004014f0/1040c0b3/00000201] _start
        if line.starts_with("Trace") {
            let address = number(line.split('/').nth(1).unwrap());
            blocks.push((address, sizes[&address]));
        }
    }
    blocks
}

#[test]
#[cfg(target_arch = "x86_64")]
fn x86_64_is_recorded_as_the_emulator_logs_it() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        ["-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fcf-protection=none"];
    let program = compiled(folder.path(), &options);
    let Recorded { trace, converted, status } = recorded(&program, &[]);
    let native = Command::new(&program).status().unwrap();
    assert!(status.is_some() && status == native.code());

    let mut blocks = Vec::new();
    let mut instructions = 0;
    let discontinuities = executions(&trace, |block, _| {
        blocks.push((block.address, block.words.len()));
        instructions += block.words.len() as u64;
    });
    let log = logged(&program);
    assert_eq!(blocks.len(), log.len());
    assert!(blocks == log, "the trace differs from the emulator's log");
    assert!(instructions > 10_000 && converted.instructions == instructions);
    assert_eq!((discontinuities, converted.diversions, converted.omitted), (0, 0, 0));
    assert!(!converted.is_cut);

    // All code is the file's, and the functions are known.
    let names: Vec<_> = trace.functions().iter().map(|function| &function.name[..]).collect();
    for name in ["fibonacci", "sort", "choose", "_start"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let file = fs::read(&program).unwrap();
    for block in trace.blocks() {
        assert!(block.image == Some(0) && !block.code.is_empty());
        assert!(file.windows(block.code.len()).any(|window| window == block.code));
        assert_eq!(block.end() - block.address, block.code.len() as u64);
    }
    let report = trace::check::check(&trace);
    assert_eq!(report.violations, 0, "{:?}", report.listed);
    assert!(report.calls > 400 && report.calls == report.returns, "{} calls", report.calls);
}

/// A program of AArch64: a loop that calls a function five times, which loads a pair and stores a sum.
const AARCH64: [u32; 16] = [
    0xd280_0000, // mov x0, #0
    0x1000_0161, // adr x1, data
    0xd280_00a2, // mov x2, #5
    0x9400_0005, // loop: bl f
    0xf100_0442, // subs x2, x2, #1
    0x54ff_ffc1, // b.ne loop
    0xd280_0ba8, // mov x8, #93 (exit)
    0xd400_0001, // svc #0
    0xa940_1023, // f: ldp x3, x4, [x1]
    0x8b03_0000, // add x0, x0, x3
    0xf900_0820, // str x0, [x1, #16]
    0xd65f_03c0, // ret
    1,
    0,
    2,
    0, // data
];
/// Where it is loaded; the code is behind the headers.
const LOADED_AT: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;

/// A file with one segment that holds these words.
fn elf(machine: u16, words: &[u32]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves =
        |bytes: &mut Vec<u8>, all: &[u16]| bytes.extend(all.iter().flat_map(|one| one.to_le_bytes()));
    let longs = |bytes: &mut Vec<u8>, all: &[u64]| bytes.extend(all.iter().flat_map(|one| one.to_le_bytes()));
    halves(&mut bytes, &[2, machine, 1, 0]);
    longs(&mut bytes, &[LOADED_AT + HEADERS, 64, 0]);
    halves(&mut bytes, &[0, 0, 64, 56, 1, 0, 0, 0]);
    halves(&mut bytes, &[1, 0, 7, 0]);
    let size = HEADERS + 4 * words.len() as u64 + 64;
    longs(&mut bytes, &[0, LOADED_AT, LOADED_AT, size, size, 0x1000]);
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.resize(size as usize, 0);
    bytes
}

#[test]
fn aarch64_is_recorded_as_counted_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    fs::write(&program, elf(183, &AARCH64)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let Recorded { trace, converted, status } = recorded(&program, &[]);
    assert_eq!(status, Some(5));
    assert_eq!((converted.instructions, converted.accesses, converted.omitted), (3 + 5 * 7 + 2, 10, 0));

    let data = LOADED_AT + HEADERS + 12 * 4;
    let mut accesses = Vec::new();
    executions(&trace, |block, one| {
        let described = block.words.iter().filter_map(|&word| InstructionDescription::of_word(word));
        let shapes = described.flat_map(|one| one.accesses).flatten();
        let addresses = one.addresses.iter().map(|&word| address_of_word(word));
        accesses.extend(addresses.zip(shapes).map(|(at, one)| (at - data, one.size_shift, one.is_store)));
    });
    assert_eq!(accesses, [(0, 4, false), (16, 3, true)].repeat(5));
    let report = trace::check::check(&trace);
    assert_eq!(report.violations, 0, "{:?}", report.listed);
    assert_eq!((report.calls, report.returns), (5, 5));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn threads_forks_and_signals_of_a_real_program() {
    const PROGRAM: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sums[2];
static char text[300], copy[300];
static void *work(void *index) {
    for (int i = 0; i < 1000; i++) sums[(long)index] += i;
    return NULL;
}
static void handler(int number) { sums[0] += number; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)1);
    pthread_join(thread, NULL);
    work((void *)0);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    memset(text, 'x', sizeof text), memcpy(copy, text, sizeof text);
    if (fork() == 0) _exit(work((void *)0) != NULL);
    wait(NULL);
    return sums[0] == 499500 + SIGUSR1 && sums[1] == 499500 ? 3 : 4;
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&source, PROGRAM).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).status();
    assert!(compiled.unwrap().success());
    let Recorded { trace, converted, status } = recorded(&program, &[]);
    assert_eq!(status, Some(3));
    assert_eq!(trace.streams().len(), 2);
    assert!(!converted.is_cut);
    // To the handler, and back.
    assert_eq!(converted.diversions, 2);
    let work = |name: &str| trace.functions().iter().position(|function| function.name == name);
    let (number, mut entries) = (work("work").expect("work") as u32, 0);
    let start = trace.functions()[number as usize].address;
    let mut images = Vec::new();
    executions(&trace, |block, _| {
        entries += usize::from(block.address == start);
        images.extend(block.image.filter(|image| !images.contains(image)));
    });
    // The forked process is not recorded.
    assert_eq!(entries, 2);
    // The program, its dynamic linker and its library.
    assert_eq!(images.len(), 3);
    let report = trace::check::check(&trace);
    assert_eq!(report.violations, 0, "{:?}", report.listed);
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    let program = EmulatedProgram { path, arguments: Vec::new(), sysroot: None };
    let error = record(&program, &folder.path().join("trace")).unwrap_err().to_string();
    assert!(error.contains("x86_64, aarch64") && error.contains("a script"), "{error}");
    assert!(!folder.path().join("trace").exists());
    let alpha = folder.path().join("alpha");
    fs::write(&alpha, elf(0x9026, &[])).unwrap();
    let program = EmulatedProgram { path: alpha, arguments: Vec::new(), sysroot: None };
    let error = record(&program, &folder.path().join("trace")).unwrap_err().to_string();
    assert!(error.contains("pathlength trace -o FILE"), "{error}");
}
