//! Static analysis against `objdump`, and on damaged images.

use image::Image;
use pathlength_analysis::mix::{self, Mix};
use pathlength_analysis::statics::{self, ImageStatics, pair};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use table::Value;

const LIBC: &str = "/usr/alpha-linux-gnu/lib/libc.so.6.1";

fn tool(name: &str, arguments: &[&str]) -> String {
    let program = format!("alpha-linux-gnu-{name}");
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} must be installed to test: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles a program that copies bytes and words.
fn compile(directory: &Path, name: &str, switches: &[&str]) -> PathBuf {
    let source = directory.join("program.c");
    let text = "#include <stdio.h>\n
        __attribute__((noinline)) void fill(unsigned char *p, short *q, int n) { while (n--) *p++ = q[n]; }
        int main(void) { unsigned char a[9]; short b[9] = {0}; fill(a, b, 9); return puts((char *)a) < 0; }";
    std::fs::write(&source, text).unwrap();
    let program = directory.join(name);
    let mut arguments = vec!["-O2", source.to_str().unwrap(), "-o", program.to_str().unwrap()];
    arguments.extend(switches);
    tool("gcc", &arguments);
    program
}

/// The mnemonics that objdump writes for special cases of others.
const ALIASES: &[(&str, &str)] = &[
    ("mov", "bis"),
    ("clr", "bis"),
    ("or", "bis"),
    ("andnot", "bic"),
    ("not", "ornot"),
    ("negl", "subl"),
    ("negq", "subq"),
    ("sextl", "addl"),
    ("fmov", "cpys"),
    ("fclr", "cpys"),
    ("fabs", "cpys"),
    ("fneg", "cpysn"),
    ("negf", "subf"),
    ("negg", "subg"),
    ("negs", "subs"),
    ("negt", "subt"),
    ("fnegs", "subs"),
    ("fnegt", "subt"),
];

/// objdump's count of each mnemonic in the sections that hold code.
fn disassembled(path: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in tool("objdump", &["-d", "-z", path]).lines() {
        let Some(instruction) = line.split('\t').nth(2) else { continue };
        let mnemonic = instruction.split([' ', '/']).next().unwrap();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == mnemonic);
        *counts.entry(alias.map_or(mnemonic, |(_, name)| name).to_string()).or_default() += 1;
    }
    counts
}

fn whole_text(image: &Image) -> Mix {
    mix::count(
        &isa::Alpha,
        image.code().iter().flat_map(|code| image.instructions(code)).map(|(_, word)| word),
    )
}

#[test]
fn counts_agree_with_objdump() {
    for path in [LIBC, "/usr/alpha-linux-gnu/lib/ld-linux.so.2", "/usr/alpha-linux-gnu/lib/libm.so.6.1"] {
        let ours = whole_text(&Image::open(path).unwrap());
        let ours: BTreeMap<String, u64> = ours.into_iter().map(|(name, n)| (name.to_string(), n)).collect();
        assert_eq!(ours, disassembled(path), "{path}");
    }
}

#[test]
fn two_builds_differ_by_the_byte_and_word_instructions() {
    let directory = tempfile::tempdir().unwrap();
    let original = compile(directory.path(), "original", &["-mcpu=ev5", "-mno-bwx"]);
    let byte_word = compile(directory.path(), "byte-word", &["-mcpu=ev56", "-mbwx"]);
    let [a, b] = [original, byte_word].map(|path| ImageStatics::of(&Image::open(path).unwrap()));
    for image in [&a, &b] {
        assert!(image.code_bytes <= image.text_bytes && image.text_bytes < image.file_bytes);
        assert_eq!(mix::total(&image.mix) * 4, image.code_bytes);
        assert!(!image.mix.contains_key(".long"));
    }
    assert!(statics::BYTE_WORD.iter().all(|name| !a.mix.contains_key(name)));
    assert_eq!((b.mix["stb"], b.mix["ldwu"]), (1, 1));
    assert_eq!(a.functions, b.functions);
    let pairs = pair(vec![a.clone()], vec![b.clone()]).unwrap();
    let table = statics::instruction_differences("table-6", "difference", &pairs);
    for row in &table.rows {
        let Value::Text(name) = &row[0] else { panic!("{row:?}") };
        let count = |image: &ImageStatics| image.mix.get(name.as_str()).copied().unwrap_or(0) as i64;
        assert_eq!(row[1], Value::Integer(count(&b) - count(&a)));
        assert_ne!(row[1], Value::Integer(0));
    }
    let all: i64 = table.rows.iter().map(|row| if let Value::Integer(n) = row[1] { n } else { 0 }).sum();
    assert_eq!(all * 4, b.code_bytes as i64 - a.code_bytes as i64);
    assert_eq!(statics::differences("table-9", "", &pairs).rows[0][3], Value::Integer(all * 4));
}

#[test]
fn code_is_what_functions_cover() {
    let image = Image::open(LIBC).unwrap();
    let statics = ImageStatics::of(&image);
    let instructions = image.code().iter().flat_map(|code| image.instructions(code));
    let covered = instructions.filter(|(address, _)| image.function_at(*address).is_some()).count();
    assert_eq!(statics.code_bytes, 4 * covered as u64);
    assert!(statics.code_bytes > statics.text_bytes * 9 / 10, "{statics:?}");
}

#[test]
fn images_are_paired_by_name_or_by_position() {
    let image = |name: &str| ImageStatics { image: name.into(), ..ImageStatics::default() };
    let names = |a: [&str; 2], b: [&str; 2]| {
        let pairs = pair(a.map(image).to_vec(), b.map(image).to_vec()).unwrap();
        pairs.into_iter().map(|(a, b)| format!("{} {}", a.image, b.image)).collect::<Vec<_>>()
    };
    assert_eq!(names(["x", "y"], ["y", "x"]), ["x x", "y y"]);
    assert_eq!(names(["x", "y"], ["p", "q"]), ["x p", "y q"]);
    let error = pair(vec![image("x")], vec![]).unwrap_err().to_string();
    assert_eq!(error, "1 images cannot be compared with 0; give as many of one build as of the other");
}

static PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    std::fs::read(compile(directory.path(), "program", &["-g"])).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 4000, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn damaged_images_are_counted_or_refused(
        damage in proptest::collection::vec((0..PROGRAM.len(), any::<u8>()), 1..10),
        header in proptest::collection::vec((0..1000usize, any::<u8>()), 0..3),
    ) {
        let mut bytes = PROGRAM.clone();
        for (at, value) in damage.into_iter().chain(header) {
            bytes[at] = value;
        }
        // If too many are refused the test fails.
        let image = Image::parse("damaged", bytes).map_err(|_| TestCaseError::reject("refused"))?;
        let statics = ImageStatics::of(&image);
        prop_assert!(statics.code_bytes <= statics.text_bytes);
        prop_assert!(statics.text_bytes <= statics.file_bytes);
        statics::images("images", "", std::slice::from_ref(&statics));
        statics::changes("changes", "", &[(statics.clone(), statics)]);
    }
}
