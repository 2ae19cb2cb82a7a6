//! Each way in which the kernel's promises can be lost ends in a message, and never in a signal.

use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::ptr;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use vlm::{Access, Allocation, Section, Size};

use crate::guard::{Guard, PAGE, guard_or_skip};
use crate::sections::fill;

/// Takes and touches huge pages as any program may, until the value is dropped.
struct Thief {
    address: *mut std::ffi::c_void,
    length: usize,
}

impl Thief {
    fn take(pages: usize) -> Result<Thief, Errno> {
        let name: &CStr = c"thief";
        let file = rustix::fs::memfd_create(name, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB)?;
        let length = pages * PAGE.bytes() as usize;
        rustix::fs::ftruncate(&file, length as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: The kernel chooses unused addresses.
        let address = unsafe {
            mmap(ptr::null_mut(), length, access, MapFlags::SHARED | MapFlags::POPULATE, file.as_fd(), 0)
        }?;
        Ok(Thief { address, length })
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        // SAFETY: The mapping is this value's alone.
        unsafe { munmap(self.address, self.length) }.unwrap();
    }
}

#[test]
fn a_thief_gets_nothing_of_a_reserve() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(16), Allocation::Fluid);
    let unreserved = (guard.counts().free - guard.counts().reserved) as usize;
    assert_eq!(Thief::take(unreserved + 1).err(), Some(Errno::NOMEM));
    let mapping = Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap();
    assert_eq!(Thief::take(unreserved + 1).err(), Some(Errno::NOMEM));
    fill(&mapping, 1);
}

#[test]
fn pages_that_a_thief_took_from_the_pool_are_not_counted_as_the_sections() {
    let guard = guard_or_skip!();
    guard.set("nr_hugepages", guard.before().total + 4);
    let thief = Thief::take(guard.before().free as usize + 4 - guard.before().reserved as usize).unwrap();
    guard.reserve("orders", Size::mib(16), Allocation::Alloc);
    guard.said(&["free", "orders"]);
    assert_eq!((guard.counts().total, guard.counts().surplus), (guard.before().total + 4, 0));
    drop(thief);
}

fn with_surplus(guard: &Guard) -> Thief {
    guard.set("nr_overcommit_hugepages", 2);
    let unreserved = (guard.counts().free - guard.counts().reserved) as usize;
    Thief::take(unreserved + 2).unwrap()
}

#[test]
fn surplus_pages_are_refused() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(8), Allocation::Fluid);
    guard.add("other", Size::mib(8), Allocation::Fluid);
    guard.set("nr_overcommit_hugepages", 2);
    assert!(guard.refused(&["apply"]).contains("nr_overcommit_hugepages is 2"));
    assert!(guard.said(&["check"]).contains("warning: vm.nr_overcommit_hugepages is 2"));
    let thief = with_surplus(&guard);
    for message in [
        guard.refused(&["apply"]),
        String::from_utf8(guard.vlm(&["check"]).stdout).unwrap(),
        Section::create(&registry, "orders").unwrap_err().to_string(),
    ] {
        assert!(message.contains("2 surplus pages"), "{message}");
    }
    assert_eq!(guard.vlm(&["check"]).status.code(), Some(1));
    drop(thief);
    guard.set("nr_overcommit_hugepages", 0);
    guard.said(&["apply"]);
    fill(&Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap(), 1);
}

#[test]
fn a_pool_that_shrank_is_noticed_before_a_touch() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(16), Allocation::Fluid);
    let mapping = Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap();
    let total = guard.counts().total;
    guard.set("nr_hugepages", guard.before().total);
    // The kernel keeps what is mapped, as surplus pages.
    fill(&mapping, 1);
    let message = Section::open(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap_err().to_string();
    assert!(message.contains("8 surplus pages"), "{message}");
    drop(mapping);
    // Now the surplus pages are freed, and the reserve is gone.
    let output = guard.vlm(&["list"]);
    assert!(output.status.success());
    let counts = guard.counts();
    assert!(counts.reserved > counts.free, "the reserve is lost: {counts:?}");
    let message = Section::create(&registry, "orders").unwrap_err().to_string();
    assert!(message.contains("16 MiB of the memory that is reserved for sections is gone"), "{message}");
    assert!(String::from_utf8(guard.vlm(&["check"]).stdout).unwrap().contains("alarm: "));
    guard.set("nr_hugepages", total);
    guard.said(&["check"]);
    fill(&Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap(), 1);
}

#[test]
fn a_truncated_section_is_not_mapped() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(16), Allocation::Alloc);
    let section = Section::create(&registry, "orders").unwrap();
    let file = File::options().write(true).open(guard.mounts().join("orders/section")).unwrap();
    file.set_len(PAGE.bytes()).unwrap();
    for section in [section, Section::open(&registry, "orders").unwrap()] {
        let message = section.map(Access::ReadWrite).unwrap_err().to_string();
        assert!(message.contains("`orders` was truncated to 2 MiB of 16 MiB"), "{message}");
    }
    assert!(!guard.said(&["check"]).contains("truncated"), "its last user is gone");
}

#[test]
fn a_truncation_is_reported_while_the_section_is_used() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(16), Allocation::Alloc);
    let _section = Section::create(&registry, "orders").unwrap();
    File::options()
        .write(true)
        .open(guard.mounts().join("orders/section"))
        .unwrap()
        .set_len(PAGE.bytes())
        .unwrap();
    let output = guard.vlm(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("alarm: section `orders` was truncated to 2 MiB of 16 MiB")
    );
}

#[test]
fn memory_in_use_is_not_freed() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(8), Allocation::Alloc);
    let mapping = Section::create(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap();
    let counts = guard.counts();
    let message = guard.refused(&["free", "orders"]);
    assert!(message.contains(&format!("({})", std::process::id())), "{message}");
    assert_eq!(guard.counts(), counts);
    fill(&mapping, 1);
}

#[test]
fn without_rights_the_message_says_which_are_missing() {
    let guard = guard_or_skip!();
    guard.add("orders", Size::mib(8), Allocation::Alloc);
    let as_nobody = |arguments: &[&str]| {
        let mut command = guard.command(arguments);
        let output = command.uid(65534).gid(65534).current_dir("/").output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    // The command is in a folder of root's, where the build is; then nobody can execute it.
    if guard.command(&["--help"]).uid(65534).gid(65534).current_dir("/").output().is_err() {
        eprintln!("skipped: other users cannot execute {}", env!("CARGO_BIN_EXE_vlm"));
        return;
    }
    // The lock of the registry is root's.
    assert!(as_nobody(&["apply"]).contains("vlm.toml.lock"));
    assert!(as_nobody(&["add", "other", "8M"]).contains("vlm.toml.lock"));
    guard.said(&["apply"]);
    let message = as_nobody(&["run", "--section", "orders", "--", "true"]);
    assert!(message.contains("section `orders` belongs to root: run as this user"), "{message}");
    assert!(fs::read_dir(guard.mounts().join("orders")).is_ok());
}

#[test]
fn an_address_space_that_is_too_small_is_named() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(8), Allocation::Fluid);
    let output = guard.command(&["verify", "orders"]);
    let script = format!("ulimit -v 900000; exec {} verify orders", env!("CARGO_BIN_EXE_vlm"));
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .envs(output.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("raise its limit (`ulimit -v`)"), "{message}");
}
