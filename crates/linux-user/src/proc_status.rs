//! The files of /proc on a guest's process: its memory, threads, signals, limits and times. The host's files say that of the
//! engine's process.
//!
//! All memory that a program has mapped counts as resident: which pages the host has in memory depends on the host, and
//! figures that a program prints must repeat. With the virtual clock, so do times, faults, processors and switches.

use std::fmt::Write as _;

use crate::abi::Abi;
use crate::abi::signals::{DEFAULT, IGNORE, LAST, SignalAction};
use crate::loader::STACK;
use crate::state::clock::{SECOND, UPTIME};
use crate::state::kernel::Kernel;
use crate::state::threads::Task;
use guest_memory::{Memory, RegionBacking};

/// Clock ticks per second (`USER_HZ`).
const TICKS: u64 = 100;

/// The sizes of a program's memory, in bytes.
#[derive(Default)]
struct MemorySizes {
    peak: u64,
    size: u64,
    anonymous: u64,
    files: u64,
    shared: u64,
    data: u64,
    stack: u64,
    /// Of the program's own code.
    text: u64,
    /// Of other code.
    libraries: u64,
    page_tables: u64,
}

impl MemorySizes {
    /// As the kernel counts them (vm_stat_account in mm/mmap.c).
    fn of<G: Abi>(kernel: &Kernel<G>, memory: &Memory) -> MemorySizes {
        let page = G::LAYOUT.page;
        let mut sizes = MemorySizes { peak: memory.peak_bytes(), ..MemorySizes::default() };
        // A table of the lowest level has the entries of so many bytes, one of the next level those of so many tables.
        let spans = [page * (page / 8), page * (page / 8) * (page / 8)];
        let mut next_tables = [0; 2];
        for (start, region) in memory.regions() {
            let bytes = region.end - start;
            let has = |bit: i32| region.protection & bit != 0;
            sizes.size += bytes;
            match &region.backing {
                RegionBacking::File { .. } => sizes.files += bytes,
                _ if region.shared => sizes.shared += bytes,
                _ => sizes.anonymous += bytes,
            }
            match &region.backing {
                RegionBacking::Named(STACK) => sizes.stack += bytes,
                RegionBacking::File { path, .. } if has(libc::PROT_EXEC) && !has(libc::PROT_WRITE) => {
                    let is_program = **path == kernel.executable;
                    *(if is_program { &mut sizes.text } else { &mut sizes.libraries }) += bytes;
                }
                _ if has(libc::PROT_WRITE) && !region.shared => sizes.data += bytes,
                _ => {}
            }
            for (span, next) in spans.into_iter().zip(&mut next_tables) {
                let (first, last) = ((start / span).max(*next), (region.end - 1) / span);
                sizes.page_tables += page * (last + 1).saturating_sub(first);
                *next = (*next).max(last + 1);
            }
        }
        sizes
    }
}

/// The signals of a thread and its process, as masks of the guest.
struct SignalMasks {
    pending: u64,
    process_pending: u64,
    blocked: u64,
    ignored: u64,
    caught: u64,
}

impl SignalMasks {
    /// Of a thread, by the masks in the host's status. What the host does not know is known of the calling thread.
    fn of<G: Abi>(kernel: &Kernel<G>, caller: &Task<G>, status: &str) -> SignalMasks {
        let mask = |name| G::guest_mask(u64::from_str_radix(field(status, name), 16).unwrap_or(0));
        let is_caller = field(status, "Pid") == caller.address.id.to_string();
        let (held, blocked) = match is_caller {
            true => (caller.signals.held_mask(), caller.signals.mask),
            false => (0, mask("SigBlk")),
        };
        let actions = |wanted: fn(SignalAction) -> bool| {
            let wanted = |&signal: &i32| wanted(kernel.actions.get(signal));
            (1..=LAST).filter(wanted).fold(0, |all, signal| all | host::bit(signal))
        };
        SignalMasks {
            pending: mask("SigPnd") | held,
            process_pending: mask("ShdPnd"),
            blocked,
            ignored: actions(|action| action.handler == IGNORE),
            caught: actions(|action| ![DEFAULT, IGNORE].contains(&action.handler)),
        }
    }
}

/// The value of a field of status.
fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().trim()
}

/// The contents of a file of this process or of one of its threads, by those of the host's.
pub fn contents<G: Abi>(
    kernel: &Kernel<G>,
    caller: &Task<G>,
    memory: &Memory,
    name: &str,
    host: &str,
) -> String {
    match name {
        "status" => status(kernel, caller, memory, host),
        "stat" => stat(kernel, caller, memory, host),
        "statm" => statm(kernel, memory),
        "limits" => limits(kernel, host),
        _ => host.into(),
    }
}

/// /proc/PID/status (proc_pid_status(5)).
fn status<G: Abi>(kernel: &Kernel<G>, caller: &Task<G>, memory: &Memory, host: &str) -> String {
    /// The field is that of the host's processor.
    const OF_HOST: [&str; 3] = ["untag_mask", "x86_Thread_features", "x86_Thread_features_locked"];
    let (sizes, signals) = (MemorySizes::of(kernel, memory), SignalMasks::of(kernel, caller, host));
    let mut text = String::new();
    for line in host.lines() {
        let Some((name, value)) = line.split_once(":\t") else {
            let _ = writeln!(text, "{line}");
            continue;
        };
        let memory = |bytes: u64| format!("{:8} kB", bytes / 1024);
        let mask = |mask: u64| format!("{mask:016x}");
        let new = match name {
            "FDSize" => descriptor_table_size().to_string(),
            "VmPeak" | "VmHWM" => memory(sizes.peak),
            "VmSize" | "VmRSS" => memory(sizes.size),
            "RssAnon" => memory(sizes.anonymous),
            "RssFile" => memory(sizes.files),
            "RssShmem" => memory(sizes.shared),
            "VmData" => memory(sizes.data),
            "VmStk" => memory(sizes.stack),
            "VmExe" => memory(sizes.text),
            "VmLib" => memory(sizes.libraries),
            "VmPTE" => memory(sizes.page_tables),
            "VmSwap" => memory(0),
            "Threads" => kernel.threads.alive.len().to_string(),
            "SigQ" if kernel.is_virtual() => format!("0/{}", value.rsplit('/').next().unwrap_or("0")),
            "SigPnd" => mask(signals.pending),
            "ShdPnd" => mask(signals.process_pending),
            "SigBlk" => mask(signals.blocked),
            "SigIgn" => mask(signals.ignored),
            "SigCgt" => mask(signals.caught),
            "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" if kernel.is_virtual() => "0".into(),
            _ if OF_HOST.contains(&name) => continue,
            _ => value.into(),
        };
        let _ = writeln!(text, "{name}:\t{new}");
    }
    text
}

/// The number of entries in the table of descriptors: 64, or the power of 2 that the guest's descriptors need.
fn descriptor_table_size() -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let highest = numbers.filter(|&number| !crate::reserved::is_reserved(number)).max();
    (highest.unwrap_or(0) as usize + 1).next_power_of_two().max(64)
}

/// /proc/PID/stat (proc_pid_stat(5)), with 0 for addresses, as a reader without permission sees it.
fn stat<G: Abi>(kernel: &Kernel<G>, caller: &Task<G>, memory: &Memory, host: &str) -> String {
    // The second field is a name in parentheses that may contain any character.
    let Some((name, rest)) = host.rsplit_once(')') else { return String::new() };
    let id = name.split(' ').next().unwrap_or_default();
    let task = format!("/proc/self/task/{id}/status");
    let signals = SignalMasks::of(kernel, caller, &std::fs::read_to_string(task).unwrap_or_default());
    let (size, page) = (memory.mapped_bytes(), G::LAYOUT.page);
    // The masks have the signals that are no real-time signals.
    let mask = |mask: u64| (mask & 0x7fff_ffff).to_string();
    let ticks = |nanoseconds: u64| (nanoseconds / (SECOND / TICKS)).to_string();
    let is_virtual = kernel.is_virtual();
    let fields = rest.split_ascii_whitespace().zip(3..).map(|(value, number)| match number {
        // Faults, times of children, the processor, and waiting for disks.
        10..=13 | 15..=17 | 39 | 42..=44 if is_virtual => "0".into(),
        14 if is_virtual => ticks(kernel.instructions),
        20 => kernel.threads.alive.len().to_string(),
        22 if is_virtual => ticks(UPTIME * SECOND),
        23 => size.to_string(),
        24 => (size / page).to_string(),
        26..=30 | 45..=51 => "0".into(),
        31 => mask(signals.pending | signals.process_pending),
        32 => mask(signals.blocked),
        33 => mask(signals.ignored),
        34 => mask(signals.caught),
        _ => value.to_string(),
    });
    format!("{name}) {}\n", fields.collect::<Vec<_>>().join(" "))
}

/// /proc/PID/stat of another guest's process, with 0 for addresses and for the sizes of its engine's memory.
pub fn stat_of_other(host: &str) -> String {
    let Some((name, rest)) = host.rsplit_once(')') else { return String::new() };
    let fields = rest.split_ascii_whitespace().zip(3..).map(|(value, number)| match number {
        23 | 24 | 26..=30 | 45..=51 => "0",
        _ => value,
    });
    format!("{name}) {}\n", fields.collect::<Vec<_>>().join(" "))
}

/// /proc/PID/status of another guest's process, without its engine's memory and actions of signals.
pub fn status_of_other<G: Abi>(host: &str) -> String {
    let mut text = String::new();
    for line in host.lines() {
        let (name, value) = line.split_once(":\t").unwrap_or((line, ""));
        match name {
            "SigIgn" | "SigCgt" => {}
            "SigPnd" | "ShdPnd" | "SigBlk" => {
                let mask = G::guest_mask(u64::from_str_radix(value, 16).unwrap_or(0));
                let _ = writeln!(text, "{name}:\t{mask:016x}");
            }
            _ if name.starts_with("Vm") || name.starts_with("Rss") => {}
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

/// /proc/PID/statm (proc_pid_statm(5)), in pages.
fn statm<G: Abi>(kernel: &Kernel<G>, memory: &Memory) -> String {
    let sizes = MemorySizes::of(kernel, memory);
    let pages = |bytes: u64| bytes / G::LAYOUT.page;
    let size = pages(sizes.size);
    let (shared, text) = (pages(sizes.files + sizes.shared), pages(sizes.text));
    format!("{size} {size} {shared} {text} 0 {} 0\n", pages(sizes.data + sizes.stack))
}

/// /proc/PID/limits, with the limits that the engine keeps for the guest.
fn limits<G: Abi>(kernel: &Kernel<G>, host: &str) -> String {
    /// Where the columns begin that follow the name: limits, and units.
    const COLUMNS: [usize; 3] = [26, 47, 68];
    let names = [
        ("data size", libc::RLIMIT_DATA),
        ("stack size", libc::RLIMIT_STACK),
        ("address space", libc::RLIMIT_AS),
    ];
    let line = |line: &str| {
        let known = names
            .iter()
            .find(|(name, _)| line.strip_prefix("Max ").is_some_and(|rest| rest.starts_with(name)));
        let parts = COLUMNS.map(|column| line.get(column..).unwrap_or_default());
        let hard = parts[1].split(' ').next().unwrap_or_default();
        let name = line.get(..COLUMNS[0]).unwrap_or_default();
        let text = |limit: u64| if limit >= G::UNLIMITED { "unlimited".into() } else { limit.to_string() };
        let own =
            known.and_then(|(_, resource)| kernel.limits[*resource as usize]).map(|limits| limits.map(text));
        let stack = || [kernel.stack_bytes().to_string(), hard.to_string()];
        let own = own.or_else(|| known.filter(|(_, number)| *number == libc::RLIMIT_STACK).map(|_| stack()));
        match own {
            Some([soft, hard]) => format!("{name}{soft:<20} {hard:<20} {}\n", parts[2]),
            None => format!("{line}\n"),
        }
    };
    host.lines().map(line).collect()
}

/// The contents of a file of the whole system that shows the virtual clock or the guest's processor; None if the host's file is
/// right.
pub fn of_system<G: Abi>(kernel: &Kernel<G>, cpu: &G, name: &str) -> Option<String> {
    if name == "cpuinfo" {
        return cpu.processor_information();
    }
    let uptime = kernel.virtual_time(libc::CLOCK_BOOTTIME)? / (SECOND / TICKS);
    match name {
        "uptime" => Some(format!("{}.{:02} 0.00\n", uptime / TICKS, uptime % TICKS)),
        "loadavg" => Some(format!("0.00 0.00 0.00 1/1 {}\n", kernel.process)),
        _ => None,
    }
}
