//! The cold part of a function, which compilers and spike put elsewhere, has the function's name.

use std::path::Path;
use std::process::Command;

use events::{Counts, LoadedImage};
use pathlength_analysis::names::Names;

const SOURCE: &str = r#"
long table[16];
__attribute__((cold, noinline)) long rare(long n) { return table[n & 15] += n; }
__attribute__((noinline)) long work(long n) {
    if (__builtin_expect(n < 0, 0)) {
        for (long i = 0; i < 9; i++) table[i] += rare(n + i) * n;
        return rare(n);
    }
    return table[n & 15] + n;
}
void _start(void) { table[0] = work(table[1]); }
"#;

fn build(directory: &Path) -> std::path::PathBuf {
    let (source, image) = (directory.join("cold.c"), directory.join("cold"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut compiler = Command::new("alpha-linux-gnu-gcc");
    compiler.args(["-O2", "-freorder-blocks-and-partition", "-nostdlib", "-static", "-o"]);
    assert!(compiler.arg(&image).arg(&source).status().expect("alpha-linux-gnu-gcc is needed").success());
    image
}

#[test]
fn a_cold_part_has_the_name_of_its_function() {
    let directory = tempfile::tempdir().unwrap();
    let path = build(directory.path());
    let image = image::Image::open(&path).unwrap();
    let find = |name: &str| image.functions().iter().find(|one| one.name == name).expect(name).clone();
    let (work, cold) = (find("work"), find("work.cold"));
    assert!(cold.size >= 8);
    let loaded = LoadedImage { path, start: 0, end: u64::MAX, bias: 0 };
    let counts = Counts { images: vec![loaded], ..Counts::default() };
    let names = Names::of_counts(&counts);
    for address in [work.address, work.end() - 4, cold.address, cold.end() - 4] {
        let code = names.code(Some(0), address).unwrap();
        assert_eq!((code.name.function.as_str(), code.start), ("work", work.address), "{address:#x}");
    }
    assert_eq!(names.name(Some(0), find("rare").address).function, "rare");
    let instructions = names.instructions(Some(0), work.address).unwrap();
    assert_eq!(instructions.len() as u64 * 4, work.size + cold.size);
}
