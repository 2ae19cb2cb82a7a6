//! The library from C, compiled by cc, and from Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use vlm::{Allocation, Size, usage};

use crate::guard::guard_or_skip;
use crate::programs::compile;

/// Where Cargo puts the libraries that belong to this test.
fn libraries() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_vlm")).parent().unwrap().join("deps")
}

/// A library of this build: the newest with such a name, because Cargo keeps older ones.
fn library(ending: &str) -> PathBuf {
    let files = std::fs::read_dir(libraries()).unwrap().map(|file| file.unwrap().path());
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("libvlm") && name.ends_with(ending)
    };
    files
        .filter(fits)
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .expect("the library is built")
}

const SAID: &str = "zeroed and shared\nsection `orders` exists already: open it, or delete it and end its users\n\
                    section `orders` does not exist\n";

#[test]
fn c_programs_use_either_library() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(8), Allocation::Alloc);
    let include = format!("-I{}/include", env!("CARGO_MANIFEST_DIR"));
    let shared = library(".so");
    for library in [library(".a"), shared] {
        let path = library.to_str().unwrap();
        let program = compile(guard.folder(), "sections.c", &[&include, path, "-lpthread", "-ldl", "-lm"]);
        let output = Command::new(program)
            .env("VLM_REGISTRY", guard.registry_path())
            .env("LD_LIBRARY_PATH", library.parent().unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), SAID, "{path}");
        assert_eq!(usage(&registry, "orders").unwrap().available, Size::mib(8));
    }
}

#[test]
fn python_programs_use_the_library() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(8), Allocation::Fluid);
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vlm/sections.py"))
        .env("VLM_REGISTRY", guard.registry_path())
        .env("VLM_LIBRARY", library(".so"))
        .env("PYTHONPATH", module)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), SAID);
    assert_eq!(usage(&registry, "orders").unwrap().available, Size::mib(8));
}
