//! Instrumented images under qemu-alpha: their counts are those that the programs know of themselves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pathlength_spike::counts;
use pathlength_spike::instrument::{self, InstrumentationPlan, Update};
use pathlength_spike::optimize;
use pathlength_spike::profile::matching::{self, Method};
use pathlength_spike::profile::{ImageProfile, ImageProfiles};
use pathlength_spike::program::{CodeExit, Program};

/// A folder with an image, and its instrumented version.
struct Built {
    folder: tempfile::TempDir,
    image: PathBuf,
}

fn compile(switches: &[&str]) -> Built {
    compile_source("counted.c", switches)
}

fn compile_source(source: &str, switches: &[&str]) -> Built {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("counted");
    let mut command = Command::new("alpha-linux-gnu-gcc");
    command
        .args(["-mcpu=ev56", "-pthread", "-Wl,--emit-relocs", "-fno-optimize-sibling-calls", "-o"])
        .arg(&image)
        .arg(source)
        .args(switches);
    let made = command.output().expect("the cross compiler is needed: run ./setup");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Built { folder, image }
}

impl Built {
    fn instrumented(&self) -> PathBuf {
        self.folder.path().join("counting")
    }

    fn counts(&self) -> PathBuf {
        self.folder.path().join("counts")
    }

    /// Makes the instrumented image, and a file without counts.
    fn instrument(&self) -> instrument::InstrumentationSummary {
        self.instrument_with(Update::Atomic)
    }

    fn instrument_with(&self, update: Update) -> instrument::InstrumentationSummary {
        let counts = self.counts();
        let path = std::os::unix::ffi::OsStrExt::as_bytes(counts.as_os_str());
        let made = instrument::instrument(optimize::open(&self.image).unwrap(), path, update).unwrap();
        fs::write(self.instrumented(), made.bytes).unwrap();
        fs::set_permissions(self.instrumented(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(counts, made.counts).unwrap();
        made.summary
    }

    fn profile(&self) -> Result<Program, String> {
        let mut program = optimize::open(&self.image).unwrap();
        let file = fs::read(self.counts()).unwrap();
        let plan =
            InstrumentationPlan::new(optimize::open(&self.image).unwrap(), counts::update(&file)).unwrap();
        plan.apply(&file, &mut program)?;
        Ok(program)
    }

    /// Runs the instrumented image, and checks that the counts are what it says itself.
    fn check(&self, way: &str, code: Option<i32>) -> Program {
        let output = run(&self.instrumented(), &[way]);
        assert_eq!(output.status.code(), code, "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let program = self.profile().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let (name, times) = line.split_once(' ').unwrap();
            assert_eq!(entries(&program, name), times.parse::<u64>().unwrap(), "{name} of {way:?}");
        }
        program
    }
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("qemu-alpha");
    command.env("QEMU_LD_PREFIX", "/usr/alpha-linux-gnu").arg(program).args(arguments);
    command.output().expect("qemu-alpha is needed: run ./setup")
}

/// How often a procedure was entered: by its first block, or by those who skip it.
fn entries(program: &Program, name: &str) -> u64 {
    let procedure = program.procedures.iter().find(|one| one.name == name).unwrap();
    // Only calls that skip the computation of the global pointer do not execute the first block.
    let count = |at: usize| program.blocks[procedure.blocks[at] as usize].count;
    let is_pair = program.blocks[procedure.blocks[0] as usize].instructions.len() == 2
        && matches!(program.blocks[procedure.blocks[0] as usize].exit, CodeExit::Next(_));
    if is_pair { count(1) } else { count(0) }
}

#[test]
fn counts_are_exact_however_the_program_ends() {
    let updates =
        [("-O0", Update::Atomic), ("-O1", Update::Single), ("-O2", Update::Atomic), ("-O2", Update::Single)];
    for (level, update) in updates.into_iter().chain([("-Os", Update::Atomic)]) {
        let built = compile(&[level]);
        for (way, code) in [(" ", Some(0)), ("e", Some(7)), ("j", Some(0)), ("k", None)] {
            built.instrument_with(update);
            let program = built.check(way, code);
            let deep = program.procedures.iter().find(|one| one.name == "deep").unwrap();
            let returns = deep.blocks.iter().map(|&block| &program.blocks[block as usize]);
            let is_return =
                |last: &pathlength_spike::program::LiftedInstruction| last.op() == Some(isa::Op::Ret);
            let returns: u64 = returns
                .filter(|block| block.instructions.last().is_some_and(is_return))
                .map(|block| block.count)
                .sum();
            assert_eq!(returns, if way == " " { 6 } else { 0 }, "{level} {way}");
        }
    }
}

#[test]
fn position_independent_programs_are_counted() {
    for switches in [["-O2", "-fPIE", "-pie"], ["-O2", "-mlarge-text", "-Wl,--no-relax"]] {
        let built = compile(&switches);
        built.instrument();
        built.check(" ", Some(0));
    }
}

/// A shared object maps its counts when it is initialised, before its constructors; it is called from outside only.
#[test]
fn shared_objects_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name);
    let sources = [
        (
            "twice.c",
            "int times; __attribute__((constructor)) void begin(void) { times = 1; } int twice(int n) { return n > 5 ? n * 2 : times; }",
        ),
        (
            "main.c",
            "int twice(int); int main(void) { int sum = 0; for (int i = 0; i < 1234; i++) sum += twice(i); return sum & 127; }",
        ),
    ];
    sources.iter().for_each(|(name, text)| fs::write(in_folder(name), text).unwrap());
    let gcc = |words: &str| {
        let mut command = Command::new("alpha-linux-gnu-gcc");
        command.current_dir(folder.path()).arg("-O2").args(words.split(' '));
        assert!(command.status().expect("the cross compiler is needed: run ./setup").success());
    };
    gcc("-fPIC -shared twice.c -o libtwice.so -Wl,--emit-relocs");
    gcc("main.c -o counted -L. -ltwice -Wl,-rpath,$ORIGIN");
    let program = in_folder("counted");
    let expected = run(&program, &[]).status.code();
    fs::rename(in_folder("libtwice.so"), in_folder("original.so")).unwrap();
    let counts = in_folder("counts");
    let path = std::os::unix::ffi::OsStrExt::as_bytes(counts.as_os_str());
    let open = || optimize::open(&in_folder("original.so")).unwrap();
    let made = instrument::instrument(open(), path, Update::Atomic).unwrap();
    fs::write(in_folder("libtwice.so"), made.bytes).unwrap();
    fs::write(&counts, made.counts).unwrap();
    assert_eq!(run(&program, &[]).status.code(), expected);
    let mut lifted = open();
    InstrumentationPlan::new(open(), Update::Atomic)
        .unwrap()
        .apply(&fs::read(&counts).unwrap(), &mut lifted)
        .unwrap();
    assert_eq!((entries(&lifted, "begin"), entries(&lifted, "twice")), (1, 1234));
}

/// Calls that reach farther than a branch go through a stub, which needs a register. Where code of counters saves registers
/// at the entry of the called procedure, that register must not be among them.
#[test]
fn procedures_beyond_the_reach_of_a_branch_are_counted() {
    let built = compile_source("far_calls.c", &["-O2"]);
    assert!(built.instrument().saved > 0);
    // `br $28,.+4`, which the compiler does not write: counters made the call too long for a branch.
    let is_stub = |words: &[u8]| words.chunks_exact(4).any(|word| word == 0xc380_0000_u32.to_le_bytes());
    assert!(!is_stub(&fs::read(&built.image).unwrap()) && is_stub(&fs::read(built.instrumented()).unwrap()));
    built.check("", Some(0));
}

#[test]
fn threads_and_processes_add_up() {
    let built = compile(&["-O2"]);
    built.instrument();
    let program = built.check("t", Some(0));
    assert_eq!(entries(&program, "work"), 81_000);
    built.instrument();
    run(&built.instrumented(), &["f"]);
    assert_eq!(entries(&built.profile().unwrap(), "work"), 2_500);
    // Eight processes at the same time.
    built.instrument();
    std::thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(|| run(&built.instrumented(), &[" "]))));
    assert_eq!(entries(&built.profile().unwrap(), "work"), 8_000);
}

#[test]
fn programs_without_their_counts_run_on() {
    let built = compile(&["-O2"]);
    built.instrument();
    let expected = run(&built.image, &[" "]).stdout;
    let good = fs::read(built.counts()).unwrap();
    let mut foreign = good.clone();
    foreign[8] ^= 1;
    for damaged in [Some(good[..good.len() - 1].to_vec()), Some(foreign), Some(Vec::new()), None] {
        match &damaged {
            Some(bytes) => fs::write(built.counts(), bytes).unwrap(),
            None => fs::remove_file(built.counts()).unwrap(),
        }
        let output = run(&built.instrumented(), &[" "]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("pathlength: ") && said.contains("this run is not counted"), "{said}");
        assert_eq!((output.status.code(), &output.stdout), (Some(0), &expected));
        if let Some(bytes) = damaged {
            assert_eq!(fs::read(built.counts()).unwrap(), bytes, "the file was changed");
            assert!(built.profile().is_err());
        }
    }
}

#[test]
fn code_grows_little() {
    let summary = compile(&["-O2"]).instrument();
    assert_eq!(summary.unmeasured, 0);
    assert!(summary.procedures > 5 && summary.block_counters > 10 && summary.jumps > 0, "{summary:?}");
}

#[test]
fn instrumented_images_are_refused() {
    let built = compile(&["-O2"]);
    built.instrument();
    let error = optimize::open(&built.instrumented()).unwrap_err().to_string();
    assert!(error.contains("was optimized or instrumented already"), "{error}");
}

fn image_profile(built: &Built) -> ImageProfile {
    let mut program = optimize::open(&built.image).unwrap();
    let plan = InstrumentationPlan::new(optimize::open(&built.image).unwrap(), Update::Atomic).unwrap();
    let calls = plan.apply(&fs::read(built.counts()).unwrap(), &mut program).unwrap();
    let profile = ImageProfiles::new(vec![ImageProfile::of(&program, "counted", &calls)]);
    // Through a file, as users do.
    let path = built.folder.path().join("profile");
    fs::write(&path, profile.encode()).unwrap();
    ImageProfiles::open(&path).unwrap().images.remove(0)
}

#[test]
fn profiles_of_older_builds_are_matched() {
    let old = compile(&["-O2"]);
    old.instrument();
    run(&old.instrumented(), &[" "]);
    let profile = image_profile(&old);
    // The same code at other addresses, since a procedure was added; and one that has changed.
    let new = compile(&["-O2", "-DADDED", "-DCHANGED"]);
    for method in [Method::Signatures, Method::Blocks] {
        let mut program = optimize::open(&new.image).unwrap();
        let (_, matched) = matching::apply(&profile, &mut program, method);
        assert_eq!(entries(&program, "even"), entries(&old.profile().unwrap(), "even"));
        match method {
            // A procedure whose graph has changed has no counts.
            Method::Signatures => {
                assert!(entries(&program, "work") == 0 && matched.share() < 0.9, "{matched:?}")
            }
            Method::Blocks => {
                assert!(entries(&program, "work") == 1_000 && matched.share() > 0.6, "{matched:?}")
            }
        }
    }
    // The same build: everything.
    let mut program = optimize::open(&old.image).unwrap();
    let (_, matched) = matching::apply(&profile, &mut program, Method::Blocks);
    assert_eq!((matched.blocks.0, matched.share()), (matched.blocks.1, 1.0));
    assert_eq!(ImageProfile::of(&program, "counted", &[]).procedures, {
        let mut expected = profile.procedures.clone();
        expected.iter_mut().for_each(|one| one.calls.clear());
        expected
    });
}
