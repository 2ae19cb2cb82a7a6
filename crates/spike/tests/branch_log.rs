//! Patched images under qemu-alpha: what is reconstructed from their logs is what it executes of the originals, instruction for
//! instruction.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pathlength_spike::branch_log::log::LogHeader;
use pathlength_spike::branch_log::{
    LogImage, LoggedImage, PatchSummary, ReconstructedStep, Reconstruction, reconstruct,
};
use pathlength_spike::optimize;

/// A folder with an image, and its patched version.
struct Built {
    folder: tempfile::TempDir,
    capacity: u32,
}

fn compile(source: &str, switches: &[&str], capacity: u32) -> Built {
    let built = Built { folder: tempfile::tempdir().unwrap(), capacity };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut command = Command::new("alpha-linux-gnu-gcc");
    command.args(["-mcpu=ev56", "-pthread", "-w", "-Wl,--emit-relocs", "-fno-optimize-sibling-calls", "-o"]);
    command.arg(built.original()).arg(source).args(switches);
    let made = command.output().expect("the cross compiler is needed: run ./setup");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    built
}

impl Built {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn original(&self) -> PathBuf {
        self.path("original")
    }

    fn patched(&self) -> PathBuf {
        self.path("patched")
    }

    fn plan(&self) -> LogImage {
        LogImage::new(optimize::open(&self.original()).unwrap(), 0, self.capacity)
    }

    /// Makes the patched image, and an empty log.
    fn patch(&self, is_on: bool) -> PatchSummary {
        let mut plan = self.plan();
        let id = plan.hash(0).unwrap();
        let (image, switch) = plan.write(id, self.path("log").as_os_str().as_bytes()).unwrap();
        let header = LogHeader { id, switches: vec![switch], capacity: self.capacity };
        fs::write(self.patched(), image).unwrap();
        fs::set_permissions(self.patched(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(self.path("log"), header.empty_file(is_on)).unwrap();
        plan.summary()
    }

    /// The steps in the log.
    fn read(&self) -> (Reconstruction, Vec<ReconstructedStep>, LoggedImage) {
        let file = fs::read(self.path("log")).unwrap();
        let header = LogHeader::read(&file).unwrap();
        let program = optimize::open(&self.original()).unwrap();
        let images = [LoggedImage::new(self.plan(), program, header.switches[0]).unwrap()];
        let mut steps = Vec::new();
        let found = reconstruct(&images, &header, &file, |step| steps.push(step));
        let [image] = images;
        (found, steps, image)
    }

    /// The addresses of the instructions that qemu-alpha executes of the original image, as far as the patched one logs them.
    fn executed(&self, image: &LoggedImage, arguments: &[&str]) -> Vec<u64> {
        let log = self.path("executed");
        let mut command = Command::new("qemu-alpha");
        command.args(["-singlestep", "-d", "exec,nochain", "-D"]).arg(&log).arg(self.original());
        command.env("QEMU_LD_PREFIX", "/usr/alpha-linux-gnu").args(arguments).output().unwrap();
        // Each line has the address in the second field between brackets and slashes.
        let text = fs::read_to_string(log).unwrap();
        let address = |line: &str| u64::from_str_radix(line.split('/').nth(1)?, 16).ok();
        text.lines().filter_map(address).filter(|&address| image.logs(address)).collect()
    }
}

fn addresses(steps: &[ReconstructedStep]) -> Vec<u64> {
    steps.iter().flat_map(|step| (0..u64::from(step.instructions)).map(|n| step.address + 4 * n)).collect()
}

/// Where two sequences differ first, with what is around.
fn assert_same(found: &[u64], expected: &[u64]) {
    if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
        let around = |all: &[u64]| format!("{:x?}", &all[at.saturating_sub(6)..all.len().min(at + 6)]);
        panic!("differ at {at}:\n{}\n{}", around(found), around(expected));
    }
    let length = found.len().min(expected.len());
    assert_eq!(found.len(), expected.len(), "{:x?} {:x?}", &found[length - 4..], &expected[length - 4..]);
}

fn qemu(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("qemu-alpha");
    command.env("QEMU_LD_PREFIX", "/usr/alpha-linux-gnu").arg(program).args(arguments);
    command.output().expect("qemu-alpha is needed: run ./setup")
}

#[test]
fn the_log_has_every_instruction_of_the_patched_procedures() {
    for switches in [&["-O0"][..], &["-O1"], &["-Os"], &["-O2", "-mcpu=ev4"]] {
        let built = compile("counted.c", switches, 20);
        for way in ["", "e", "j"] {
            let summary = built.patch(true);
            assert!(summary.procedures > 5 && summary.record_points > 50, "{summary:?}");
            let (original, patched) = (qemu(&built.original(), &[way]), qemu(&built.patched(), &[way]));
            assert_eq!(patched, original, "{switches:?} {way}");
            let (found, steps, image) = built.read();
            assert_eq!((found.torn, found.foreign, found.interruptions), (0, 0, 0), "{switches:?} {way}");
            let expected = built.executed(&image, &[way]);
            assert!(expected.len() > 10_000);
            assert_same(&addresses(&steps), &expected);
        }
    }
}

/// How often a function was entered, of the original image.
fn entries(steps: &[ReconstructedStep], image: &LoggedImage, name: &str) -> usize {
    let program = image.program();
    let procedure = program.procedures.iter().find(|one| one.name == name).unwrap();
    // Callers in the image may skip the computation of the global pointer.
    let entry = program.second_entry(program.blocks[procedure.blocks[0] as usize].procedure);
    let entry = entry.unwrap_or(procedure.blocks[0]);
    steps.iter().filter(|step| step.block == entry).count()
}

/// What the program says of its functions, and what the log does.
fn check_entries(built: &Built, output: &Output) {
    let (found, steps, image) = built.read();
    assert_eq!((found.foreign, found.interruptions), (0, 0));
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (name, times) = line.split_once(' ').unwrap();
        assert_eq!(entries(&steps, &image, name), times.parse::<usize>().unwrap(), "{name}");
    }
}

#[test]
fn threads_are_told_apart() {
    let built = compile("counted.c", &["-O2"], 21);
    built.patch(true);
    check_entries(&built, &qemu(&built.patched(), &["t"]));
    let (_, steps, _) = built.read();
    let threads: std::collections::BTreeSet<u64> = steps.iter().map(|step| step.thread).collect();
    assert_eq!(threads.len(), 5);
}

/// Where registers are saved at the entry of a procedure, that of the stub which leads there must not be among them.
#[test]
fn procedures_beyond_the_reach_of_a_branch_are_logged() {
    let built = compile("far_calls.c", &["-O2"], 12);
    built.patch(true);
    // `br $28,.+4`, which the compiler does not write.
    let is_stub = |words: &[u8]| words.chunks_exact(4).any(|word| word == 0xc380_0000_u32.to_le_bytes());
    assert!(!is_stub(&fs::read(built.original()).unwrap()) && is_stub(&fs::read(built.patched()).unwrap()));
    check_entries(&built, &qemu(&built.patched(), &[]));
}

/// The kernel keeps what a killed program wrote.
#[test]
fn the_log_of_a_killed_program_is_complete() {
    let built = compile("counted.c", &["-O2"], 20);
    built.patch(true);
    let output = qemu(&built.patched(), &["k"]);
    assert_eq!(output.status.code(), None);
    check_entries(&built, &output);
}

#[test]
fn a_full_ring_has_the_last_records() {
    let (large, small) = (compile("counted.c", &["-O2"], 20), compile("counted.c", &["-O2"], 10));
    for built in [&large, &small] {
        built.patch(true);
        qemu(&built.patched(), &[""]);
    }
    let ((all, every, _), (last, steps, _)) = (large.read(), small.read());
    assert!(all.records > 1024);
    assert_eq!((last.records, last.torn, last.interruptions), (1024, 0, 0));
    let addresses = |steps: &[ReconstructedStep]| addresses(steps);
    let (every, last) = (addresses(&every), addresses(&steps));
    assert_eq!(every[every.len() - last.len()..], last);
}

#[test]
fn nothing_is_logged_while_it_is_off() {
    let built = compile("counted.c", &["-O2"], 12);
    built.patch(false);
    let output = qemu(&built.patched(), &[""]);
    assert_eq!(output, qemu(&built.original(), &[""]));
    assert_eq!(built.read().0, Reconstruction::default());
}

#[test]
fn programs_without_their_log_run_on() {
    let built = compile("counted.c", &["-O2"], 12);
    built.patch(true);
    let expected = qemu(&built.original(), &[""]).stdout;
    let good = fs::read(built.path("log")).unwrap();
    let mut foreign = good.clone();
    foreign[8] ^= 1;
    for damaged in [Some(good[..good.len() - 1].to_vec()), Some(foreign), Some(Vec::new()), None] {
        match &damaged {
            Some(bytes) => fs::write(built.path("log"), bytes).unwrap(),
            None => fs::remove_file(built.path("log")).unwrap(),
        }
        let output = qemu(&built.patched(), &[""]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("pathlength: ") && said.contains("this run is not logged"), "{said}");
        assert_eq!((output.status.code(), &output.stdout), (Some(0), &expected));
    }
}

/// Records of any content are read without a panic.
#[test]
fn random_records_are_reconstructed_to_something() {
    let built = compile("counted.c", &["-O2"], 12);
    built.patch(true);
    qemu(&built.patched(), &["t"]);
    let good = fs::read(built.path("log")).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..30 {
        let mut file = good.clone();
        for _ in 0..random.usize(1..2000) {
            let at = random.usize(8192..file.len());
            file[at] = random.u8(..);
        }
        // Whole records at other slots, too.
        for _ in 0..random.usize(0..200) {
            let [from, to] = [0; 2].map(|_| 8192 + 16 * random.usize(0..4096));
            let record: Vec<u8> = file[from..from + 16].to_vec();
            file[to..to + 16].copy_from_slice(&record);
        }
        fs::write(built.path("log"), file).unwrap();
        let (found, steps, _) = built.read();
        assert!(found.records == 4096 && steps.len() as u64 >= found.blocks);
    }
}
