//! Compares the conversion tables with the C library's headers: the same names compiled for the host and for Alpha
//! must have the numbers in the tables.

use std::collections::BTreeMap;

use alpha::cpu::Cpu;
use host::Errno;

use super::{flags, numbers, table, terminal, unimplemented};
use crate::abi::flags::FlagBits;
use crate::abi::header_constants::{CrossCompiler, has_prefix};
use crate::abi::{Abi, signals};
use crate::calls::rlimit;
use crate::reserved;
use crate::table::SystemCallAction;

const ALPHA: CrossCompiler = CrossCompiler {
    compiler: "alpha-linux-gnu-gcc",
    emulator: "qemu-alpha",
    sysroot: "/usr/alpha-linux-gnu",
};

/// The macros of some headers that both Alpha and the host define, with their values on both.
fn constants(headers: &[&str], wanted: impl Fn(&str) -> bool) -> BTreeMap<String, (u64, u64)> {
    ALPHA.constants(headers, wanted)
}

#[test]
fn errors() {
    let names = constants(&["errno.h"], |name| {
        name.starts_with('E') && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    });
    assert!(names.len() > 120, "{}", names.len());
    for (name, (alpha, host)) in names {
        assert_eq!(Cpu::guest_error(Errno(host as i32)), alpha, "{name}");
    }
}

#[test]
fn signal_numbers() {
    let names = constants(&["signal.h"], |name| {
        name.starts_with("SIG")
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            && !["SIGRTMIN", "SIGRTMAX", "SIGSTKSZ"].contains(&name)
    });
    assert!(names.len() > 30);
    for (name, (alpha, host)) in names {
        assert_eq!(Cpu::host_signal(alpha as i32), Some(host as i32), "{name}");
        assert_eq!(Cpu::guest_signal(host as i32), alpha as i32, "{name}");
    }
    for signal in 1..=signals::LAST {
        assert_eq!(Cpu::guest_signal(Cpu::host_signal(signal).unwrap()), signal);
    }
    assert_eq!(Cpu::guest_mask(Cpu::host_mask(u64::MAX)), u64::MAX);
}

#[test]
fn flag_words() {
    type Check =
        (&'static [&'static str], &'static [&'static str], &'static FlagBits, &'static [&'static str]);
    // MAP_FIXED and MAP_FIXED_NOREPLACE never reach the host; the other omitted flags are only hints.
    let checks: [Check; 5] = [
        (&["fcntl.h"], &["O_"], &flags::OPEN, &["O_LARGEFILE"]),
        (
            &["sys/mman.h"],
            &["MAP_"],
            &flags::MAP,
            &[
                "MAP_FIXED",
                "MAP_FIXED_NOREPLACE",
                "MAP_GROWSDOWN",
                "MAP_DENYWRITE",
                "MAP_EXECUTABLE",
                "MAP_NONBLOCK",
                "MAP_STACK",
                "MAP_FAILED",
                "MAP_HUGE_SHIFT",
                "MAP_HUGE_MASK",
                "MAP_SYNC",
            ],
        ),
        (&["sys/mman.h"], &["MCL_"], &flags::LOCK_ALL, &[]),
        (&["sys/eventfd.h", "sys/timerfd.h", "sys/signalfd.h"], &["EFD_", "SFD_"], &flags::DESCRIPTOR, &[]),
        (&["sys/socket.h"], &["SOCK_"], &flags::SOCKET_TYPE, &[]),
    ];
    for (headers, prefixes, table, left_out) in checks {
        let names = constants(headers, |name| has_prefix(name, prefixes) && !left_out.contains(&name));
        assert!(!names.is_empty());
        for (name, (alpha, host)) in names {
            assert_eq!(table.host(alpha), host, "{name}");
            assert_eq!(table.guest(host), alpha, "{name}");
        }
    }
}

#[test]
fn numbers_that_name_something() {
    let commands = constants(&["fcntl.h"], |name| has_prefix(name, &["F_"]));
    for &(alpha, host, _) in numbers::FCNTL_COMMANDS {
        let named = |pair: &(u64, u64)| *pair == (alpha as u64, host as u64);
        assert!(commands.values().any(named), "fcntl {alpha} {host}");
    }
    let locks = ["F_RDLCK", "F_WRLCK", "F_UNLCK"].map(|name| commands[name]);
    assert_eq!(locks, numbers::LOCK_TYPES.map(|(alpha, host)| (u64::from(alpha), host as u64)));

    let options = constants(&["sys/socket.h"], |name| has_prefix(name, &["SO_", "SOL_SOCKET"]));
    assert_eq!(options["SOL_SOCKET"], (numbers::SOCKET_LEVEL, libc::SOL_SOCKET as u64));
    for &(alpha, host) in numbers::SOCKET_OPTIONS {
        assert!(options.values().any(|&pair| pair == (alpha, host as u64)), "option {alpha:#x} {host}");
    }

    for (name, (alpha, host)) in constants(&["sys/resource.h"], |name| has_prefix(name, &["RLIMIT_"])) {
        if (alpha as usize) < crate::state::rlimit::RESOURCE_COUNT {
            assert_eq!(rlimit::host_resource::<Cpu>(alpha), Ok(host as u32), "{name}");
        }
    }
}

#[test]
fn terminal_requests() {
    let headers = ["sys/types.h", "sys/ioctl.h", "linux/fs.h", "linux/filter.h", "linux/if_tun.h"];
    // Structures whose sizes are not in the headers.
    const UNSIZED: [&str; 8] = ["ISO7816", "RS485", "S2", "W2", "F2", "ETP", "ETN", "ETC"];
    // Requests with descriptors of programs for the kernel, and one that returns an address.
    const NOT_SUPPORTED: [&str; 3] = ["TUNSETSTEERINGEBPF", "TUNSETFILTEREBPF", "TUNGETFILTER"];
    let names = constants(&headers, |name| {
        has_prefix(name, &["TIOC", "TCS", "TCX", "TCF", "FIO", "FICLONE", "TUN"])
            && !name.ends_with("LTC")
            && !UNSIZED.iter().any(|end| name.ends_with(end))
    });
    let known: BTreeMap<u64, u64> =
        terminal::REQUESTS.iter().map(|(alpha, host, _)| (*alpha, *host)).collect();
    for (name, (alpha, host)) in names {
        // The host uses termios2 where Alpha has one structure for both.
        let termios = ["TCSETS", "TCSETSW", "TCSETSF"].contains(&name.as_str());
        if let Some(&converted) = known.get(&alpha).filter(|_| !termios) {
            assert_eq!(converted, host, "{name}");
        }
        let required = name.starts_with("FIO") || name.starts_with("TUN") && name.as_bytes()[3] != b'_';
        assert!(known.contains_key(&alpha) || !required || NOT_SUPPORTED.contains(&&*name), "{name}");
    }
    assert!(known.contains_key(&0x402c_7413), "TCGETS");
}

/// Every flag of a termios, alone in its word; every speed; every control character.
#[test]
fn terminal_modes() {
    let words: [(&str, usize); 4] = [
        (
            "IGNBRK BRKINT IGNPAR PARMRK INPCK ISTRIP INLCR IGNCR ICRNL IXON IXOFF IXANY IUCLC IMAXBEL IUTF8",
            0,
        ),
        ("OPOST ONLCR OCRNL ONOCR ONLRET OFILL OFDEL OLCUC NL1 TAB1 TAB2 TAB3 CR1 CR2 CR3 FF1 BS1 VT1", 4),
        (
            "CS6 CS7 CS8 CSTOPB CREAD PARENB PARODD HUPCL CLOCAL CRTSCTS CMSPAR B50 B9600 B38400 B57600 \
             B115200 B4000000",
            8,
        ),
        (
            "ISIG ICANON XCASE ECHO ECHOE ECHOK ECHONL NOFLSH TOSTOP ECHOCTL ECHOPRT ECHOKE FLUSHO PENDIN \
             IEXTEN",
            12,
        ),
    ];
    let characters = "VEOF VEOL VEOL2 VERASE VWERASE VKILL VREPRINT VINTR VQUIT VSUSP VSTART VSTOP VLNEXT \
                      VDISCARD VMIN VTIME";
    let all = words.map(|(names, _)| names).join(" ") + " " + characters;
    let values = constants(&["termios.h"], |name| all.split_whitespace().any(|wanted| wanted == name));
    let check = |name: &str, alpha: [u8; 44], host: [u8; 44]| {
        assert_eq!(terminal::host_termios(&alpha).bytes(), host, "{name} to the host");
        assert_eq!(terminal::guest_termios(&host).bytes(), alpha, "{name} to Alpha");
    };
    for (names, at) in words {
        for name in names.split_whitespace() {
            let (mut alpha, mut host) = ([0u8; 44], [0u8; 44]);
            let (alpha_value, host_value) = *values.get(name).unwrap_or_else(|| panic!("no {name}"));
            alpha[at..at + 4].copy_from_slice(&(alpha_value as u32).to_le_bytes());
            host[at..at + 4].copy_from_slice(&(host_value as u32).to_le_bytes());
            check(name, alpha, host);
        }
    }
    for name in characters.split_whitespace() {
        let (mut alpha, mut host) = ([0u8; 44], [0u8; 44]);
        let (alpha_index, host_index) = values[name];
        alpha[16 + alpha_index as usize] = 7;
        host[17 + host_index as usize] = 7;
        check(name, alpha, host);
    }
}

#[test]
fn system_call_numbers() {
    let header = std::fs::read_to_string("/usr/alpha-linux-gnu/include/asm/unistd_32.h")
        .expect("Alpha's kernel headers (Debian: linux-libc-dev-alpha-cross) are needed for this test");
    let mut numbers = BTreeMap::new();
    for line in header.lines() {
        if let Some((name, number)) = line.strip_prefix("#define __NR_").and_then(|rest| rest.split_once(' '))
        {
            numbers.insert(number.parse::<u64>().unwrap(), name.to_string());
        }
    }
    assert!(table::ROWS.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert!(unimplemented::NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let rows = table::ROWS.iter().map(|row| (row.number, row.name));
    let known: BTreeMap<u64, String> = rows
        .chain(unimplemented::NAMES.iter().copied())
        .map(|(number, name)| (number, name.into()))
        .collect();
    assert_eq!(known, numbers);
    assert_eq!(known.len(), table::ROWS.len() + unimplemented::NAMES.len());
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
    let calls = <Cpu as guest::Guest>::INSTRUCTION_SET.control_calls();
    let name = crate::system_call_name::<Cpu>;
    assert_eq!(name(calls.execute), "execve");
    let names: Vec<_> = calls.signal_returns.iter().map(|&number| name(number)).collect();
    assert_eq!(names, ["sigreturn", "rt_sigreturn"]);
    assert_eq!([calls.creates_thread, calls.futex].map(name), ["clone", "futex"]);
    let names: Vec<_> = calls.may_wait.iter().map(|&number| name(number)).collect();
    let expected = "read poll accept recv sigsuspend recvmsg readv recvfrom flock msgrcv semop nanosleep \
                    rt_sigtimedwait rt_sigsuspend select wait4 futex epoll_wait clock_nanosleep waitid pselect6 ppoll \
                    recvmmsg accept4";
    assert_eq!(names.join(" "), expected);
}
