//! The variables of images: C's and Fortran's, with debug information and without, and damaged.

mod common;

use common::tool;
use pathlength_image::{Image, Variable};
use std::path::Path;
use tempfile::tempdir;
use testing::sample;

const C: &str = r#"
struct pair { double a, b; long c; };
struct pair pairs[7];
static int counts[3][5] = {{1}};
extern char letters[10];
char letters[10] = "a";
typedef const short list[4];
list numbers = {1, 2, 3, 4};
int *pointer = &counts[1][2];
int main(void) { static long calls[6]; return calls[pairs[1].c]++ + *pointer + letters[numbers[2]]; }
"#;

const FORTRAN: &str = "\
module m
  real(8) :: mm(10,4)
  integer(4), save :: k0(0:9) = 3, kn(-2:2) = 1
end module
program p
  use m
  real(8), save :: x(100,4)
  complex(4) :: c1(5)
  real(8) :: c2(7,2)
  common /blk/ c1, c2
  x(3,1) = mm(1,2) + k0(2) + kn(1)
  print *, x(3,1), c1(2), c2(1,1)
end program
";

fn compile(folder: &Path, compiler: &str, source: &str, text: &str, switches: &[&str]) -> Image {
    let (source, program) = (folder.join(source), folder.join("program"));
    std::fs::write(&source, text).unwrap();
    let mut arguments = vec!["-O1", source.to_str().unwrap(), "-o", program.to_str().unwrap()];
    // Fortran's compiler writes a file for each module.
    if compiler == "gfortran" {
        arguments.extend(["-J", folder.to_str().unwrap()]);
    }
    arguments.extend(switches);
    tool(compiler, &arguments);
    Image::open(&program).unwrap()
}

fn found(image: &Image, name: &str) -> Variable {
    let variables = image.variables();
    let mut found = variables.iter().filter(|variable| variable.name == name);
    let one = found.next().unwrap_or_else(|| panic!("{name} is none of {variables:#?}"));
    assert!(found.next().is_none(), "{name} is there twice");
    one.clone()
}

/// Shape, bytes, the element's name and bytes, the scope.
fn facts(image: &Image, name: &str) -> (Vec<u64>, u64, String, u64, Option<String>) {
    let Variable { shape, size, element, scope, .. } = found(image, name);
    let element = element.unwrap();
    (shape, size, element.name, element.size, scope)
}

#[test]
fn variables_of_c_have_types_and_shapes() {
    let folder = tempdir().unwrap();
    let image = compile(folder.path(), "gcc", "p.c", C, &["-g"]);
    assert_eq!(facts(&image, "pairs"), (vec![7], 168, "pair".into(), 24, None));
    assert_eq!(facts(&image, "counts"), (vec![3, 5], 60, "int".into(), 4, None));
    assert_eq!(facts(&image, "letters"), (vec![10], 10, "char".into(), 1, None));
    assert_eq!(facts(&image, "numbers"), (vec![4], 8, "short int".into(), 2, None));
    assert_eq!(facts(&image, "pointer"), (vec![], 8, "pointer".into(), 8, None));
    assert_eq!(facts(&image, "calls"), (vec![6], 48, "long int".into(), 8, Some("main".into())));
    assert!(!found(&image, "counts").is_column_major);
    for name in ["pairs", "counts", "letters", "pointer"] {
        assert_eq!(found(&image, name).address, image.symbol(name).unwrap().address, "{name}");
    }
}

#[test]
fn structures_have_members() {
    let folder = tempdir().unwrap();
    let text = "struct inner { int a; char b[3]; };\n\
        struct base { short s; struct inner in[2]; struct inner one; union { long l; char c; } u; int bits : 3, more : 9; \
        struct { char x; double y; }; struct base *next; } table[4];\n\
        int main(void) { return table[1].one.a; }\n";
    let image = compile(folder.path(), "gcc", "p.c", text, &["-g"]);
    let element = found(&image, "table").element.unwrap();
    let members: Vec<_> =
        element.members.iter().map(|one| (one.name.as_str(), one.offset, one.size)).collect();
    let expected = [
        ("s", 0, 2),
        ("in", 4, 16),
        ("one.a", 20, 4),
        ("one.b", 24, 3),
        ("u", 32, 8),
        ("bits", 40, 4),
        ("more", 40, 4),
        ("x", 48, 1),
        ("y", 56, 8),
        ("next", 64, 8),
    ];
    assert_eq!(members, expected);
    let at = |offset| element.member_at(offset).map(|index| element.members[index].name.as_str());
    assert_eq!(
        [3, 4, 19, 26, 27, 63].map(at),
        [None, Some("in"), Some("in"), Some("one.b"), None, Some("y")]
    );
}

#[test]
fn variables_of_fortran_have_types_and_shapes() {
    let folder = tempdir().unwrap();
    let image = compile(folder.path(), "gfortran", "p.f90", FORTRAN, &["-g"]);
    assert_eq!(facts(&image, "mm"), (vec![10, 4], 320, "real(kind=8)".into(), 8, Some("m".into())));
    assert_eq!(facts(&image, "k0"), (vec![10], 40, "integer(kind=4)".into(), 4, Some("m".into())));
    assert_eq!(facts(&image, "kn"), (vec![5], 20, "integer(kind=4)".into(), 4, Some("m".into())));
    assert_eq!(facts(&image, "x"), (vec![100, 4], 3200, "real(kind=8)".into(), 8, Some("p".into())));
    assert_eq!(facts(&image, "c1"), (vec![5], 40, "complex(kind=4)".into(), 8, Some("blk".into())));
    assert_eq!(facts(&image, "c2"), (vec![7, 2], 112, "real(kind=8)".into(), 8, Some("blk".into())));
    assert!(found(&image, "x").is_column_major);
    assert_eq!(found(&image, "c2").address, image.symbol("blk_").unwrap().address + 40);
}

#[test]
fn without_debug_information_symbols_name_variables() {
    let folder = tempdir().unwrap();
    let image = compile(folder.path(), "gcc", "p.c", C, &[]);
    let counts = found(&image, "counts");
    assert_eq!((counts.size, counts.element, counts.shape), (60, None, vec![]));
    let image = compile(folder.path(), "gfortran", "p.f90", FORTRAN, &[]);
    assert_eq!(found(&image, "blk_").size, 152);
}

#[test]
fn variables_are_disjoint_whatever_a_file_says() {
    let folder = tempdir().unwrap();
    let whole = compile(folder.path(), "gfortran", "p.f90", FORTRAN, &["-g"]).bytes().to_vec();
    let mut random = fastrand::Rng::with_seed(1);
    let mut disjoint = 0;
    let files = sample(300, 3000);
    for _ in 0..files {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            let at = random.usize(..bytes.len());
            bytes[at] ^= random.u8(..);
        }
        let Ok(image) = Image::parse("damaged", bytes) else { continue };
        let variables = image.variables();
        assert!(variables.windows(2).all(|pair| pair[0].end() <= pair[1].address));
        disjoint += u32::from(variables.len() > 5);
    }
    assert!(disjoint > files / 3, "variables of {disjoint} of {files} files are known");
}
