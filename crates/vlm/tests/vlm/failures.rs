//! Each way in which the kernel's promises can be lost ends in a message, and never in a signal.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
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

/// The registry of [`a_process_that_touches_when_told`].
const CHILDS_REGISTRY: &str = "VLM_TEST_CHILDS_REGISTRY";

/// Gives signal handlers an alternate stack on which nothing has room but what the kernel saves.
fn use_smallest_signal_stack() {
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: No preconditions.
    let smallest = unsafe { libc::getauxval(AT_MINSIGSTKSZ) }.max(2048) as usize;
    let (page, length) = (4096, 4096 + smallest.next_multiple_of(4096));
    // SAFETY: The kernel chooses unused addresses. The mapping stays for as long as the process, with an inaccessible page below
    // the stack.
    unsafe {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let start = rustix::mm::mmap_anonymous(ptr::null_mut(), length, access, MapFlags::PRIVATE).unwrap();
        munmap(start, page).unwrap();
        let stack = libc::stack_t { ss_sp: start.byte_add(page), ss_flags: 0, ss_size: smallest };
        assert_eq!(libc::sigaltstack(&stack, ptr::null_mut()), 0);
    }
}

/// The child of the tests below: maps the section, says so, and touches all of it again at the end of standard input.
#[test]
#[ignore = "no test by itself: others start it as a process"]
fn a_process_that_touches_when_told() {
    let Some(path) = std::env::var_os(CHILDS_REGISTRY) else { panic!("{CHILDS_REGISTRY} is not set") };
    let registry = vlm::Registry::load(path.as_ref()).unwrap();
    let mapping = Section::open(&registry, "orders").unwrap().map(Access::ReadWrite).unwrap();
    fill(&mapping, 1);
    println!("mapped");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    use_smallest_signal_stack();
    fill(&mapping, 2);
}

/// Waits until the child says that it has mapped its memory, then lets it go on after `then`.
fn run_child(mut command: Command, then: impl FnOnce()) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("mapped")), "{:?}", child.wait_with_output());
    then();
    child.wait_with_output().unwrap()
}

fn child_of_library(guard: &Guard) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "failures::a_process_that_touches_when_told", "--nocapture", "--ignored"]);
    command.env(CHILDS_REGISTRY, guard.registry_path());
    command
}

fn truncate(path: &Path, length: u64) {
    File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn a_truncation_under_a_mapping_ends_in_a_message() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(16), Allocation::Alloc);
    let _section = Section::create(&registry, "orders").unwrap();
    let file = guard.mounts().join("orders/section");
    assert!(run_child(child_of_library(&guard), || ()).status.success());
    let output = run_child(child_of_library(&guard), || truncate(&file, 3 * PAGE.bytes()));
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("vlm: section `orders` was truncated to 6 MiB by another program"), "{message}");
}

#[test]
fn a_signal_that_was_sent_has_the_action_before() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(16), Allocation::Fluid);
    let handler = "signal.signal(signal.SIGBUS, lambda *_: print('handled', flush=True)); ";
    for (set, expected) in [("", (Some(libc::SIGBUS), "")), (handler, (None, "handled\n"))] {
        let program = format!("import os, signal; {set}os.kill(os.getpid(), signal.SIGBUS)");
        let output = guard.vlm(&["run", "--section", "orders", "--", "python3", "-c", &program]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.signal(), said.as_ref()), expected, "{output:?}");
    }
}

#[test]
fn a_truncation_under_an_unmodified_program_ends_in_a_message() {
    let guard = guard_or_skip!();
    guard.reserve("orders", Size::mib(16), Allocation::Fluid);
    let name = format!("vlm-truncation-{}", std::process::id());
    let program = format!(
        "import mmap, os, sys\n\
         file = os.open('/dev/shm/{name}', os.O_RDWR | os.O_CREAT)\n\
         os.ftruncate(file, 8 << 20)\n\
         memory = mmap.mmap(file, 8 << 20)\n\
         memory[7 << 20] = 1\n\
         print('mapped', flush=True)\n\
         sys.stdin.read()\n\
         memory[7 << 20] = 2\n"
    );
    let command = || guard.command(&["run", "--section", "orders", "--", "python3", "-c", &program]);
    assert!(run_child(command(), || ()).status.success());
    let output = run_child(command(), || {
        let files = fs::read_dir(guard.mounts().join("orders")).unwrap().map(|file| file.unwrap().path());
        let own: Vec<_> = files.filter(|file| file.to_string_lossy().contains("/posix-")).collect();
        assert_eq!(own.len(), 1, "the program's memory is on the section");
        truncate(&own[0], PAGE.bytes());
    });
    fs::remove_file(Path::new("/dev/shm").join(name)).unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("vlm: section `orders` was truncated to 2 MiB by another program"), "{message}");
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
    assert!(as_nobody(&["apply"]).contains("changing the registry needs root's rights: run it by sudo"));
    assert!(as_nobody(&["add", "other", "8M"]).contains("changing the registry needs root's rights"));
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
