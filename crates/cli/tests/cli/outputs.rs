//! Outputs never replace inputs, and an existing file stays unchanged until the command succeeds.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trace::Trace;

use crate::support::{Outcome, guest, listing, outcome, pathlength};

/// A folder with a program, a file that it is given, a trace and a machine.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::copy(guest("ev5/modes"), folder.path("prog")).unwrap();
        fs::write(folder.path("in.txt"), "in").unwrap();
        fs::copy(guest("ev5/modes"), folder.path("other")).unwrap();
        folder.run("trace -o t ./prog work").quiet_success();
        let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/machines");
        fs::copy(machines.join("dec3000.toml"), folder.path("mine.toml")).unwrap();
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn run(&self, words: &str) -> Outcome {
        let mut command = pathlength(words.split_whitespace());
        command.current_dir(&self.0);
        outcome(command)
    }

    /// The names of all files.
    pub fn listing(&self) -> Vec<String> {
        listing(self.0.path())
    }

    /// All files with their contents.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let read = |name: String| fs::read(self.path(&name)).map(|bytes| (name, bytes)).ok();
        self.listing().into_iter().filter_map(read).collect()
    }
}

/// Outputs that are inputs.
const INPUTS: [&str; 24] = [
    "trace -o prog ./prog work",
    "trace -o ./../$/prog prog work",
    "trace -o in.txt ./prog work in.txt",
    "trace -o in.txt ./prog work --file=in.txt",
    "trace -o link ./prog work",
    "trace -o prog link work",
    "trace -o hard ./prog work",
    "trace -o /proc/self/cwd/prog ./prog work",
    "count -o prog ./prog work",
    "count --by image -o in.txt ./prog work in.txt",
    "compare -o other ./prog ./other -- work",
    "compare -o in.txt ./prog ./other -- work in.txt",
    "static prog -o prog",
    "static prog --against other -o other",
    "show t -o t",
    "show t --as addresses -o t",
    "export t --to din -o t",
    "export t --to callgrind -o t",
    "check t -o t",
    "caches --machine mine.toml -o mine.toml t",
    "time --machine mine.toml -o mine.toml ./prog work",
    "strides -o t t",
    "annotate --function main --event misses --machine mine.toml -o mine.toml t",
    "count --by image -o t t",
];

#[test]
fn inputs_are_not_overwritten() {
    let folder = Folder::new();
    symlink("prog", folder.path("link")).unwrap();
    fs::hard_link(folder.path("prog"), folder.path("hard")).unwrap();
    let before = folder.contents();
    let name = folder.0.path().file_name().unwrap().to_str().unwrap();
    for words in INPUTS {
        let outcome = folder.run(&words.replace('$', name));
        // Nothing ran.
        assert_eq!(outcome.stdout, "", "{words}");
        let failure = outcome.failure();
        assert!(failure.contains("this command reads it"), "{words}: {failure}");
        assert!(failure.contains("name another file with -o"), "{words}: {failure}");
        assert_eq!(folder.contents(), before, "{words}");
    }
    // As standard output's file, too.
    let appending =
        format!("exec {} export t --to din -o /dev/stdout >> t", env!("CARGO_BIN_EXE_pathlength"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &appending]).current_dir(&folder.0);
    assert!(outcome(shell).failure().contains("this command reads it as t"));
    assert_eq!(folder.contents(), before);
}

/// Where a directory is named, its files count.
#[test]
fn inputs_in_the_directory_of_tables_are_not_overwritten() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tables")).unwrap();
    fs::rename(folder.path("t"), folder.path("tables/instructions.parquet")).unwrap();
    let before = fs::read(folder.path("tables/instructions.parquet")).unwrap();
    let failure = folder.run("export tables/instructions.parquet --to parquet -o tables").failure();
    assert!(failure.contains("cannot write tables/instructions.parquet: this command reads it"), "{failure}");
    assert_eq!(fs::read(folder.path("tables/instructions.parquet")).unwrap(), before);
    fs::rename(folder.path("prog"), folder.path("tables/images.csv")).unwrap();
    let failure = folder.run("count --format csv -o tables tables/images.csv work").failure_after("38000\n");
    assert!(failure.contains("cannot write tables/images.csv: this command reads it"), "{failure}");
    assert!(Trace::open(&folder.path("tables/images.csv")).is_err());
    assert!(folder.run("run tables/images.csv work").quiet_success() == "38000\n");
}

/// Libraries are inputs, too, and the images of a trace, whose names are shown.
#[test]
fn images_are_not_overwritten() {
    let folder = Folder::new();
    for name in ["halves", "libhalf.so"] {
        fs::copy(guest("ev5").join(name), folder.path(name)).unwrap();
    }
    folder.run("trace -o halves.trace ./halves").quiet_success();
    let before = folder.contents();
    for words in [
        "trace -o libhalf.so ./halves",
        "count --by group -o libhalf.so ./halves",
        "caches -o libhalf.so ./halves",
        "strides -o libhalf.so ./halves",
        "show halves.trace --table functions -o libhalf.so",
        "export halves.trace --to callgrind -o halves",
        "time halves.trace -o libhalf.so",
    ] {
        let failure = folder.run(words).failure();
        assert!(failure.contains("this command reads it"), "{words}: {failure}");
        assert_eq!(folder.contents(), before, "{words}");
    }
}

/// A trace that fails before anything is recorded leaves the existing file.
#[test]
fn what_was_there_stays_until_something_is_recorded() {
    let folder = Folder::new();
    let before = folder.contents();
    for (words, problem) in [
        ("trace -o t --unit wrok ./prog work", "did you mean work?"),
        ("trace -o t --from never ./prog work", "control never came to never"),
        ("trace -o t --unit work --skip 1000 ./prog work", "was called 200 times"),
        ("trace -o t ./missing", "missing"),
        ("trace -o t mine.toml", "mine.toml"),
    ] {
        let outcome = folder.run(words);
        assert!(outcome.code() == 1 && outcome.stderr.contains(problem), "{words}: {}", outcome.stderr);
        assert_eq!(folder.contents(), before, "{words}");
    }
}

#[test]
fn a_trace_keeps_the_links_and_the_permissions_of_the_file_it_replaces() {
    let folder = Folder::new();
    fs::set_permissions(folder.path("t"), fs::Permissions::from_mode(0o640)).unwrap();
    let inode = |name| fs::metadata(folder.path(name)).unwrap().ino();
    let before = inode("t");
    symlink("t", folder.path("link")).unwrap();
    symlink("new", folder.path("dangling")).unwrap();
    for (link, file) in [("link", "t"), ("dangling", "new")] {
        folder.run(&format!("trace -o {link} --unit work --units 1 ./prog work")).quiet_success();
        assert!(folder.path(link).is_symlink() && !folder.path(file).is_symlink());
        assert_eq!(Trace::open(&folder.path(file)).unwrap().header().unit.as_deref(), Some("work"));
    }
    assert_eq!(fs::metadata(folder.path("t")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_ne!(inode("t"), before);
    assert_eq!(
        listing(folder.0.path()),
        ["dangling", "in.txt", "link", "mine.toml", "new", "other", "prog", "t"]
    );
    // The program may go elsewhere.
    folder.run("trace -o t ./prog elsewhere").quiet_success();
    assert_eq!(Trace::open(&folder.path("t")).unwrap().header().unit, None);
}

/// Commands that write a file or a folder, the same each time.
const KILLED: [&str; 3] = [
    "count --children --by function --format csv -o out ./prog work",
    "show t --as addresses --format csv -o out",
    "export t --to parquet -o out",
];

/// A file's contents, or those of a folder's files with their names.
fn written(out: &Path) -> Vec<(String, Vec<u8>)> {
    match out.is_dir() {
        true => {
            listing(out).into_iter().map(|name| (name.clone(), fs::read(out.join(name)).unwrap())).collect()
        }
        false => vec![(String::new(), fs::read(out).unwrap())],
    }
}

fn remove(out: &Path) {
    let _ = if out.is_dir() { fs::remove_dir_all(out) } else { fs::remove_file(out) };
}

#[test]
fn a_killed_command_leaves_nothing_incomplete() {
    let folder = Folder::new();
    let temporary = tempfile::tempdir().unwrap();
    let command = |words: &str| {
        let mut command = pathlength(words.split_whitespace());
        command.current_dir(&folder.0).env("TMPDIR", temporary.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut before = listing(folder.0.path());
    before.push("out".into());
    let out = folder.path("out");
    let mut killed_before_the_end = 0;
    for words in KILLED {
        remove(&out);
        let began = Instant::now();
        assert!(command(words).status().unwrap().success(), "{words}");
        let lasts = began.elapsed();
        let complete = written(&out);
        const MOMENTS: u32 = 8;
        for moment in 0..MOMENTS {
            remove(&out);
            let mut child = command(words).spawn().unwrap();
            sleep(lasts * moment / MOMENTS);
            let _ = child.kill();
            child.wait().unwrap();
            killed_before_the_end += u32::from(!out.exists());
            assert!(!out.exists() || written(&out) == complete, "{words} {moment}");
            let unknown = |name: &String| !before.contains(name) && !name.starts_with(".pathlength-");
            assert_eq!(listing(folder.0.path()).into_iter().find(unknown), None, "{words}");
        }
    }
    assert!(killed_before_the_end > 10, "{killed_before_the_end}");
    // What had a name nevertheless is removed by the next command, after a while.
    let later = std::time::SystemTime::now() - Duration::from_secs(60);
    for place in [folder.0.path(), temporary.path()] {
        for name in listing(place) {
            fs::File::open(place.join(name)).unwrap().set_modified(later).unwrap();
        }
    }
    for words in KILLED {
        remove(&out);
        assert!(command(words).status().unwrap().success());
    }
    assert_eq!(listing(temporary.path()), [""; 0]);
    let mut left = listing(folder.0.path());
    left.retain(|name| !before.contains(name));
    assert_eq!(left, [""; 0]);
}
