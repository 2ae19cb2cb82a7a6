//! Sockets: addresses and options. Families, types, protocols and addresses have the same encoding on both sides;
//! options of SOL_SOCKET and flags in a type have not.

use crate::abi::errno;
use crate::abi::flags::SOCKET_TYPE;
use crate::abi::layout::Record;
use crate::calls::call::Interrupted::Restarts;
use crate::calls::call::{Call, Outcome};
use host::Errno;

/// SOL_SOCKET.
pub const SOL_SOCKET: u64 = 0xffff;

/// Options of SOL_SOCKET: Alpha's number and the host's. Options whose values contain pointers (socket filters) are
/// omitted.
#[rustfmt::skip]
pub const OPTIONS: &[(u64, i32)] = &[
    (0x0001, libc::SO_DEBUG), (0x0004, libc::SO_REUSEADDR), (0x0008, libc::SO_KEEPALIVE),
    (0x0010, libc::SO_DONTROUTE), (0x0020, libc::SO_BROADCAST), (0x0080, libc::SO_LINGER),
    (0x0100, libc::SO_OOBINLINE), (0x0200, libc::SO_REUSEPORT), (0x1001, libc::SO_SNDBUF),
    (0x1002, libc::SO_RCVBUF), (0x1007, libc::SO_ERROR), (0x1008, libc::SO_TYPE),
    (0x100a, libc::SO_SNDBUFFORCE), (0x100b, libc::SO_RCVBUFFORCE), (0x1010, libc::SO_RCVLOWAT),
    (0x1011, libc::SO_SNDLOWAT), (0x1012, libc::SO_RCVTIMEO), (0x1013, libc::SO_SNDTIMEO),
    (0x1014, libc::SO_ACCEPTCONN), (0x1028, libc::SO_PROTOCOL), (0x1029, libc::SO_DOMAIN),
    (11, libc::SO_NO_CHECK), (12, libc::SO_PRIORITY), (14, libc::SO_BSDCOMPAT), (17, libc::SO_PASSCRED),
    (18, libc::SO_PEERCRED), (25, libc::SO_BINDTODEVICE), (27, libc::SO_DETACH_FILTER),
    (28, libc::SO_PEERNAME), (29, libc::SO_TIMESTAMP), (30, libc::SO_PEERSEC), (34, libc::SO_PASSSEC),
    (35, libc::SO_TIMESTAMPNS), (36, libc::SO_MARK), (37, libc::SO_TIMESTAMPING), (40, libc::SO_RXQ_OVFL),
    (42, libc::SO_PEEK_OFF), (43, libc::SO_NOFCS), (44, libc::SO_LOCK_FILTER),
    (46, libc::SO_BUSY_POLL), (49, libc::SO_INCOMING_CPU), (56, libc::SO_INCOMING_NAPI_ID),
    (57, libc::SO_COOKIE), (59, libc::SO_PEERGROUPS), (60, libc::SO_ZEROCOPY), (62, libc::SO_BINDTOIFINDEX),
];

/// Converts an option at its level to the host's number.
fn option(level: u64, option: u64) -> Result<[u64; 2], Errno> {
    const UNKNOWN: Errno = Errno(libc::ENOPROTOOPT);
    if u64::from(level as u32) != SOL_SOCKET {
        // Its value contains addresses at which received data are mapped.
        let maps = level as i32 == libc::IPPROTO_TCP && option as i32 == libc::TCP_ZEROCOPY_RECEIVE;
        return if maps { Err(UNKNOWN) } else { Ok([level, option]) };
    }
    let found = OPTIONS.iter().find(|(alpha, _)| *alpha == u64::from(option as u32));
    let (_, host) = found.ok_or(UNKNOWN)?;
    Ok([libc::SOL_SOCKET as u64, *host as u64])
}

/// setsockopt(socket, level, option, value, size)
pub fn setsockopt(call: &mut Call) -> Outcome {
    let [socket, level, name, value, size, _] = call.arguments;
    let [level, name] = option(level, name)?;
    let value = call.pointer(value, u64::from(size as u32))?;
    call.host(libc::SYS_setsockopt, [socket, level, name, value, size, 0])
}

/// getsockopt(socket, level, option, value, size address)
pub fn getsockopt(call: &mut Call) -> Outcome {
    let [socket, alpha_level, alpha_name, value, size_address, _] = call.arguments;
    let [level, name] = option(alpha_level, alpha_name)?;
    let mut size = call.read_u32(size_address)?;
    let pointer = call.pointer(value, u64::from(size))?;
    let arguments = [socket, level, name, pointer, &raw mut size as u64, 0];
    call.host(libc::SYS_getsockopt, arguments)?;
    if level as i32 == libc::SOL_SOCKET && name as i32 == libc::SO_ERROR && size >= 4 {
        let error = Errno(call.read_u32(value)? as i32);
        call.write(value, &Record::new().u32s(&[errno::alpha(error) as u32]))?;
    }
    call.write(size_address, &Record::new().u32s(&[size]))?;
    Ok(0)
}

/// Makes a call that fills in an address whose size is at `size_address`, and writes the size back.
fn with_address(
    call: &mut Call,
    address: u64,
    size_address: u64,
    make: impl FnOnce(&mut Call, u64, u64) -> Outcome,
) -> Outcome {
    if address == 0 {
        return make(call, 0, 0);
    }
    let mut size = call.read_u32(size_address)?;
    if size as i32 <= 0 && size != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let pointer = call.pointer(address, u64::from(size))?;
    let outcome = make(call, pointer, &raw mut size as u64)?;
    call.write(size_address, &Record::new().u32s(&[size]))?;
    Ok(outcome)
}

/// accept(socket, address, size)
pub fn accept(call: &mut Call) -> Outcome {
    call.arguments[3] = 0;
    accept4(call)
}

/// accept4(socket, address, size, flags)
pub fn accept4(call: &mut Call) -> Outcome {
    let [socket, address, size, flags, ..] = call.arguments;
    let flags = SOCKET_TYPE.host(flags);
    with_address(call, address, size, |call, address, size| {
        call.wait(libc::SYS_accept4, [socket, address, size, flags, 0, 0], Restarts)
    })
}

/// getsockname(socket, address, size)
pub fn getsockname(call: &mut Call) -> Outcome {
    let [socket, address, size, ..] = call.arguments;
    with_address(call, address, size, |call, address, size| {
        call.host(libc::SYS_getsockname, [socket, address, size, 0, 0, 0])
    })
}

/// getpeername(socket, address, size)
pub fn getpeername(call: &mut Call) -> Outcome {
    let [socket, address, size, ..] = call.arguments;
    with_address(call, address, size, |call, address, size| {
        call.host(libc::SYS_getpeername, [socket, address, size, 0, 0, 0])
    })
}

/// recvfrom(socket, buffer, size, flags, address, address size)
pub fn recvfrom(call: &mut Call) -> Outcome {
    let [socket, buffer, size, flags, address, address_size] = call.arguments;
    let buffer = call.pointer(buffer, size)?;
    with_address(call, address, address_size, |call, address, address_size| {
        let arguments = [socket, buffer, size, flags, address, address_size];
        call.wait(libc::SYS_recvfrom, arguments, Restarts)
    })
}

/// sendto(socket, buffer, size, flags, address, address size)
pub fn sendto(call: &mut Call) -> Outcome {
    let [socket, buffer, size, flags, address, address_size] = call.arguments;
    let buffer = call.pointer(buffer, size)?;
    let address = call.pointer(address, u64::from(address_size as u32))?;
    call.wait(libc::SYS_sendto, [socket, buffer, size, flags, address, address_size], Restarts)
}
