//! Code so large that branches do not reach across it.

use pathlength_spike::program::Frozen;
use pathlength_spike::{Problem, assemble, lift, output};

use crate::random::shuffled;
use crate::{Original, guest};

/// More than twice what a branch reaches.
const PADDING: &str = "
__asm__(\".text\\n\\t.align 4\\n\\t.type padding,@function\\npadding:\\n\\t.skip 9 << 20\\n\\t.size padding,.-padding\");
";

/// The feature program in random order, with the padding in the middle of it.
#[test]
fn branches_go_by_stubs() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("far.c");
    let text = std::fs::read_to_string(guest::source("feature.c")).unwrap() + PADDING;
    std::fs::write(&source, text).unwrap();
    let original = Original::new(source.to_str().unwrap(), &["-O2", "-g", "-fexceptions"], |_| ());
    let program = lift::lift(std::fs::read(original.path("original")).unwrap()).unwrap();
    for seed in 1..testing::sample(2, 3) {
        let mut layout = shuffled(&program, seed);
        let name = |one: &assemble::Fragment| program.procedures[one.procedure as usize].name.as_str();
        let padding = layout.fragments.iter().position(|one| name(one) == "padding").unwrap();
        let padding = layout.fragments.remove(padding);
        layout.fragments.insert(layout.fragments.len() / 2, padding);
        let (bytes, assembly) = output::write(&program, &layout).unwrap();
        // `br $28,.+4`, which the compiler does not write.
        let stubs = assembly.words.iter().filter(|word| **word == 0xc380_0000).count();
        assert!(stubs > 20, "only {stubs} stubs");
        let rewritten = original.path("rewritten");
        guest::write_executable(&rewritten, &bytes);
        original.check_runs(&rewritten, "far", seed);
    }
}

/// Where the register of stubs is in use, there is no stub.
#[test]
fn a_register_in_use_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("far.c");
    let text = "
        long far(long value) {
            __asm__ volatile(\"lda $28, 5\\n\\tbeq %0, 1f\\n\\tlda $28, 6\\n1:\\taddq %0, $28, %0\" : \"+r\"(value) : : \"$28\");
            return value;
        }
        int main(void) { return (int)far(0); }
    ";
    std::fs::write(&source, text.to_string() + PADDING).unwrap();
    let image = directory.path().join("image");
    guest::build(&[source.to_str().unwrap()], &["-O1"], &image);
    let program = lift::lift(std::fs::read(&image).unwrap()).unwrap();
    let far = program.procedures.iter().position(|one| one.name == "far").unwrap();
    assert_eq!(program.procedures[far].frozen, None::<Frozen>);
    let mut layout = pathlength_spike::layout::original(&program);
    let fragment = layout.fragments.iter_mut().find(|one| one.procedure == far as u32).unwrap();
    // The branch's own block first, and what it leads to behind the padding.
    let rest = fragment.blocks.split_off(1);
    let rest = assemble::Fragment { blocks: rest, ..fragment.clone() };
    let is_padding = |one: &assemble::Fragment| program.procedures[one.procedure as usize].name == "padding";
    let (padding, mut fragments): (Vec<_>, Vec<_>) = layout.fragments.into_iter().partition(is_padding);
    assert_eq!(padding.len(), 1);
    fragments.extend(padding.into_iter().chain([rest]));
    layout.fragments = fragments;
    match output::write(&program, &layout) {
        Err(Problem::OutOfReach { .. }) => {}
        other => panic!("{:?}", other.map(|_| "written")),
    }
}
