//! Programs with threads print the same natively, under qemu-alpha and on the engine, in both builds,
//! not optimized and optimized, each time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SYSROOT: &str = "/usr/alpha-linux-gnu";
/// How often the engine runs each program: what depends on timing may show only now and then.
const RUNS: usize = 3;
/// Original and byte/word.
const BUILDS: [&[&str]; 2] = [&["-mcpu=ev5", "-mno-bwx"], &["-mcpu=ev56", "-mbwx"]];

struct Program {
    name: &'static str,
    /// What it is compiled with, and the library it loads.
    switches: &'static [&'static str],
    library: bool,
    /// Whether qemu-alpha can run it: it loses threads when a program with threads forks.
    qemu: bool,
}

impl Program {
    fn compile(&self, compiler: &str, switches: &[&str], directory: &Path) -> PathBuf {
        std::fs::create_dir(directory).unwrap();
        let (binary, library) = (directory.join("program"), directory.join("library.so"));
        self.run_compiler(compiler, switches, &binary);
        if self.library {
            let switches = [switches, &["-DLIBRARY", "-shared", "-fPIC"]].concat();
            self.run_compiler(compiler, &switches, &library);
        }
        binary
    }

    fn run_compiler(&self, compiler: &str, switches: &[&str], output: &Path) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/tests");
        let source = source.join(self.name).with_extension("c");
        let mut command = Command::new(compiler);
        command.args(switches).arg("-w").arg("-o").arg(output).arg(source).args(self.switches);
        let result = run(&mut command, compiler);
        assert!(result.status.success(), "{command:?}: {}", String::from_utf8_lossy(&result.stderr));
    }

    fn agrees(&self) {
        let directory = tempfile::tempdir().unwrap();
        let native = self.compile("cc", &["-O2"], &directory.path().join("native"));
        let expected = outcome(&mut Command::new(&native));
        for (build, mcpu) in BUILDS.iter().enumerate() {
            for level in ["-O0", "-O2"] {
                let switches = [*mcpu, &[level]].concat();
                let directory = directory.path().join(format!("{build}{level}"));
                let alpha = self.compile("alpha-linux-gnu-gcc", &switches, &directory);
                for time in 0..RUNS {
                    let found = outcome(Command::new(engine()).arg(&alpha));
                    assert_eq!(found, expected, "{} {switches:?}, run {time}", self.name);
                }
                if self.qemu {
                    let found = outcome(Command::new("qemu-alpha").args(["-L", SYSROOT]).arg(&alpha));
                    assert_eq!(found, expected, "{} {switches:?} under qemu-alpha", self.name);
                }
            }
        }
    }
}

/// The engine's program, which Cargo builds beside the tests.
fn engine() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let engine = test.ancestors().nth(2).unwrap().join("examples/run");
    let hint = "build the engine's program first: cargo build -p pathlength-engine --example run";
    assert!(engine.exists(), "{hint}");
    engine
}

fn run(command: &mut Command, what: &str) -> Output {
    command.output().unwrap_or_else(|error| panic!("{what} is needed for this test: {error}"))
}

/// What a program printed and how it ended; it is in the last argument's directory.
fn outcome(command: &mut Command) -> (String, Option<i32>) {
    let program = command.get_args().last().unwrap_or(command.get_program());
    let directory = Path::new(program).parent().unwrap().to_path_buf();
    let output = run(command.current_dir(directory).stdin(Stdio::null()), "the program");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

macro_rules! programs {
    ($($name:ident: $switches:expr, library $library:literal, qemu $qemu:literal;)*) => {
        $(#[test]
        fn $name() {
            let (switches, library, qemu) = (&$switches, $library, $qemu);
            Program { name: stringify!($name), switches, library, qemu }.agrees();
        })*
    };
}

programs! {
    threads: ["-pthread"], library false, qemu true;
    thread_signals: ["-pthread", "-lrt"], library false, qemu true;
    thread_library: ["-pthread", "-ldl"], library true, qemu true;
    thread_processes: ["-pthread"], library false, qemu false;
    thread_contention: ["-pthread"], library false, qemu true;
    thread_memory: ["-pthread"], library false, qemu true;
    thread_futexes: ["-pthread"], library false, qemu true;
}
