//! The registry, and what `vlm apply` and `vlm free` do to the pool.

use vlm::{Allocation, Mount, PageTables, RegistryEntry, Size};

use crate::guard::{PAGE, guard_or_skip};

#[test]
fn memory_is_reserved_and_given_back() {
    let guard = guard_or_skip!();
    guard.said(&["add", "small", "8M", "--allocation", "fluid"]);
    guard.said(&["add", "large", "64M"]);
    assert_eq!(guard.counts(), guard.before(), "an entry alone reserves nothing");
    assert_eq!(
        guard.said(&["apply", "--dry-run"]),
        "`large`: 64 MiB would be reserved\n`small`: 8 MiB would be reserved\n"
    );
    assert_eq!(guard.counts(), guard.before());
    assert_eq!(guard.said(&["apply"]), "`large`: 64 MiB reserved\n`small`: 8 MiB reserved\n");
    let counts = guard.counts();
    assert_eq!(counts.total - guard.before().total, 36);
    assert_eq!(counts.free - guard.before().free, 4, "the pages of ALLOC are allocated");
    assert_eq!(counts.reserved - guard.before().reserved, 4, "those of FLUID are reserved");
    assert_eq!(
        guard.said(&["apply"]),
        "`large`: 64 MiB are reserved already\n`small`: 8 MiB are reserved already\n"
    );
    assert_eq!(guard.counts(), counts);
    let list = guard.said(&["list", "--format", "csv"]);
    assert!(list.contains("\nlarge,64 MiB,2 MiB,alloc,shared,root,any,reserved,64 MiB,0\n"), "{list}");
    assert!(list.contains("\nsmall,8 MiB,2 MiB,fluid,shared,root,any,reserved,8 MiB,0\n"), "{list}");
    assert!(guard.refused(&["modify", "large", "--size", "32M"]).contains("vlm free large"));
    assert!(guard.refused(&["remove", "large"]).contains("vlm free large"));
    guard.said(&["modify", "large", "--allocation", "fluid"]);
    guard.said(&["free", "large"]);
    assert_eq!(guard.counts().total - guard.before().total, 4);
    guard.said(&["modify", "large", "--size", "32M"]);
    guard.said(&["free", "--all"]);
    assert_eq!(guard.counts(), guard.before());
    guard.said(&["remove", "large"]);
    assert_eq!(guard.registry().entries.len(), 1);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_changes() {
    let guard = guard_or_skip!();
    guard.said(&["add", "huge", "64T"]);
    guard.said(&["add", "small", "8M"]);
    let message = guard.refused(&["apply"]);
    assert!(message.contains("`huge` (64 TiB) does not fit, `small` (8 MiB) fits"), "{message}");
    assert!(message.contains("256 MiB stay with the system"), "{message}");
    assert_eq!(guard.counts(), guard.before());
    guard.said(&["apply", "small"]);
}

#[test]
fn pages_of_other_programs_stay_theirs() {
    let guard = guard_or_skip!();
    guard.set("nr_hugepages", guard.before().total + 5);
    guard.reserve("orders", Size::mib(8), Allocation::Alloc);
    assert_eq!(guard.counts().total, guard.before().total + 9);
    guard.said(&["free", "orders"]);
    assert_eq!(guard.counts().total, guard.before().total + 5);
}

#[test]
fn memory_comes_from_the_node_that_is_asked_for() {
    let guard = guard_or_skip!();
    let entry = |name: &str, node| RegistryEntry {
        name: name.to_owned(),
        size: Size::mib(8),
        page_size: PAGE,
        allocation: Allocation::Alloc,
        page_tables: PageTables::Shared,
        owner: "nobody".to_owned(),
        node: Some(node),
    };
    guard.add_entry(entry("here", 0));
    guard.add_entry(entry("nowhere", 1000));
    guard.said(&["apply", "here"]);
    let message = guard.refused(&["apply"]);
    assert!(message.contains("no NUMA node 1000"), "{message}");
    let mount = Mount::at(&guard.registry().mount_point("here")).unwrap().unwrap();
    assert_eq!(mount.reserve, Size::mib(8));
    guard.said(&["free", "here"]);
    assert_eq!(guard.counts(), guard.before());
}

#[test]
fn an_owner_that_does_not_exist_is_refused() {
    let guard = guard_or_skip!();
    guard.said(&["add", "orders", "8M", "--owner", "no-such-user"]);
    let message = guard.refused(&["apply"]);
    assert!(message.contains("no user or group `no-such-user`"), "{message}");
    assert_eq!(guard.counts(), guard.before());
}
