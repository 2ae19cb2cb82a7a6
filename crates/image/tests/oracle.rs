//! This crate agrees with the GNU tools on images.

mod common;

use common::{LIBC, compile, tool};
use pathlength_image::{Image, ImageKind};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::tempdir;

/// Address, size and name of every function in a symbol table, by `readelf`.
fn functions(path: &str, table: &str) -> Vec<(u64, u64, String)> {
    let listing = tool("readelf", &["-W", table, path]);
    // Alpha's st_other is printed in brackets before the section, a version's index after the name.
    let plain = listing.lines().map(|line| match line.split_once('[') {
        Some((start, rest)) => start.to_string() + rest.split_once(']').unwrap().1,
        None => line.to_string(),
    });
    let fields = plain.map(|line| line.split_whitespace().map(String::from).collect::<Vec<_>>());
    let functions = fields.filter(|fields| {
        fields.len() > 7 && matches!(fields[3].as_str(), "FUNC" | "IFUNC") && fields[6] != "UND"
    });
    functions
        .map(|fields| {
            let number = |text: &str| match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
                None => text.parse().unwrap(),
            };
            let name = fields[7].split('@').next().unwrap();
            (u64::from_str_radix(&fields[1], 16).unwrap(), number(&fields[2]), name.to_string())
        })
        .collect()
}

fn check_functions(path: &str, table: &str) -> usize {
    let image = Image::open(path).unwrap();
    let expected = functions(path, table);
    let mut names: BTreeMap<u64, (u64, Vec<&str>)> = BTreeMap::new();
    for (address, size, name) in &expected {
        let entry = names.entry(*address).or_default();
        entry.0 = entry.0.max(*size);
        entry.1.push(name);
        assert!(image.symbols(name).iter().any(|symbol| symbol.address == *address), "{name}");
    }
    for (address, (size, names)) in &names {
        let function = image.function_at(*address).unwrap_or_else(|| panic!("none at {address:#x}"));
        assert_eq!(function.address, *address, "{names:?}");
        assert!(names.contains(&function.name.as_str()), "{} is none of {names:?}", function.name);
        if *size > 0 {
            assert_eq!(function.size, *size, "{names:?}");
            assert_eq!(image.function_at(function.end() - 4), Some(function), "{names:?}");
        }
    }
    names.len()
}

#[test]
fn functions_agree_with_the_full_symbol_table() {
    let directory = tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let count = check_functions(program, "-s");
    let image = Image::open(program).unwrap();
    // The others are labels of hand-written assembly, which names.rs tests.
    let listing = tool("readelf", &["-W", "-s", program]);
    let labels: Vec<&str> = listing.lines().filter(|line| line.contains(" NOTYPE ")).collect();
    let is_label = |name: &str| labels.iter().any(|line| line.split_whitespace().last() == Some(name));
    let typed = image.functions().iter().filter(|function| !is_label(&function.name)).count();
    assert_eq!(typed, count);
    // `nm -S` prints the sizes in hexadecimal and is a second witness.
    let listing = tool("nm", &["-S", program]);
    let line = listing.lines().find(|line| line.ends_with(" T __scaled")).unwrap();
    let size = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(image.symbol("__scaled").unwrap().size, size);
    assert_eq!(image.function_at(image.symbol("__scaled").unwrap().address).unwrap().name, "scaled");
    assert!(!image.symbol("helper").unwrap().global);
    let counter = image.symbol("counter").unwrap();
    assert_eq!((counter.size, counter.function), (4, false));
    assert!(image.symbol("no_such_function").is_none());
}

#[test]
fn functions_of_a_stripped_library_agree_with_its_dynamic_symbols_and_unwind_table() {
    let exported = check_functions(LIBC, "--dyn-syms");
    assert!(exported > 1000, "{exported}");
    let image = Image::open(LIBC).unwrap();
    assert!(image.functions().len() > exported, "the unwind table adds local functions");
    let frames = tool("readelf", &["--debug-dump=frames", LIBC]);
    let mut count = 0;
    for line in frames.lines().filter(|line| line.contains(" FDE ")) {
        let (start, end) = line.rsplit_once("pc=").unwrap().1.split_once("..").unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        assert!(image.function_at(start).is_some(), "{start:#x}");
        assert!(image.function_at(end - 4).is_some(), "{end:#x}");
        count += 1;
    }
    assert!(count > 1000);
    assert_eq!(image.function_at(image.symbol("write").unwrap().address).unwrap().name, "write");
}

#[test]
fn segments_and_sections_agree_with_readelf() {
    let directory = tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    for path in [program.to_str().unwrap(), LIBC] {
        let image = Image::open(path).unwrap();
        let listing = tool("readelf", &["-Wl", path]);
        let loads: Vec<Vec<u64>> = listing
            .lines()
            .filter(|line| line.trim_start().starts_with("LOAD"))
            .map(|line| line.split_whitespace().filter_map(|field| field.strip_prefix("0x")))
            .map(|fields| fields.map(|digits| u64::from_str_radix(digits, 16).unwrap()).collect())
            .collect();
        let ours: Vec<Vec<u64>> = image
            .segments()
            .iter()
            .map(|segment| {
                let file = &segment.file;
                let (start, size) = (file.start as u64, file.len() as u64);
                vec![start, segment.address, segment.address, size, segment.memory_size, segment.align]
            })
            .collect();
        assert_eq!(ours, loads, "{path}");
        assert!(listing.contains(&format!("Entry point {:#x}", image.entry())));
        assert!(listing.contains(&format!("interpreter: {}]", image.interpreter().unwrap())));
        assert!(listing.contains(&format!("There are {} program headers", image.program_header_count())));
        let phdr = listing.lines().find(|line| line.trim_start().starts_with("PHDR")).unwrap();
        assert!(phdr.contains(&format!("{:#018x}", image.program_header_address().unwrap())), "{phdr}");
        let sections = tool("readelf", &["-WS", path]);
        for code in image.code() {
            let wanted = format!("{:016x} {:06x} {:06x}", code.address, code.file.start, code.file.len());
            assert!(sections.lines().any(|line| line.contains(&wanted) && line.contains("AX")), "{wanted}");
        }
        assert_eq!(image.code().len(), sections.lines().filter(|line| line.contains("  AX ")).count());
    }
}

#[test]
fn headers_are_understood() {
    let directory = tempdir().unwrap();
    let image = Image::open(compile(directory.path(), &["-no-pie"])).unwrap();
    assert_eq!((image.kind(), image.position_independent()), (ImageKind::Executable, false));
    assert_eq!(image.needed(), ["libc.so.6.1"]);
    assert_eq!(image.name(), "program");
    let image =
        Image::open(compile(directory.path(), &["-pie", "-fPIE", "-Wl,--build-id=0x0123abcd"])).unwrap();
    assert_eq!((image.kind(), image.position_independent()), (ImageKind::Executable, true));
    assert_eq!(image.build_id(), Some([0x01, 0x23, 0xab, 0xcd].as_slice()));
    let image = Image::open(compile(directory.path(), &["-shared", "-fPIC"])).unwrap();
    assert_eq!((image.kind(), image.position_independent()), (ImageKind::SharedObject, true));
    assert_eq!(Image::open(LIBC).unwrap().kind(), ImageKind::SharedObject);
}

#[test]
fn lines_agree_with_addr2line() {
    let directory = tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let image = Image::open(&program).unwrap();
    let addresses: Vec<u64> = image
        .code()
        .iter()
        .flat_map(|code| (code.address..code.end()).step_by(4))
        .filter(|&address| image.function_at(address).is_some())
        .collect();
    let mut arguments = vec!["-e".to_string(), program.to_str().unwrap().to_string()];
    arguments.extend(addresses.iter().map(|address| format!("{address:#x}")));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answers = tool("addr2line", &arguments);
    let mut located = 0;
    for (address, answer) in addresses.iter().zip(answers.lines()) {
        let answer = answer.split(" (").next().unwrap();
        let ours = image.location(*address);
        let name = |file: &str| Path::new(file).file_name().unwrap().to_str().unwrap().to_string();
        let ours = ours.map(|found| (name(&found.file), found.line.unwrap_or(0).to_string()));
        let (file, line) = answer.rsplit_once(':').unwrap();
        // Of a label without debug information it says which object file had it.
        if file == "??" || file.ends_with(".o") {
            assert_eq!(ours, None, "{address:#x}");
        } else {
            assert_eq!(ours, Some((name(file), line.replace('?', "0"))), "{address:#x}");
            located += 1;
        }
    }
    assert!(located > 50, "{located}");
}

#[test]
fn threads_can_share_an_image() {
    fn shared<T: Send + Sync>() {}
    shared::<Image>();
}

#[test]
fn an_image_without_section_headers_still_has_code() {
    let directory = tempdir().unwrap();
    let mut bytes = std::fs::read(compile(directory.path(), &[])).unwrap();
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    let image = Image::parse("bare", bytes).unwrap();
    assert_eq!(image.code().len(), 1);
    assert!(image.functions().is_empty());
}
