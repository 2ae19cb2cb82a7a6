//! Programs with flipped bits and missing ends: an error, or a program that runs in its own way, but
//! never a panic and never a hang.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use crate::support::{ends_within, file, guest, listing, pathlength, text};

/// Pseudo-random numbers (Steele et al., SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

/// Flips up to 16 bits, most of them in the headers and near the beginning, or cuts the end off.
fn damage(image: &mut Vec<u8>, seed: u64) {
    let mut random = Random(seed);
    if random.below(8) == 0 {
        image.truncate(random.below(image.len()));
        return;
    }
    for _ in 0..[1, 1, 2, 4, 16][random.below(5)] {
        let reach = [64, 512, 4096, image.len()][random.below(4)];
        image[random.below(reach)] ^= 1 << random.below(8);
    }
}

fn write_program(path: &Path, image: &[u8]) {
    fs::write(path, image).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a damaged program; whether it ended as the whole one does.
fn check(folder: &Path, image: &[u8], seed: u64) -> bool {
    let words = [&["run"][..], &["count", "--by", "function"], &["static"]][seed as usize % 3];
    let program = folder.join("program");
    let mut damaged = image.to_vec();
    damage(&mut damaged, seed);
    write_program(&program, &damaged);
    let mut command = pathlength(words);
    let stderr = file();
    command.arg("./program").current_dir(folder).stdout(file()).stderr(stderr.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let status = ends_within(&mut child, Duration::from_secs(4)).or_else(|| {
        // A guest may loop for ever. It then ends by this signal, but a hang of ours does not.
        // SAFETY: the child has not been waited for, so the number is its own.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        ends_within(&mut child, Duration::from_secs(30))
    });
    let Some(status) = status else {
        child.kill().unwrap();
        panic!("{words:?}, seed {seed}: hangs");
    };
    let said = text(&stderr);
    assert!(!said.contains("panicked"), "{words:?}, seed {seed}: {said}");
    assert!(is_orderly(words[0], status, &said), "{words:?}, seed {seed}: {status}, {said}");
    assert_eq!(listing(folder), ["program"], "{words:?}, seed {seed}");
    status.success() && said.is_empty()
}

/// A regular end: only a signal of the guest ends `run`, and its crash is reported.
fn is_orderly(command: &str, status: ExitStatus, said: &str) -> bool {
    match (command, status.code(), status.signal()) {
        ("run", Some(_), _) | (_, Some(0 | 1), _) => true,
        ("run" | "count", _, Some(libc::SIGINT)) => true,
        ("run", _, Some(_)) => said.contains("the program was ended by"),
        _ => false,
    }
}

#[test]
fn damaged_programs_neither_panic_nor_hang() {
    const THREADS: u64 = 4;
    const PROGRAMS: u64 = 240;
    let image = fs::read(guest("ev56/tiny")).unwrap();
    let unharmed: usize = thread::scope(|scope| {
        let part = |thread| {
            let folder = tempfile::tempdir().unwrap();
            let own = (0..PROGRAMS).filter(|seed| seed % THREADS == thread);
            own.filter(|seed| check(folder.path(), &image, *seed)).count()
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || part(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // Some damage is in parts that are not read, but most is not.
    assert!((5..PROGRAMS as usize / 2).contains(&unharmed), "{unharmed} of {PROGRAMS} are unharmed");
}

/// What runs a program needs the program headers alone.
#[test]
fn damaged_section_headers_stop_no_program() {
    let good = fs::read(guest("ev56/tiny")).unwrap();
    let table = u64::from_le_bytes(good[0x28..0x30].try_into().unwrap()) as usize;
    // The table beyond the file, entries of an impossible size, no table of names, a section beyond the file;
    // and no table at all, the file cut off before it.
    let damages: [(usize, &[u8]); 4] =
        [(0x28, &[0xff; 8]), (0x3a, &[1, 0]), (0x3e, &[0xfe, 0xfe]), (table + 64 + 0x18, &[0xff; 8])];
    let damaged = damages.map(|(at, new)| {
        let mut bytes = good.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    });
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let output = |image: &[u8], command: &str| {
        write_program(&program, image);
        let mut words: Vec<_> = command.split(' ').map(String::from).collect();
        words.push(program.display().to_string());
        let output = pathlength(words).current_dir(folder.path()).output().unwrap();
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    let expected = output(&good, "run");
    for image in damaged.iter().map(Vec::as_slice).chain([&good[..table]]) {
        for command in ["run", "count -o counts", "trace -o trace"] {
            let (status, stdout, said) = output(image, command);
            assert_eq!((status, stdout), (expected.0, expected.1.clone()), "{command}: {said}");
            assert!(said.lines().all(|line| !line.contains("panicked")), "{said}");
        }
        let names_nothing = output(image, "static").2;
        let runs = output(image, "run").2;
        assert_eq!(runs.is_empty(), names_nothing.is_empty(), "{runs}{names_nothing}");
    }
}
