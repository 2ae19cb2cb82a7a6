//! Create, map, unmap, delete.

use std::fs;

use vlm::{Access, Allocation, Mapping, PageTables, RegistryEntry, SHARING_UNIT, Section, Size, usage};

use crate::guard::{PAGE, guard_or_skip};

/// Writes all bytes.
pub fn fill(mapping: &Mapping, byte: u8) {
    // SAFETY: The mapping is writable, and no reference to its memory exists.
    unsafe { mapping.address().write_bytes(byte, mapping.length()) };
}

/// Whether all bytes have a value.
pub fn is_all(mapping: &Mapping, byte: u8) -> bool {
    // SAFETY: The mapping is readable, and no test writes to it at the same time.
    unsafe { std::slice::from_raw_parts(mapping.address(), mapping.length()) }
        .iter()
        .all(|&found| found == byte)
}

#[test]
fn sections_are_zeroed_shared_and_given_back() {
    for allocation in [Allocation::Alloc, Allocation::Fluid] {
        let guard = guard_or_skip!();
        let registry = guard.reserve("orders", Size::mib(64), allocation);
        assert!(Section::open(&registry, "orders").unwrap_err().to_string().contains("does not exist"));
        for _ in 0..3 {
            let section = Section::create(&registry, "orders").unwrap();
            assert!(Section::create(&registry, "orders").unwrap_err().to_string().contains("exists already"));
            let first = section.map(Access::ReadWrite).unwrap();
            assert_eq!(first.length(), 64 << 20);
            assert!(is_all(&first, 0));
            fill(&first, 7);
            let other = Section::open(&registry, "orders").unwrap().map(Access::ReadOnly).unwrap();
            // SAFETY: The last byte of a mapping that is readable.
            assert_eq!(unsafe { other.address().add(other.length() - 1).read_volatile() }, 7);
            drop((section, first));
            assert!(usage(&registry, "orders").unwrap().is_in_use, "a mapping alone uses the section");
            assert!(Section::open(&registry, "orders").is_ok());
            drop(other);
            let usage = usage(&registry, "orders").unwrap();
            assert_eq!((usage.is_in_use, usage.available), (false, Size::mib(64)));
        }
        assert!(Section::open(&registry, "orders").is_err(), "its last user is gone");
    }
}

#[test]
fn addresses_are_aligned_and_nothing_private_lands_beside_them() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(8), Allocation::Fluid);
    let section = Section::create(&registry, "orders").unwrap();
    let shared = section.map(Access::ReadWrite).unwrap();
    let private = section.map(Access::ReadOnly).unwrap();
    assert_eq!(shared.address().addr() % SHARING_UNIT, 0);
    assert_eq!(private.address().addr() % SHARING_UNIT, 0);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let rest = format!("{:x}-", shared.address().addr() + shared.length());
    let line = maps.lines().find(|line| line.starts_with(&rest)).expect("the rest of the GiB is reserved");
    assert!(line.contains("---p"), "{line}");
    let end = usize::from_str_radix(line.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
    assert!(end >= shared.address().addr() + SHARING_UNIT, "{line}");
}

#[test]
fn sharing_is_what_was_asked_for() {
    let guard = guard_or_skip!();
    for (name, page_tables) in [("with", PageTables::Shared), ("without", PageTables::Private)] {
        guard.add_entry(RegistryEntry {
            name: name.to_owned(),
            size: Size::gib(1),
            page_size: PAGE,
            allocation: Allocation::Fluid,
            page_tables,
            owner: "root".to_owned(),
            node: None,
        });
    }
    guard.said(&["apply", "with"]);
    let shared = guard.said(&["verify", "with"]);
    assert!(shared.contains("1 of 1 whole GiB have shared page tables"), "{shared}");
    assert!(faults(&shared) < 16, "one, and a few of the process's own code: {shared}");
    guard.said(&["free", "with"]);
    guard.said(&["apply", "without"]);
    let private = guard.said(&["verify", "without"]);
    assert!(private.contains("0 of 1 whole GiB have shared page tables"), "{private}");
    assert!(faults(&private) >= 512, "{private}");
}

/// The faults that `vlm verify` prints.
fn faults(output: &str) -> u64 {
    let (_, rest) = output.split_once("minor faults of a process: ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_deleted_section_keeps_its_memory_until_its_users_end() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(8), Allocation::Alloc);
    let mapping = Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap();
    fill(&mapping, 3);
    Section::delete(&registry, "orders").unwrap();
    assert!(Section::delete(&registry, "orders").unwrap_err().to_string().contains("does not exist"));
    let message = Section::create(&registry, "orders").unwrap_err().to_string();
    assert!(message.contains("8 MiB of a deleted section are still mapped"), "{message}");
    assert!(message.contains(&std::process::id().to_string()), "the process is named: {message}");
    assert!(is_all(&mapping, 3));
    drop(mapping);
    let mapping = Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap();
    assert!(is_all(&mapping, 0));
}

#[test]
fn allocation_is_changed_without_the_program() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(8), Allocation::Fluid);
    for allocation in ["alloc", "fluid", "alloc"] {
        guard.said(&["modify", "orders", "--allocation", allocation]);
        guard.said(&["apply"]);
        let mapping = Section::create(&guard.registry(), "orders").unwrap().map(Access::ReadWrite).unwrap();
        let untouched = if allocation == "alloc" { 0 } else { 4 };
        assert_eq!(guard.counts().reserved - guard.before().reserved, untouched, "{allocation}");
        fill(&mapping, 1);
    }
}
