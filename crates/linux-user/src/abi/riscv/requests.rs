//! The generic requests of ioctl (`asm-generic/ioctls.h` and the headers of each topic), which are the host's, too.

use crate::abi::arguments::IoctlArgument;

use IoctlArgument::{AddressFilter, Bytes, Descriptor, Interfaces, PacketFilter, Value};

/// Bytes of a `struct termios` and of a `struct termios2`.
const TERMIOS: u64 = 36;
const TERMIOS2: u64 = 44;
/// Bytes of a `struct ifreq`, which has no pointers in the requests on tunnels.
const INTERFACE: u64 = 40;

/// A request with the same number on both sides.
const fn same(number: u64, third: IoctlArgument) -> (u64, u64, IoctlArgument) {
    (number, number, third)
}

/// A request on a tunnel (linux/if_tun.h) that passes a number.
const fn set_tunnel(number: u64, third: IoctlArgument) -> (u64, u64, IoctlArgument) {
    same(0x4004_5400 | number, third)
}

/// A request on a tunnel that returns a number.
const fn get_tunnel(number: u64, third: IoctlArgument) -> (u64, u64, IoctlArgument) {
    same(0x8004_5400 | number, third)
}

/// The requests that are supported: the guest's, the host's, and the third argument.
#[rustfmt::skip]
pub const REQUESTS: &[(u64, u64, IoctlArgument)] = &[
    // Files.
    same(0x5451, Value), same(0x5450, Value), same(0x5452, Bytes(4)), same(0x5421, Bytes(4)),
    same(0x541b, Bytes(4)), same(0x5460, Bytes(8)), same(0x8008_6601, Bytes(8)), same(0x4008_6602, Bytes(8)),
    same(2, Bytes(4)),
    // Extents are written after the structure in ascending order; the guard page bounds them.
    same(0xc020_660b, Bytes(32)),
    same(0x8008_7601, Bytes(8)), same(0x801c_581f, Bytes(28)), same(0x401c_5820, Bytes(28)),
    same(0x8008_1272, Bytes(8)), same(0x4004_9409, Descriptor),
    // Terminals.
    same(0x5401, Bytes(TERMIOS)), same(0x5402, Bytes(TERMIOS)), same(0x5403, Bytes(TERMIOS)),
    same(0x5404, Bytes(TERMIOS)), same(0x802c_542a, Bytes(TERMIOS2)), same(0x402c_542b, Bytes(TERMIOS2)),
    same(0x402c_542c, Bytes(TERMIOS2)), same(0x402c_542d, Bytes(TERMIOS2)), same(0x5409, Value),
    same(0x540a, Value), same(0x540b, Value), same(0x540c, Value), same(0x540d, Value), same(0x540e, Value),
    same(0x540f, Bytes(4)), same(0x5410, Bytes(4)), same(0x5411, Bytes(4)), same(0x5412, Bytes(1)),
    same(0x5413, Bytes(8)), same(0x5414, Bytes(8)), same(0x5415, Bytes(4)), same(0x5416, Bytes(4)),
    same(0x5417, Bytes(4)), same(0x5418, Bytes(4)), same(0x5420, Bytes(4)), same(0x5422, Value),
    same(0x5423, Bytes(4)), same(0x5424, Bytes(4)), same(0x5425, Value), same(0x5427, Value),
    same(0x5428, Value), same(0x5429, Bytes(4)), same(0x8004_5430, Bytes(4)), same(0x4004_5431, Bytes(4)),
    same(0x8004_5432, Bytes(4)), same(0x4004_5436, Value), same(0x8004_5438, Bytes(4)),
    same(0x8004_5439, Bytes(4)), same(0x8004_5440, Bytes(4)), same(0x5441, Value),
    // Sockets.
    same(0x8901, Bytes(4)), same(0x8902, Bytes(4)), same(0x8903, Bytes(4)), same(0x8904, Bytes(4)),
    same(0x8905, Bytes(4)), same(0x8906, Bytes(16)), same(0x8907, Bytes(16)), same(0x8912, Interfaces),
    // Tunnels. 219 (TUNGETFILTER) returns an address, and 224 and 225 take programs of bpf, which guests cannot load.
    set_tunnel(200, Value), set_tunnel(201, Value), set_tunnel(202, Bytes(INTERFACE)), set_tunnel(203, Value),
    set_tunnel(204, Value), set_tunnel(205, Value), set_tunnel(206, Value), get_tunnel(207, Bytes(4)),
    set_tunnel(208, Value), set_tunnel(209, AddressFilter), get_tunnel(210, Bytes(INTERFACE)),
    get_tunnel(211, Bytes(4)), set_tunnel(212, Bytes(4)), same(0x4010_54d5, PacketFilter),
    same(0x4010_54d6, Value), get_tunnel(215, Bytes(4)), set_tunnel(216, Bytes(4)),
    set_tunnel(217, Bytes(INTERFACE)), set_tunnel(218, Bytes(4)), set_tunnel(220, Bytes(4)),
    get_tunnel(221, Bytes(4)), set_tunnel(222, Bytes(4)), get_tunnel(223, Bytes(4)), set_tunnel(226, Bytes(4)),
    same(0x54e3, Value),
];
