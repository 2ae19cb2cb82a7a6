//! Images that cannot be rewritten: a clear message for each, and never a panic.

use std::path::{Path, PathBuf};
use std::process::Command;

use pathlength_spike::elf::Elf;
use pathlength_spike::{layout, lift, optimize, output};
use tempfile::TempDir;

const SOURCE: &str = r#"
#include <stdio.h>
int main(int count, char **arguments) {
    switch (count) {
    case 1: puts("one"); break;
    case 2: puts(arguments[1]); break;
    case 3: return 9;
    case 4: puts("four"); return 1;
    case 5: return 5;
    }
    return count;
}
"#;

struct Images {
    directory: TempDir,
}

impl Images {
    fn new() -> Images {
        let images = Images { directory: tempfile::tempdir().unwrap() };
        std::fs::write(images.path("image.c"), SOURCE).unwrap();
        images
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, command: &str, arguments: &[&str]) {
        let mut command = Command::new(command);
        let output = command.args(arguments).current_dir(&self.directory).output();
        let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn build(&self, name: &str, switches: &[&str]) -> PathBuf {
        let arguments = [&["-O2", "-g", "image.c", "-o", name], switches].concat();
        self.run("alpha-linux-gnu-gcc", &arguments);
        self.path(name)
    }
}

fn refusal(path: &Path) -> String {
    match optimize::open(path) {
        Ok(_) => panic!("{} was accepted", path.display()),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(path: &Path, expected: &[&str]) {
    let message = refusal(path);
    assert!(expected.iter().all(|text| message.contains(text)), "{message:?} does not say {expected:?}");
    assert!(message.starts_with(path.to_str().unwrap()), "{message:?} does not begin with the path");
}

/// An image as packers write it: the ELF header, two program headers, and a segment whose stub at the entry unpacks the rest.
fn packed(image: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x1_2000_0000;
    let mut stub = [0x47ff_041fu32.to_le_bytes(); 16].concat();
    stub.extend_from_slice(b"UPX!");
    stub.extend(image.iter().map(|byte| byte.rotate_left(3) ^ 0x5a));
    let header = 64 + 2 * 56;
    let size = (header + stub.len()) as u64;
    let mut bytes = image[..64].to_vec();
    bytes[0x18..0x20].copy_from_slice(&(BASE + header as u64).to_le_bytes());
    bytes[0x20..0x28].copy_from_slice(&64u64.to_le_bytes());
    bytes[0x28..0x30].fill(0);
    bytes[0x38..0x40].copy_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
    // Code, then memory for what is unpacked.
    for (flags, address, file_size, memory_size) in
        [(5u32, BASE, size, size), (6, BASE + (1 << 24), 0, 1 << 20)]
    {
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        for word in [0, address, address, file_size, memory_size, 0x1_0000] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes.extend(stub);
    bytes
}

#[test]
fn each_refusal_says_what_to_do() {
    let images = Images::new();
    let good = images.build("good", &["-Wl,--emit-relocs"]);
    let program = optimize::open(&good).unwrap();
    check(&images.build("plain", &[]), &["-Wl,--emit-relocs"]);
    images.run("alpha-linux-gnu-strip", &["good", "-o", "stripped"]);
    check(&images.path("stripped"), &["do not strip"]);
    let (bytes, _) = output::write(&program, &layout::original(&program)).unwrap();
    std::fs::write(images.path("twice"), bytes).unwrap();
    check(&images.path("twice"), &["optimized", "original image"]);
    images.run("gcc", &["image.c", "-o", "native"]);
    check(&images.path("native"), &["Alpha"]);
    images.run("alpha-linux-gnu-gcc", &["-c", "image.c", "-o", "object.o"]);
    check(&images.path("object.o"), &["link"]);
    std::fs::write(images.path("text"), "#!/bin/sh\necho\n").unwrap();
    check(&images.path("text"), &["ELF"]);
    std::fs::write(images.path("empty"), "").unwrap();
    check(&images.path("empty"), &["ELF"]);
    refusal(&images.path("absent"));
    // Without section headers, as the loader does not need them.
    let mut headless = std::fs::read(&good).unwrap();
    headless[0x28..0x30].fill(0);
    headless[0x3c..0x40].fill(0);
    std::fs::write(images.path("headless"), headless).unwrap();
    check(&images.path("headless"), &["no section headers", "as the linker wrote it"]);
    std::fs::write(images.path("packed"), packed(&std::fs::read(&good).unwrap())).unwrap();
    check(&images.path("packed"), &["packed", "upx -d"]);
    // What it was packed with names another machine.
    for (machine, name) in [(62u16, "x86-64"), (183, "AArch64")] {
        let mut foreign = packed(&std::fs::read(&good).unwrap());
        foreign[0x12..0x14].copy_from_slice(&machine.to_le_bytes());
        std::fs::write(images.path("foreign"), foreign).unwrap();
        check(&images.path("foreign"), &[name, "neither of Alpha nor of RISC-V"]);
    }
    const RISCV: u16 = 243;
    let mut foreign = std::fs::read(&good).unwrap();
    foreign[0x12..0x14].copy_from_slice(&RISCV.to_le_bytes());
    std::fs::write(images.path("foreign"), foreign).unwrap();
    check(&images.path("foreign"), &["of another instruction set", "spike rewrites Alpha images"]);
}

/// Debug information alone may be stripped.
#[test]
fn symbols_and_relocations_suffice() {
    let images = Images::new();
    images.build("good", &["-Wl,--emit-relocs"]);
    images.run("alpha-linux-gnu-strip", &["--strip-debug", "good", "-o", "small"]);
    optimize::open(&images.path("small")).unwrap();
}

/// Each prefix of an image is refused.
#[test]
fn truncated_images() {
    let images = Images::new();
    let good = std::fs::read(images.build("good", &["-Wl,--emit-relocs"])).unwrap();
    let step = testing::sample(997, 61);
    for length in (0..good.len()).step_by(step) {
        std::fs::write(images.path("truncated"), &good[..length]).unwrap();
        refusal(&images.path("truncated"));
    }
}

/// Damaged images are refused or rewritten, without a panic.
#[test]
fn damaged_images() {
    let images = Images::new();
    let exceptions = ["-Wl,--emit-relocs", "-fexceptions", "-mno-bwx"];
    let good = std::fs::read(images.build("good", &exceptions)).unwrap();
    let sections = Elf::read(good.clone()).unwrap().sections;
    let sections = sections.iter().filter(|one| one.kind != object::elf::SHT_NOBITS.0 && one.size > 0);
    // The sections, the header and the program headers, and the headers of sections, all of which are equally likely.
    let ranges = sections.map(|one| one.offset as usize..(one.offset + one.size) as usize);
    let ranges: Vec<_> = ranges.chain([0..512, good.len() - 2500..good.len()]).collect();
    let mut random = fastrand::Rng::with_seed(26);
    let (mut written, mut refused) = (0, 0);
    for _ in 0..testing::sample(400, 6000) {
        let mut bytes = good.clone();
        for _ in 0..random.usize(1..6) {
            let range = ranges[random.usize(..ranges.len())].clone();
            let at = random.usize(range);
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] ^= 1 << random.u8(..8),
                _ => {
                    let from = random.usize(..bytes.len());
                    let length = random.usize(1..32).min(bytes.len() - at.max(from));
                    bytes.copy_within(from..from + length, at);
                }
            }
        }
        let program = lift::lift(bytes);
        match program.and_then(|program| output::write(&program, &layout::original(&program))) {
            Ok(_) => written += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(written > 20 && refused > 20, "{written} written, {refused} refused");
}
