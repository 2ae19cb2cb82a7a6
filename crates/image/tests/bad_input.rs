//! Reading any file results in an image or an error of one sentence.

mod common;

use common::{LIBC, compile, tool};
use pathlength_image::{Image, ImageProblem};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::LazyLock;
use testing::sample;

fn sentence(bytes: impl Into<Vec<u8>>) -> String {
    Image::parse("it", bytes.into()).unwrap_err().to_string()
}

#[test]
fn what_is_not_an_alpha_program_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| Image::open(path).unwrap_err().to_string();
    assert_eq!(open("/no/such/file".as_ref()), "/no/such/file: there is no such file; check the path");
    assert!(open(directory.path()).ends_with("not a regular file; name the program or shared object itself"));
    assert!(open("/dev/zero".as_ref()).contains("not a regular file"));
    assert!(sentence("").contains("not an ELF file but an empty file"));
    assert!(sentence("#!/bin/sh\n").contains("not an ELF file but a script"));
    assert!(sentence("int main;\n").contains("not an ELF file but text"));
    assert!(sentence(vec![1, 2, 3]).contains("not an ELF file but data of an unknown kind"));
    assert!(sentence("\x7fELF\x02").contains("truncated: the ELF header reaches to byte 64"));
    assert!(
        open(&std::env::current_exe().unwrap()).contains(std::env::consts::ARCH.replace('_', "-").as_str())
    );
    let source = directory.path().join("empty.c");
    std::fs::write(&source, "int f(void) { return 1; }").unwrap();
    let object = directory.path().join("empty.o");
    tool("gcc", &["-c", source.to_str().unwrap(), "-o", object.to_str().unwrap()]);
    assert!(open(&object).contains("a relocatable object file that has not been linked"));
}

#[test]
fn wrong_headers_are_explained() {
    let good = std::fs::read(LIBC).unwrap();
    let with = |at: usize, new: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        sentence(bytes)
    };
    assert!(with(4, &[1]).contains("a 32-bit ELF file"));
    assert!(with(5, &[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0x90, 0x26]).contains("a big-endian ELF file"));
    assert!(with(16, &[4]).contains("a core dump"));
    assert!(with(18, &[62, 0]).contains("an x86-64 ELF file, neither of Alpha nor of RISC-V"));
    assert!(with(18, &[0x34, 0x12]).contains("a machine-4660 ELF file, neither of Alpha nor of RISC-V"));
    assert!(with(0x20, &[0xff; 8]).contains("truncated: the program header table"));
    assert!(sentence(&good[..good.len() / 2]).contains("truncated: segment at"));
    let load = (0..10).map(|n| 64 + 56 * n).find(|&at| good[at..at + 4] == [1, 0, 0, 0]).unwrap();
    assert!(with(load + 8, &[0, 0, 0, 0x10]).contains("truncated: segment at 0x0"));
    assert!(with(load + 0x28, &[0xff; 8]).contains("reaches beyond the address space"));
    assert!(with(load + 0x28, &[0; 8]).contains("is larger in the file than in memory"));
    assert!(with(load + 0x30, &[3]).contains("alignment that is no power of two"));
    assert!(with(load + 0x10, &[4]).contains("not aligned with its offset in the file"));
    let problem = Image::parse("it", good[..100].to_vec()).unwrap_err().problem;
    assert!(matches!(problem, ImageProblem::Truncated { .. }));
}

/// Running an image needs no section headers; analysing it reports the damage.
#[test]
fn damaged_section_headers_leave_an_image_without_names() {
    let good = std::fs::read(LIBC).unwrap();
    let whole = Image::parse("whole", good.clone()).unwrap();
    assert!(whole.damage().is_none() && whole.check_sections().is_ok());
    let table = u64::from_le_bytes(good[0x28..0x30].try_into().unwrap()) as usize;
    // The table beyond the file, entries of an impossible size, names in no section; a section beyond the file.
    let damages: [(usize, &[u8]); 4] =
        [(0x28, &[0xff; 8]), (0x3a, &[1, 0]), (0x3e, &[0xfe, 0xfe]), (table + 64 + 0x18, &[0xff; 8])];
    for (at, new) in damages {
        let mut bytes = good.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        let image = Image::parse("it", bytes).unwrap();
        // Each damage either changes nothing else or is reported.
        assert_eq!(image.segments(), whole.segments());
        assert_eq!(image.needed(), whole.needed());
        assert_eq!(image.interpreter(), whole.interpreter());
        if let Some(damage) = image.damage() {
            assert!(image.functions().is_empty() && image.variables().is_empty());
            let said = image.check_sections().unwrap_err().to_string();
            assert_eq!(said, format!("it: {damage}"));
        }
    }
    let cut = Image::parse("it", good[..table].to_vec()).unwrap();
    assert!(cut.damage().unwrap().contains("truncated: the section header table"));
    assert_eq!(cut.needed(), whole.needed());
}

/// Found by fuzzing: a symbol's name may be there, and empty.
#[test]
fn a_symbol_with_an_empty_name_names_no_function() {
    let whole = Image::parse("whole", PROGRAM.clone()).unwrap();
    assert!(whole.symbol("helper").is_some());
    let mut bytes = PROGRAM.clone();
    let names = (0..bytes.len() - 8).filter(|&at| PROGRAM[at..at + 8] == *b"\0helper\0");
    names.for_each(|at| bytes[at + 1] = 0);
    let image = Image::parse("it", bytes).unwrap();
    assert!(image.symbol("helper").is_none() && !image.functions().is_empty());
    assert!(image.functions().iter().all(|function| !image.symbol_of(function).is_empty()));
}

/// Found by fuzzing: the entry of a damaged image is any address.
#[test]
fn no_address_is_too_large_to_ask_for_its_line() {
    let image = Image::parse("it", built(&["-g"])).unwrap();
    assert!(image.location(image.symbol("helper").unwrap().address).is_some());
    assert!([u64::MAX, u64::MAX - 1].iter().all(|&address| image.location(address).is_none()));
}

fn built(switches: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::read(compile(directory.path(), switches)).unwrap()
}

static PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(|| built(&[]));
/// Its functions come from the unwind table.
static STRIPPED: LazyLock<Vec<u8>> = LazyLock::new(|| built(&["-s"]));

/// Calls all accessors of an image, if it is read. Returns whether it is.
fn use_up(bytes: Vec<u8>) -> bool {
    let Ok(image) = Image::parse("damaged", bytes) else { return false };
    let instructions: usize = image.code().iter().map(|code| image.instructions(code).count()).sum();
    assert!(instructions <= image.bytes().len() / 4);
    for segment in image.segments() {
        assert!(image.bytes().get(segment.file.clone()).is_some());
    }
    for function in image.functions() {
        let found = image.function_at(function.address).unwrap();
        assert_eq!(found.address, function.address);
        image.location(function.address);
    }
    image.symbol("main");
    image.program_header_address();
    true
}

/// Of inputs that a strategy makes: most must be read, or little is tested; and some refused.
fn read_and_refused<T>(inputs: impl Strategy<Value = T>, is_read: impl Fn(T) -> bool) {
    let mut runner = TestRunner::deterministic();
    let read = (0..200).filter(|_| is_read(inputs.new_tree(&mut runner).unwrap().current())).count();
    assert!((60..200).contains(&read), "{read} of 200 are read");
}

fn damaged(good: &[u8], damage: Vec<(usize, u8)>, cut: usize) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, value) in damage {
        bytes[at] = value;
    }
    bytes.truncate(cut);
    bytes
}

/// Offsets worth damaging: the headers and tables, more often than the rest.
fn offsets(length: usize) -> impl Strategy<Value = usize> {
    let tables = length - 3000;
    prop_oneof![0..64usize, 64..1200usize, 1200..length, tables..length]
}

/// Damage to a file: bytes, and where it is cut.
fn damage(length: usize) -> impl Strategy<Value = (Vec<(usize, u8)>, usize)> {
    let bytes = proptest::collection::vec((offsets(length), any::<u8>()), 1..8);
    (bytes, prop_oneof![4 => Just(usize::MAX), 1 => 0..length])
}

#[test]
fn much_that_is_damaged_is_read() {
    for file in [&PROGRAM, &STRIPPED] {
        read_and_refused(damage(file.len()), |(damage, cut)| use_up(damaged(file, damage, cut)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sample(400, 4000)))]

    #[test]
    fn damage_never_panics((damage, cut) in damage(PROGRAM.len())) {
        use_up(damaged(&PROGRAM, damage, cut));
    }

    #[test]
    fn damage_to_a_stripped_program_never_panics((damage, cut) in damage(STRIPPED.len())) {
        use_up(damaged(&STRIPPED, damage, cut));
    }

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = PROGRAM[..64].to_vec();
        bytes.extend(noise);
        use_up(bytes);
    }
}
