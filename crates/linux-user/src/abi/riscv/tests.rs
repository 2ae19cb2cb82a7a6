//! Compares the tables with the C library's headers for RISC-V.

use std::collections::BTreeMap;

use host::Errno;
use riscv::RiscvCpu;

use super::{flags, numbers, requests, table};
use crate::abi::header_constants::{CrossCompiler, has_prefix};
use crate::abi::{Abi, signals};
use crate::calls::rlimit;
use crate::reserved;
use crate::table::SystemCallAction;

const RISCV: CrossCompiler = CrossCompiler {
    compiler: "riscv64-linux-gnu-gcc",
    emulator: "qemu-riscv64",
    sysroot: "/usr/riscv64-linux-gnu",
};

fn is_word(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix) && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

#[test]
fn errors_and_signals() {
    let names = RISCV.constants(&["errno.h", "signal.h"], |name| {
        is_word(name, "E") || is_word(name, "SIG") && !["SIGRTMIN", "SIGRTMAX", "SIGSTKSZ"].contains(&name)
    });
    assert!(names.len() > 150, "{}", names.len());
    for (name, (guest, host)) in names {
        if name.starts_with("SIG") {
            assert_eq!(RiscvCpu::host_signal(guest as i32), Some(host as i32), "{name}");
            assert_eq!(RiscvCpu::guest_signal(host as i32), guest as i32, "{name}");
        } else {
            assert_eq!(RiscvCpu::guest_error(Errno(host as i32)), guest, "{name}");
        }
    }
    assert!((1..=signals::LAST).all(|it| RiscvCpu::guest_signal(RiscvCpu::host_signal(it).unwrap()) == it));
}

#[test]
fn flag_words() {
    let headers =
        ["fcntl.h", "sys/mman.h", "sys/eventfd.h", "sys/timerfd.h", "sys/signalfd.h", "sys/socket.h"];
    // O_LARGEFILE is 0 for programs of 64 bits; the others never reach the host or are hints.
    let left_out = "O_LARGEFILE MAP_FIXED MAP_FIXED_NOREPLACE MAP_GROWSDOWN MAP_DENYWRITE MAP_EXECUTABLE MAP_NONBLOCK \
                    MAP_STACK MAP_FAILED MAP_HUGE_SHIFT MAP_HUGE_MASK MAP_SYNC MAP_32BIT";
    let left_out: Vec<&str> = left_out.split_whitespace().collect();
    let prefixes = ["O_", "MAP_", "MCL_", "EFD_", "SFD_", "SOCK_"];
    let names = RISCV.constants(&headers, |name| has_prefix(name, &prefixes) && !left_out.contains(&name));
    assert!(names.len() > 40, "{}", names.len());
    for (name, (guest, host)) in names {
        let table = match name.split('_').next() {
            Some("O") => &flags::OPEN,
            Some("MAP") => &flags::MAP,
            Some("MCL") => &flags::LOCK_ALL,
            Some("SOCK") => &flags::SOCKET_TYPE,
            _ => &flags::DESCRIPTOR,
        };
        assert_eq!((table.host(guest), table.guest(host)), (host, guest), "{name}");
    }
}

#[test]
fn numbers_that_name_something() {
    let headers = ["fcntl.h", "sys/socket.h", "sys/resource.h"];
    let names = RISCV.constants(&headers, |name| has_prefix(name, &["F_", "SO_", "SOL_SOCKET", "RLIMIT_"]));
    let has = |pair: (u64, u64)| names.values().any(|known| *known == pair);
    assert!(numbers::FCNTL_COMMANDS.iter().all(|&(guest, host, _)| has((guest as u64, host as u64))));
    assert!(numbers::SOCKET_OPTIONS.iter().all(|&(guest, host)| has((guest, host as u64))));
    let locks = ["F_RDLCK", "F_WRLCK", "F_UNLCK"].map(|name| names[name]);
    assert_eq!(locks, RiscvCpu::LOCK_TYPES.map(|(guest, host)| (u64::from(guest), host as u64)));
    assert_eq!(names["SOL_SOCKET"], (RiscvCpu::SOCKET_LEVEL, libc::SOL_SOCKET as u64));
    for (name, (guest, host)) in names.iter().filter(|(name, _)| name.starts_with("RLIMIT_")) {
        if (*guest as usize) < crate::state::rlimit::RESOURCE_COUNT {
            assert_eq!(rlimit::host_resource::<RiscvCpu>(*guest), Ok(*host as u32), "{name}");
        }
    }
}

#[test]
fn requests_of_ioctl() {
    let headers = ["sys/types.h", "sys/ioctl.h", "linux/fs.h", "linux/filter.h", "linux/if_tun.h"];
    const NOT_SUPPORTED: [&str; 3] = ["TUNSETSTEERINGEBPF", "TUNSETFILTEREBPF", "TUNGETFILTER"];
    const UNSIZED: [&str; 8] = ["ISO7816", "RS485", "S2", "W2", "F2", "ETP", "ETN", "ETC"];
    let names = RISCV.constants(&headers, |name| {
        has_prefix(name, &["TIOC", "TCS", "TCG", "TCX", "TCF", "FIO", "FICLONE", "TUN"])
            && !UNSIZED.iter().any(|end| name.ends_with(end))
            && !["TCGETX", "TCSETX", "TCSETXF", "TCSETXW"].contains(&name)
    });
    let known: BTreeMap<u64, u64> = requests::REQUESTS.iter().map(|it| (it.0, it.1)).collect();
    for (name, (guest, host)) in names {
        if let Some(&converted) = known.get(&guest) {
            assert_eq!(converted, host, "{name}");
        }
        let required = name.starts_with("FIO") || name.starts_with("TUN") && name.as_bytes()[3] != b'_';
        assert!(known.contains_key(&guest) || !required || NOT_SUPPORTED.contains(&&*name), "{name}");
    }
    assert!(known.contains_key(&0x5401), "TCGETS");
}

/// The header of the installed C library may be older than the table.
#[test]
fn system_call_numbers() {
    let names = RISCV.constants(&["asm/unistd.h"], |name| name.starts_with("__NR"));
    // Only names that the host has, too, are in the result.
    assert!(names.len() > 200, "{}", names.len());
    let rows = table::ROWS.iter().map(|row| (row.number, row.name));
    let known: BTreeMap<&str, u64> =
        rows.chain(table::UNIMPLEMENTED.iter().copied()).map(|(number, name)| (name, number)).collect();
    for (name, (guest, _)) in &names {
        let name = name.strip_prefix("__NR_").unwrap_or(name);
        assert_eq!(known.get(name), Some(guest), "{name}");
    }
    assert!(table::ROWS.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert!(table::UNIMPLEMENTED.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(known.len(), table::ROWS.len() + table::UNIMPLEMENTED.len());
}

#[test]
fn what_the_arguments_of_each_call_that_is_passed_on_are_is_said() {
    for row in table::ROWS {
        if let SystemCallAction::Pass(number, _) | SystemCallAction::Wait(number, ..) = row.action {
            assert!(reserved::kinds(number).is_some(), "{}: add the host's call to KINDS", row.name);
        }
    }
}

#[test]
fn calls_that_move_control_have_the_numbers_that_readers_of_traces_use() {
    let calls = <RiscvCpu as guest::Guest>::INSTRUCTION_SET.control_calls();
    let name = crate::system_call_name::<RiscvCpu>;
    assert_eq!(name(calls.execute), "execve");
    let names: Vec<_> = calls.signal_returns.iter().map(|&number| name(number)).collect();
    assert_eq!(names, ["rt_sigreturn"]);
    assert_eq!([calls.creates_thread, calls.futex].map(name), ["clone", "futex"]);
    let mut names: Vec<_> = calls.may_wait.iter().map(|&number| name(number)).collect();
    names.sort();
    let expected = "accept accept4 clock_nanosleep connect epoll_pwait epoll_pwait2 fcntl flock futex futex_waitv \
                    mq_timedreceive mq_timedsend msgrcv nanosleep ppoll pselect6 read readv recvfrom recvmmsg recvmsg \
                    rt_sigsuspend rt_sigtimedwait semop semtimedop sendmsg sendto wait4 waitid writev";
    assert_eq!(names.join(" "), expected);
}
