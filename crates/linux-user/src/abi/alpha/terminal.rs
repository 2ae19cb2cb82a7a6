//! Alpha's ioctl requests and its termios.

use crate::abi::arguments::IoctlArgument;
use crate::abi::layout::{GuestStructure, HOST_TERMIOS, u32_at};

use IoctlArgument::{
    AddressFilter, Bytes, Descriptor, GetTermios, Interfaces, PacketFilter, SetTermios, Value,
};

// asm/ioctl.h: direction in bits 29 to 31, size in 16 to 28, group in 8 to 15, number in 0 to 7.
const fn none(group: u8, number: u64) -> u64 {
    1 << 29 | (group as u64) << 8 | number
}

const fn read(group: u8, number: u64, size: u64) -> u64 {
    2 << 29 | size << 16 | (group as u64) << 8 | number
}

const fn write(group: u8, number: u64, size: u64) -> u64 {
    4 << 29 | size << 16 | (group as u64) << 8 | number
}

/// A request on a tunnel (linux/if_tun.h) that passes a number, on both sides.
const fn set_tunnel(number: u64, third: IoctlArgument) -> TerminalRequest {
    (write(b'T', number, 4), 0x4004_5400 | number, third)
}

/// A request on a tunnel that returns a number.
const fn get_tunnel(number: u64, third: IoctlArgument) -> TerminalRequest {
    (read(b'T', number, 4), 0x8004_5400 | number, third)
}

/// Bytes of a `struct ifreq`, which has no pointers in the requests on tunnels.
const INTERFACE: u64 = 40;

/// Bytes of Alpha's termios.
pub const TERMIOS: u64 = 44;

// The host's requests with numeric speeds (asm-generic/ioctls.h), and others that libc lacks.
const HOST_TCGETS2: u64 = 0x802c_542a;
const HOST_TCSETS2: u64 = 0x402c_542b;
const HOST_TCSETSW2: u64 = 0x402c_542c;
const HOST_TCSETSF2: u64 = 0x402c_542d;
const HOST_TIOCGPKT: u64 = 0x8004_5438;
const HOST_TIOCGPTLCK: u64 = 0x8004_5439;
const HOST_TIOCGEXCL: u64 = 0x8004_5440;
const HOST_TIOCGPTPEER: u64 = 0x5441;
const HOST_TIOCGDEV: u64 = 0x8004_5432;
const HOST_TIOCSIG: u64 = 0x4004_5436;
const HOST_BLKGETSIZE64: u64 = 0x8008_1272;
const HOST_FICLONE: u64 = 0x4004_9409;
const HOST_GETFLAGS: u64 = 0x8008_6601;
const HOST_SETFLAGS: u64 = 0x4008_6602;
const HOST_FIOGETOWN: u64 = 0x8903;
const HOST_FIOSETOWN: u64 = 0x8901;
const HOST_FIOQSIZE: u64 = 0x5460;
const HOST_FIGETBSZ: u64 = 2;
const HOST_FIEMAP: u64 = 0xc020_660b;
const HOST_GETVERSION: u64 = 0x8008_7601;
const HOST_FSGETXATTR: u64 = 0x801c_581f;
const HOST_FSSETXATTR: u64 = 0x401c_5820;

/// Alpha's request, the host's, and the third argument.
type TerminalRequest = (u64, u64, IoctlArgument);

/// The requests that are supported.
#[rustfmt::skip]
pub const REQUESTS: &[TerminalRequest] = &[
    (none(b'f', 1), libc::FIOCLEX, Value),
    (none(b'f', 2), libc::FIONCLEX, Value),
    (write(b'f', 125, 4), libc::FIOASYNC, Bytes(4)),
    (write(b'f', 126, 4), libc::FIONBIO, Bytes(4)),
    (read(b'f', 127, 4), libc::FIONREAD, Bytes(4)),
    (read(b'f', 128, 8), HOST_FIOQSIZE, Bytes(8)),
    (read(b'f', 1, 8), HOST_GETFLAGS, Bytes(8)),
    (write(b'f', 2, 8), HOST_SETFLAGS, Bytes(8)),
    (none(0, 2), HOST_FIGETBSZ, Bytes(4)),
    // Extents are written after the structure in ascending order; the guard page bounds them.
    (read(b'f', 11, 32) | write(b'f', 11, 32), HOST_FIEMAP, Bytes(32)),
    (read(b'v', 1, 8), HOST_GETVERSION, Bytes(8)),
    (read(b'X', 31, 28), HOST_FSGETXATTR, Bytes(28)),
    (write(b'X', 32, 28), HOST_FSSETXATTR, Bytes(28)),
    (read(b't', 19, TERMIOS), HOST_TCGETS2, GetTermios),
    (write(b't', 20, TERMIOS), HOST_TCSETS2, SetTermios),
    (write(b't', 21, TERMIOS), HOST_TCSETSW2, SetTermios),
    (write(b't', 22, TERMIOS), HOST_TCSETSF2, SetTermios),
    (read(b'T', 42, TERMIOS), HOST_TCGETS2, GetTermios),
    (write(b'T', 43, TERMIOS), HOST_TCSETS2, SetTermios),
    (write(b'T', 44, TERMIOS), HOST_TCSETSW2, SetTermios),
    (write(b'T', 45, TERMIOS), HOST_TCSETSF2, SetTermios),
    (none(b't', 29), libc::TCSBRK, Value),
    (none(b't', 30), libc::TCXONC, Value),
    (none(b't', 31), libc::TCFLSH, Value),
    (write(b't', 103, 8), libc::TIOCSWINSZ, Bytes(8)),
    (read(b't', 104, 8), libc::TIOCGWINSZ, Bytes(8)),
    (read(b't', 115, 4), libc::TIOCOUTQ, Bytes(4)),
    (write(b't', 118, 4), libc::TIOCSPGRP, Bytes(4)),
    (read(b't', 119, 4), libc::TIOCGPGRP, Bytes(4)),
    (0x540c, libc::TIOCEXCL, Value),
    (0x540d, libc::TIOCNXCL, Value),
    (0x540e, libc::TIOCSCTTY, Value),
    (0x5412, libc::TIOCSTI, Bytes(1)),
    (0x5415, libc::TIOCMGET, Bytes(4)),
    (0x5416, libc::TIOCMBIS, Bytes(4)),
    (0x5417, libc::TIOCMBIC, Bytes(4)),
    (0x5418, libc::TIOCMSET, Bytes(4)),
    (0x5420, libc::TIOCPKT, Bytes(4)),
    (0x5422, libc::TIOCNOTTY, Value),
    (0x5423, libc::TIOCSETD, Bytes(4)),
    (0x5424, libc::TIOCGETD, Bytes(4)),
    (0x5425, libc::TCSBRKP, Value),
    (0x5427, libc::TIOCSBRK, Value),
    (0x5428, libc::TIOCCBRK, Value),
    (0x5429, libc::TIOCGSID, Bytes(4)),
    (read(b'T', 0x30, 4), libc::TIOCGPTN, Bytes(4)),
    (write(b'T', 0x31, 4), libc::TIOCSPTLCK, Bytes(4)),
    (read(b'T', 0x32, 4), HOST_TIOCGDEV, Bytes(4)),
    (write(b'T', 0x36, 4), HOST_TIOCSIG, Value),
    (read(b'T', 0x38, 4), HOST_TIOCGPKT, Bytes(4)),
    (read(b'T', 0x39, 4), HOST_TIOCGPTLCK, Bytes(4)),
    (read(b'T', 0x40, 4), HOST_TIOCGEXCL, Bytes(4)),
    (none(b'T', 0x41), HOST_TIOCGPTPEER, Value),
    (read(b'f', 123, 4), HOST_FIOGETOWN, Bytes(4)),
    (write(b'f', 124, 4), HOST_FIOSETOWN, Bytes(4)),
    set_tunnel(200, Value),
    set_tunnel(201, Value),
    set_tunnel(202, Bytes(INTERFACE)),
    set_tunnel(203, Value),
    set_tunnel(204, Value),
    set_tunnel(205, Value),
    set_tunnel(206, Value),
    get_tunnel(207, Bytes(4)),
    set_tunnel(208, Value),
    set_tunnel(209, AddressFilter),
    get_tunnel(210, Bytes(INTERFACE)),
    get_tunnel(211, Bytes(4)),
    set_tunnel(212, Bytes(4)),
    // 219 (TUNGETFILTER) returns an address, and 224 and 225 take programs of bpf, which guests cannot load.
    (write(b'T', 213, 16), 0x4010_54d5, PacketFilter),
    (write(b'T', 214, 16), 0x4010_54d6, Value),
    get_tunnel(215, Bytes(4)),
    set_tunnel(216, Bytes(4)),
    set_tunnel(217, Bytes(INTERFACE)),
    set_tunnel(218, Bytes(4)),
    set_tunnel(220, Bytes(4)),
    get_tunnel(221, Bytes(4)),
    set_tunnel(222, Bytes(4)),
    get_tunnel(223, Bytes(4)),
    set_tunnel(226, Bytes(4)),
    (none(b'T', 227), 0x54e3, Value),
    (read(b's', 7, 4), 0x8905, Bytes(4)),
    (write(b's', 8, 4), 0x8902, Bytes(4)),
    (read(b's', 9, 4), 0x8904, Bytes(4)),
    (0x8906, 0x8906, Bytes(16)),
    (0x8907, 0x8907, Bytes(16)),
    (0x8912, 0x8912, Interfaces),
    (read(0x12, 114, 8), HOST_BLKGETSIZE64, Bytes(8)),
    (write(0x94, 9, 4), HOST_FICLONE, Descriptor),
];

/// Offsets of the 19 control characters and of the line discipline on each side.
const ALPHA_CHARACTERS: usize = 16;

const ALPHA_LINE: usize = 35;

const HOST_CHARACTERS: usize = 17;

const HOST_LINE: usize = 16;

/// The host's indexes of the control characters with Alpha's indexes 0 to 17 (11 is unused).
const CHARACTERS: [Option<usize>; 18] = [
    Some(libc::VEOF),
    Some(libc::VEOL),
    Some(libc::VEOL2),
    Some(libc::VERASE),
    Some(libc::VWERASE),
    Some(libc::VKILL),
    Some(libc::VREPRINT),
    Some(libc::VSWTC),
    Some(libc::VINTR),
    Some(libc::VQUIT),
    Some(libc::VSUSP),
    None,
    Some(libc::VSTART),
    Some(libc::VSTOP),
    Some(libc::VLNEXT),
    Some(libc::VDISCARD),
    Some(libc::VMIN),
    Some(libc::VTIME),
];

/// Fields of a flag word: Alpha's mask and the host's. On both sides a field's values are numbered upwards from its
/// lowest bit.
type Fields = &'static [(u32, u32)];

/// `c_iflag`: IXON, IXOFF, IUCLC; the rest is the same.
const INPUT: (u32, Fields) = (0x69ff, &[(0x200, 0x400), (0x400, 0x1000), (0x1000, 0x200)]);

/// `c_oflag`: ONLCR, OLCUC, NLDLY, TABDLY, CRDLY, FFDLY, BSDLY, VTDLY.
const OUTPUT: (u32, Fields) = (
    0xf9,
    &[
        (0x2, 0x4),
        (0x4, 0x2),
        (0x100, 0x100),
        (0xc00, 0x1800),
        (0x3000, 0x600),
        (0x4000, 0x8000),
        (0x8000, 0x2000),
        (0x1_0000, 0x4000),
    ],
);

/// `c_cflag` without the speeds: CSIZE, CSTOPB, CREAD, PARENB, PARODD, HUPCL, CLOCAL.
const CONTROL: (u32, Fields) = (
    0xe000_0000,
    &[
        (0x300, 0x30),
        (0x400, 0x40),
        (0x800, 0x80),
        (0x1000, 0x100),
        (0x2000, 0x200),
        (0x4000, 0x400),
        (0x8000, 0x800),
    ],
);

/// `c_lflag`.
const LOCAL: (u32, Fields) = (
    0x8,
    &[
        (0x80, 0x1),
        (0x100, 0x2),
        (0x4000, 0x4),
        (0x2, 0x10),
        (0x4, 0x20),
        (0x10, 0x40),
        (0x8000_0000, 0x80),
        (0x40_0000, 0x100),
        (0x40, 0x200),
        (0x20, 0x400),
        (0x1, 0x800),
        (0x80_0000, 0x1000),
        (0x2000_0000, 0x4000),
        (0x400, 0x8000),
        (0x1000_0000, 0x1_0000),
    ],
);

/// The flag words in their order.
const WORDS: [(u32, Fields); 4] = [INPUT, OUTPUT, CONTROL, LOCAL];

/// Speed codes: Alpha's field in `c_cflag` has codes 0 to 15 as the host's, and continues with 16 where the host's
/// continue at 0x1001. 0x1f (BOTHER) means a numeric speed.
const ALPHA_SPEED: u32 = 0x1f;

const HOST_SPEED: u32 = 0x100f;

const INPUT_SPEED_SHIFT: u32 = 16;

fn host_speed(code: u32) -> u32 {
    match code {
        0..=15 => code,
        ALPHA_SPEED => 0x1000,
        _ => 0x1001 + code - 16,
    }
}

fn alpha_speed(code: u32) -> u32 {
    match code {
        0x1000 => ALPHA_SPEED,
        0x1001..=0x100f => code - 0x1001 + 16,
        _ => code & 0xf,
    }
}

/// Moves each field of a word from one side's position to the other's.
fn convert(word: u32, same: u32, fields: impl Iterator<Item = (u32, u32)>) -> u32 {
    fields.fold(word & same, |result, (from, to)| {
        result | ((word & from) >> from.trailing_zeros() << to.trailing_zeros()) & to
    })
}

/// Converts the host's structure to Alpha's.
pub fn guest_termios(host: &[u8; HOST_TERMIOS]) -> GuestStructure {
    let mut words: [u32; 4] = std::array::from_fn(|index| {
        let (same, fields) = WORDS[index];
        convert(u32_at(host, 4 * index), same, fields.iter().map(|(alpha, host)| (*host, *alpha)))
    });
    let control = u32_at(host, 8);
    words[2] |= alpha_speed(control & HOST_SPEED);
    words[2] |= alpha_speed(control >> INPUT_SPEED_SHIFT & HOST_SPEED) << INPUT_SPEED_SHIFT;
    let mut characters = [0u8; 19];
    for (character, index) in characters.iter_mut().zip(CHARACTERS) {
        *character = index.map_or(0, |index| host[HOST_CHARACTERS + index]);
    }
    let record = GuestStructure::new().u32s(&words).raw(&characters).raw(&[host[HOST_LINE]]);
    record.raw(&host[36..])
}

/// Converts Alpha's structure to the host's.
pub fn host_termios(alpha: &[u8]) -> GuestStructure {
    let mut words: [u32; 4] = std::array::from_fn(|index| {
        let (same, fields) = WORDS[index];
        convert(u32_at(alpha, 4 * index), same, fields.iter().copied())
    });
    let control = u32_at(alpha, 8);
    words[2] |= host_speed(control & ALPHA_SPEED);
    words[2] |= host_speed(control >> INPUT_SPEED_SHIFT & ALPHA_SPEED) << INPUT_SPEED_SHIFT;
    let mut characters = [0u8; 19];
    for (index, character) in CHARACTERS.iter().zip(&alpha[ALPHA_CHARACTERS..]) {
        if let Some(index) = index {
            characters[*index] = *character;
        }
    }
    let record = GuestStructure::new().u32s(&words).raw(&[alpha[ALPHA_LINE]]).raw(&characters);
    record.raw(&alpha[36..])
}
