//! Sockets: addresses and options. Families, types, protocols and addresses have the same encoding on both sides;
//! options of SOL_SOCKET and flags in a type have not.
//!
//! An option passes only if its value is known to hold no addresses, since the host's kernel would follow them into the
//! engine's memory: of tables of netfilter (IPT_SO_SET_REPLACE), memory of rings (XDP_UMEM_REG, TCP_ZEROCOPY_RECEIVE,
//! RDS_GET_MR). Those of filters (SO_ATTACH_FILTER) are converted.

use std::ops::RangeInclusive;

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u64_at};
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::netlink;
use host::Errno;

/// The options of other levels than SOL_SOCKET whose values hold no addresses: the levels, and ranges of options. They
/// have the same numbers and layouts on all 64-bit guests and hosts (linux/in.h, tcp.h, in6.h, udp.h, icmp.h, icmpv6.h,
/// can/raw.h, if_packet.h, netlink.h, if_alg.h, tls.h).
const OPTIONS: &[(i32, &[RangeInclusive<i32>])] = &[
    (libc::IPPROTO_IP, &[1..=15, 18..=26, 32..=52, 80..=80]),
    (libc::IPPROTO_TCP, &[1..=34, 36..=37]),
    (libc::IPPROTO_UDP, &[1..=1, 100..=104]),
    (libc::IPPROTO_IPV6, &[1..=11, 16..=33, 36..=36, 42..=62, 66..=67, 70..=70, 72..=78]),
    (libc::IPPROTO_ICMPV6, &[1..=1]),
    (libc::IPPROTO_UDPLITE, &[10..=11]),
    (libc::IPPROTO_RAW, &[1..=1]),
    (libc::SOL_CAN_RAW, &[1..=7]),
    (libc::SOL_PACKET, &[1..=3, 5..=21, 23..=23]),
    (libc::SOL_NETLINK, &[1..=12]),
    (libc::SOL_ALG, &[1..=1, 5..=7]),
    (libc::SOL_TLS, &[1..=4]),
];

/// Options of the host's SOL_SOCKET whose values hold addresses.
const HOLD_ADDRESSES: [i32; 2] = [libc::SO_ATTACH_FILTER, libc::SO_ATTACH_REUSEPORT_CBPF];

/// Converts an option at its level to the host's number.
fn option<G: Abi>(level: u64, option: u64) -> Result<[u64; 2], Errno> {
    const UNKNOWN: Errno = Errno(libc::ENOPROTOOPT);
    if u64::from(level as u32) != G::SOCKET_LEVEL {
        if level as i32 == libc::SOL_SOCKET && HOLD_ADDRESSES.contains(&(option as i32)) {
            // A level of the guest without such options. Whoever means the host's gets no address followed.
            return Err(Errno(libc::EFAULT));
        }
        let known = OPTIONS.iter().find(|(known, _)| *known == level as i32);
        let is_known =
            known.is_some_and(|(_, ranges)| ranges.iter().any(|range| range.contains(&(option as i32))));
        return if is_known { Ok([level, option]) } else { Err(UNKNOWN) };
    }
    let found = G::SOCKET_OPTIONS.iter().find(|(guest, _)| *guest == u64::from(option as u32));
    let (_, host) = found.ok_or(UNKNOWN)?;
    Ok([libc::SOL_SOCKET as u64, *host as u64])
}

/// Bytes of a `struct sock_fprog`, and of one of its instructions (linux/filter.h).
const FILTER_PROGRAM: u64 = 16;
const FILTER_INSTRUCTION: u64 = 8;
/// The option of SOL_PACKET whose value is a `struct sock_fprog` or, shorter, a descriptor (linux/if_packet.h).
const PACKET_FANOUT_DATA: i32 = 22;

/// The host's `struct sock_fprog` for the guest's at `address`: a filter of packets.
pub fn filter_program<G: Abi>(call: &Call<G>, address: u64) -> Result<[u64; 2], Errno> {
    let program: [u8; FILTER_PROGRAM as usize] = call.read(address)?;
    let length = u64::from(u16::from_le_bytes([program[0], program[1]]));
    Ok([length, call.pointer(u64_at(&program, 8), length * FILTER_INSTRUCTION)?])
}

/// The host's level of an option that takes a filter of packets. The options' numbers are the same on both sides.
fn level_of_filters<G: Abi>(level: u64, option: u64) -> Option<i32> {
    if u64::from(level as u32) == G::SOCKET_LEVEL {
        HOLD_ADDRESSES.contains(&(option as i32)).then_some(libc::SOL_SOCKET)
    } else {
        (level as i32 == libc::SOL_PACKET && option as i32 == PACKET_FANOUT_DATA).then_some(libc::SOL_PACKET)
    }
}

/// setsockopt with a filter of packets
fn set_filter<G: Abi>(call: &mut Call<G>, level: i32) -> CallOutcome {
    let [socket, _, name, value, size, _] = call.arguments;
    if u64::from(size as u32) == FILTER_PROGRAM {
        let program = filter_program(call, value)?;
        let value = program.as_ptr() as u64;
        return call.host(libc::SYS_setsockopt, [socket, level as u64, name, value, FILTER_PROGRAM, 0]);
    }
    // EBADF takes precedence.
    call.host(libc::SYS_fcntl, [socket, libc::F_GETFD as u64, 0, 0, 0, 0])?;
    Err(Errno(libc::EINVAL))
}

/// getsockopt of SO_GET_FILTER, whose size is a number of instructions
fn get_filter<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, _, name, value, size_address, _] = call.arguments;
    let mut instructions = call.read_u32(size_address)?;
    let pointer = call.pointer(value, u64::from(instructions) * FILTER_INSTRUCTION)?;
    let level = libc::SOL_SOCKET as u64;
    call.host(libc::SYS_getsockopt, [socket, level, name, pointer, &raw mut instructions as u64, 0])?;
    call.write(size_address, &GuestStructure::new().u32s(&[instructions]))?;
    Ok(0)
}

/// setsockopt(socket, level, option, value, size)
pub fn setsockopt<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, level, name, value, size, _] = call.arguments;
    if let Some(level) = level_of_filters::<G>(level, name) {
        return set_filter(call, level);
    }
    let [level, name] = option::<G>(level, name)?;
    let value = call.pointer(value, u64::from(size as u32))?;
    call.host(libc::SYS_setsockopt, [socket, level, name, value, size, 0])
}

/// getsockopt(socket, level, option, value, size address)
pub fn getsockopt<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, guest_level, guest_name, value, size_address, _] = call.arguments;
    if u64::from(guest_level as u32) == G::SOCKET_LEVEL && guest_name as i32 == libc::SO_ATTACH_FILTER {
        return get_filter(call);
    }
    let [level, name] = option::<G>(guest_level, guest_name)?;
    let mut size = call.read_u32(size_address)?;
    let pointer = call.pointer(value, u64::from(size))?;
    let arguments = [socket, level, name, pointer, &raw mut size as u64, 0];
    call.host(libc::SYS_getsockopt, arguments)?;
    if level as i32 == libc::SOL_SOCKET && name as i32 == libc::SO_ERROR && size >= 4 {
        let error = Errno(call.read_u32(value)? as i32);
        call.write(value, &GuestStructure::new().u32s(&[G::guest_error(error) as u32]))?;
    }
    call.write(size_address, &GuestStructure::new().u32s(&[size]))?;
    Ok(0)
}

/// Makes a call that fills in an address whose size is at `size_address`, and writes the size back.
fn with_address<G: Abi>(
    call: &mut Call<G>,
    address: u64,
    size_address: u64,
    make: impl FnOnce(&mut Call<G>, u64, u64) -> CallOutcome,
) -> CallOutcome {
    if address == 0 {
        return make(call, 0, 0);
    }
    let mut size = call.read_u32(size_address)?;
    if size as i32 <= 0 && size != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let pointer = call.pointer(address, u64::from(size))?;
    let outcome = make(call, pointer, &raw mut size as u64)?;
    call.write(size_address, &GuestStructure::new().u32s(&[size]))?;
    Ok(outcome)
}

/// accept(socket, address, size)
pub fn accept<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    call.arguments[3] = 0;
    accept4(call)
}

/// accept4(socket, address, size, flags)
pub fn accept4<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, address, size, flags, ..] = call.arguments;
    let flags = G::SOCKET_TYPE.host(flags);
    with_address(call, address, size, |call, address, size| {
        call.wait(libc::SYS_accept4, [socket, address, size, flags, 0, 0], Restarts)
    })
}

/// getsockname(socket, address, size)
pub fn getsockname<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, address, size, ..] = call.arguments;
    with_address(call, address, size, |call, address, size| {
        call.host(libc::SYS_getsockname, [socket, address, size, 0, 0, 0])
    })
}

/// getpeername(socket, address, size)
pub fn getpeername<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, address, size, ..] = call.arguments;
    with_address(call, address, size, |call, address, size| {
        call.host(libc::SYS_getpeername, [socket, address, size, 0, 0, 0])
    })
}

/// recv(socket, buffer, size, flags)
pub fn recv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    (call.arguments[4], call.arguments[5]) = (0, 0);
    recvfrom(call)
}

/// recvfrom(socket, buffer, size, flags, address, address size)
pub fn recvfrom<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, buffer, size, flags, address, address_size] = call.arguments;
    let pointer = call.pointer(buffer, size)?;
    let received = with_address(call, address, address_size, |call, address, address_size| {
        let arguments = [socket, pointer, size, flags, address, address_size];
        call.wait(libc::SYS_recvfrom, arguments, Restarts)
    })?;
    netlink::convert(call, &[[buffer, size]], received)?;
    Ok(received)
}

/// sendto(socket, buffer, size, flags, address, address size)
pub fn sendto<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [socket, buffer, size, flags, address, address_size] = call.arguments;
    let buffer = call.pointer(buffer, size)?;
    let address = call.pointer(address, u64::from(address_size as u32))?;
    call.wait(libc::SYS_sendto, [socket, buffer, size, flags, address, address_size], Restarts)
}
