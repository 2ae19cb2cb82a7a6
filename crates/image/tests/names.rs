//! The names of functions: which of several, labels of hand-written assembly, and demangled names, as the GNU tools have them.

mod common;

use common::{LIBC, compile, tool};
use pathlength_image::{Image, SymbolPattern, demangle};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use tempfile::tempdir;

const LIBSTDCXX: &str = "/usr/alpha-linux-gnu/lib/libstdc++.so.6";

/// What c++filt makes of symbols.
fn filtered(symbols: &[&str]) -> Vec<String> {
    let mut filter = Command::new("alpha-linux-gnu-c++filt");
    let mut filter = filter.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = filter.stdin.take().unwrap();
    let text = symbols.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = filter.wait_with_output().unwrap();
    writer.join().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

#[test]
fn names_of_a_large_library_are_those_of_cxxfilt() {
    let image = Image::open(LIBSTDCXX).unwrap();
    let symbols: Vec<&str> = image.functions().iter().map(|function| function.name.as_str()).collect();
    let symbols: Vec<&str> = symbols.into_iter().filter(|symbol| symbol.starts_with("_Z")).collect();
    assert!(symbols.len() > 3000);
    let names = filtered(&symbols);
    let mut other = Vec::new();
    for (symbol, name) in symbols.iter().zip(&names) {
        let demangled = demangle(symbol);
        if !SymbolPattern::new(name).matches(symbol) || !SymbolPattern::new(&demangled).matches(symbol) {
            other.push((symbol, name, demangled));
        }
    }
    assert!(other.len() * 50 < symbols.len(), "{} of {}: {other:#?}", other.len(), symbols.len());
}

#[test]
fn strong_names_are_shown_rather_than_weak_ones() {
    let image = Image::open(LIBC).unwrap();
    for (weak, strong) in [("bcmp", "memcmp"), ("index", "strchr"), ("rindex", "strrchr")] {
        let (symbol, other) = (image.symbol(weak).unwrap(), image.symbol(strong).unwrap());
        assert_eq!(symbol.address, other.address);
        assert!(symbol.weak && !other.weak);
        assert_eq!(image.function_at(symbol.address).unwrap().name, strong);
    }
    // The names that programs call are often the weak ones, and the strong ones the library's own.
    for name in ["puts", "write", "malloc"] {
        assert_eq!(image.function_at(image.symbol(name).unwrap().address).unwrap().name, name);
    }
}

const ASSEMBLY: &str = "
    .text
    .align 4
before_main:
    .globl main
    .type main,@function
main:
    bsr $26, untyped
    br $31, inside
inside:
    ret $31,($26),1
    .size main,.-main
    nop
untyped:
    nop
    ret $31,($26),1
    .globl last
last:
    ret $31,($26),1
    .data
datum:
    .quad 1
";

/// As addr2line has it: the symbols before an address, but labels in functions name nothing.
#[test]
fn labels_name_what_no_function_covers() {
    let directory = tempdir().unwrap();
    let (source, program) = (directory.path().join("labels.s"), directory.path().join("labels"));
    std::fs::write(&source, ASSEMBLY).unwrap();
    tool("gcc", &["-nostdlib", "-e", "main", source.to_str().unwrap(), "-o", program.to_str().unwrap()]);
    let image = Image::open(&program).unwrap();
    let main = image.symbol("main").unwrap().address;
    assert_eq!(image.symbol("before_main").unwrap().address, main);
    let names: Vec<_> = (0..7).map(|n| image.function_at(main + 4 * n).map(|f| f.name.as_str())).collect();
    let expected = ["main", "main", "main", "-", "untyped", "untyped", "last"];
    assert_eq!(names, expected.map(|name| (name != "-").then_some(name)));
    let addresses: Vec<String> = (0..7).filter(|&n| n != 3).map(|n| format!("{:#x}", main + 4 * n)).collect();
    let mut arguments = vec!["-f", "-e", program.to_str().unwrap()];
    arguments.extend(addresses.iter().map(String::as_str));
    let answers = tool("addr2line", &arguments);
    let expected: Vec<&str> = answers.lines().step_by(2).collect();
    let names: Vec<&str> = names.into_iter().flatten().collect();
    assert_eq!(names, expected);
    assert!(image.symbol("untyped").unwrap().function);
    assert!(!image.symbol("datum").unwrap().function);
}

const CXX: &str = "
namespace app {
struct Store { int n; int add(int) const; int add(long); bool operator!() const; };
namespace { __attribute__((noinline)) int hidden(int x) { return x * 3; } }
int Store::add(int x) const { return n + hidden(x); }
int Store::add(long x) { return n - x; }
bool Store::operator!() const { return !n; }
template<class T> __attribute__((noinline)) T biggest(T a, T b) { return a < b ? b : a; }
}
int main(int c, char **) { app::Store s{c}; return s.add(c) + s.add(2L) + !s + app::biggest(c, 2) + app::biggest(2L, 3L); }
";

#[test]
fn names_of_the_source_find_symbols() {
    let directory = tempdir().unwrap();
    let (source, program) = (directory.path().join("store.cc"), directory.path().join("store"));
    std::fs::write(&source, CXX).unwrap();
    tool("g++", &["-O1", source.to_str().unwrap(), "-o", program.to_str().unwrap()]);
    let image = Image::open(&program).unwrap();
    let find = |text: &str| -> Vec<String> {
        image.find(&SymbolPattern::new(text)).iter().map(|symbol| symbol.name.clone()).collect()
    };
    assert_eq!(find("app::Store::add"), ["_ZN3app5Store3addEl", "_ZNK3app5Store3addEi"]);
    assert_eq!(find("app::Store::add(long)"), ["_ZN3app5Store3addEl"]);
    assert_eq!(find("_ZNK3app5Store3addEi"), ["_ZNK3app5Store3addEi"]);
    assert_eq!(find("app::Store::operator!").len(), 1);
    assert_eq!(find("app::(anonymous namespace)::hidden").len(), 1);
    assert_eq!(find("app::biggest").len(), 2);
    assert_eq!(find("app::biggest<long>").len(), 1);
    assert_eq!(find("main"), ["main"]);
    assert!(find("Store::add").is_empty());
    // addr2line -C and the tables write the same but for the type that a template returns.
    for name in ["app::Store::add(int)", "app::Store::operator!", "app::(anonymous namespace)::hidden"] {
        let symbol = image.find(&SymbolPattern::new(name))[0];
        let address = format!("{:#x}", symbol.address);
        let answer = tool("addr2line", &["-f", "-C", "-e", program.to_str().unwrap(), &address]);
        assert_eq!(
            answer.lines().next().unwrap(),
            demangle(&image.function_at(symbol.address).unwrap().name)
        );
    }
}

#[test]
fn functions_of_the_stripped_c_library_are_named_by_the_static_one() {
    let image = Image::open(LIBC).unwrap();
    let unnamed: Vec<_> = image.functions().iter().filter(|function| !function.is_named).collect();
    let names: Vec<&str> = unnamed.iter().map(|function| image.symbol_of(function)).collect();
    let named = names.iter().filter(|name| !name.starts_with("sub_")).count();
    assert!(named * 2 > unnamed.len(), "{named} of {}", unnamed.len());
    // Users can name them so, and by the names that they have without the static library.
    let index = names.iter().position(|name| *name == "msort_with_tmp.part.0").unwrap();
    let found = |text: &str| image.find(&SymbolPattern::new(text)).first().map(|symbol| symbol.address);
    let address = unnamed[index].address;
    assert_eq!(found("msort_with_tmp.part.0"), Some(address));
    assert_eq!(found(&format!("sub_{address:x}")), Some(address));
    assert_eq!(found("no_such_function"), None);
}

/// A stripped program, with its debug file in the same folder or in a folder of build ids.
#[test]
fn debug_files_are_found() {
    let folder = tempdir().unwrap();
    let unstripped = compile(folder.path(), &["-Wl,--build-id"]);
    let id = Image::open(&unstripped).unwrap().build_id().unwrap().to_vec();
    let [debug, stripped] = ["program.debug", "stripped"].map(|name| folder.path().join(name));
    let text = |path: &std::path::Path| path.to_str().unwrap().to_string();
    let (unstripped, debug, stripped) = (text(&unstripped), text(&debug), text(&stripped));
    tool("objcopy", &["--only-keep-debug", &unstripped, &debug]);
    tool("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={debug}"), &unstripped, &stripped]);
    let helper = Image::open(&unstripped).unwrap().symbol("helper").unwrap().address;
    let look = || {
        let image = Image::open(&stripped).unwrap();
        let name = image.function_at(helper).map(|function| function.name.clone()).unwrap_or_default();
        (name, image.location(helper).is_some(), image.variables().iter().any(|one| one.name == "counter"))
    };
    assert_eq!(look(), ("helper".into(), true, true));
    // Another program's file is not taken, whatever its name.
    std::fs::rename(&debug, folder.path().join("moved")).unwrap();
    let without = look();
    assert_ne!(without.0, "helper");
    assert!(!without.1);
    std::fs::copy(folder.path().join("program.c"), &debug).unwrap();
    assert_eq!(look(), without);
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder_of_id = folder.path().join("usr/lib/debug/.build-id").join(&digits[..2]);
    std::fs::create_dir_all(&folder_of_id).unwrap();
    std::fs::rename(folder.path().join("moved"), folder_of_id.join(format!("{}.debug", &digits[2..])))
        .unwrap();
    assert_eq!(look(), ("helper".into(), true, true));
}

/// A symbol in another encoding than UTF-8 costs no other name, and is told from others.
#[test]
fn symbols_of_any_encoding_have_names() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string();
    std::fs::write(path("main.c"), "int plain(int x) { return x; } int main() { return plain(0); }").unwrap();
    for (name, latin, expected) in
        [("one", &b"plain=gr\xf6\xdfe"[..], "gr\\xF6\\xDFe"), ("two", b"plain=gr\xfc\xdfe", "gr\\xFC\\xDFe")]
    {
        tool("gcc", &["-c".into(), "-o".into(), path("main.o"), path("main.c")]);
        tool("objcopy", &["--redefine-sym".into(), OsStr::from_bytes(latin).into(), path("main.o")]);
        tool("gcc", &["-o".into(), path(name), path("main.o")]);
        let image = Image::open(path(name)).unwrap();
        let functions: Vec<&str> = image.functions().iter().map(|function| function.name.as_str()).collect();
        assert!(functions.contains(&expected) && functions.contains(&"main"), "{functions:?}");
    }
}
