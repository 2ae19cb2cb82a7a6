//! Netlink sockets, whose messages contain error numbers.

use crate::abi::Abi;
use crate::abi::layout::u32_at;
use crate::calls::call::{Argument, Call, Outcome};
use host::Errno;

/// Size of a `struct nlmsghdr` (linux/netlink.h): length, type, flags, sequence, port.
const HEADER: usize = 16;
/// The types of messages that begin with a negative error number: NLMSG_ERROR and NLMSG_DONE.
const WITH_ERROR: [u16; 2] = [2, 3];
/// The messages of NETLINK_ROUTE about routes: RTM_NEWROUTE and RTM_DELROUTE (linux/rtnetlink.h).
const OF_ROUTES: [u16; 2] = [24, 25];
/// Size of a `struct rtmsg`, which attributes follow.
const ROUTE: usize = 12;
/// RTA_CACHEINFO, and the offset of the negative error number in its `struct rta_cacheinfo`.
const CACHE_INFORMATION: u16 = 12;
const CACHE_ERROR: usize = 12;

/// socket(family, type, protocol)
pub fn socket<G: Abi>(call: &mut Call<G>) -> Outcome {
    let arguments = &[Argument::Number, Argument::Flags(G::SOCKET_TYPE), Argument::Number];
    let socket = call.pass(libc::SYS_socket, arguments)?;
    call.kernel.opened_netlink |= call.int(0) == libc::AF_NETLINK;
    Ok(socket)
}

/// Converts the error numbers in `received` bytes that a descriptor's buffers have got, in place. A buffer is the guest's
/// address and a number of bytes.
pub fn convert<G: Abi>(call: &mut Call<G>, buffers: &[[u64; 2]], received: u64) -> Result<(), Errno> {
    if !call.kernel.opened_netlink || option(call.int(0), libc::SO_DOMAIN) != Some(libc::AF_NETLINK) {
        return Ok(());
    }
    let is_of_routes = option(call.int(0), libc::SO_PROTOCOL) == Some(libc::NETLINK_ROUTE);
    let mut left = received;
    let parts = buffers.iter().map(|&[start, bytes]| {
        let part = bytes.min(left);
        left -= part;
        (start, part as usize)
    });
    let parts: Vec<(u64, usize)> = parts.collect();
    let mut bytes = vec![0; parts.iter().map(|(_, part)| part).sum()];
    let mut at = 0;
    for &(start, part) in &parts {
        call.memory.read(start, &mut bytes[at..at + part])?;
        at += part;
    }
    convert_messages(&mut bytes, is_of_routes, G::guest_error);
    let mut rest = &bytes[..];
    for (start, part) in parts {
        let (now, later) = rest.split_at(part);
        call.memory.write(start, now)?;
        rest = later;
    }
    Ok(())
}

/// An option of a socket.
fn option(descriptor: i32, option: i32) -> Option<i32> {
    let (mut found, mut size) = (0i32, 4 as libc::socklen_t);
    // SAFETY: the pointers are to values of this frame, of the stated size.
    let known = unsafe {
        let value = (&raw mut found).cast();
        libc::getsockopt(descriptor, libc::SOL_SOCKET, option, value, &mut size) == 0
    };
    known.then_some(found)
}

/// The guest's number of an error.
type GuestError = fn(Errno) -> u64;

/// Converts the error numbers of a sequence of messages, each of which begins at a multiple of 4.
fn convert_messages(mut bytes: &mut [u8], is_of_routes: bool, guest_error: GuestError) {
    while bytes.len() >= HEADER {
        let (length, kind) = (u32_at(bytes, 0) as usize, u16::from_le_bytes([bytes[4], bytes[5]]));
        if length < HEADER {
            return;
        }
        let message = &mut bytes[HEADER..];
        let own = (length - HEADER).min(message.len());
        if WITH_ERROR.contains(&kind) {
            convert_error(&mut message[..own], guest_error);
        } else if is_of_routes && OF_ROUTES.contains(&kind) && own > ROUTE {
            convert_route(&mut message[ROUTE..own], guest_error);
        }
        let next = length.next_multiple_of(4).min(bytes.len());
        bytes = &mut bytes[next..];
    }
}

/// Converts the error number in a route's attributes: length and type of each, then its contents.
fn convert_route(mut attributes: &mut [u8], guest_error: GuestError) {
    const HEADER: usize = 4;
    while attributes.len() >= HEADER {
        let [length, kind] = [0, 2].map(|at| u16::from_le_bytes([attributes[at], attributes[at + 1]]));
        let length = usize::from(length);
        if length < HEADER || length > attributes.len() {
            return;
        }
        if kind == CACHE_INFORMATION && length > HEADER + CACHE_ERROR {
            convert_error(&mut attributes[HEADER + CACHE_ERROR..length], guest_error);
        }
        let next = length.next_multiple_of(4).min(attributes.len());
        attributes = &mut attributes[next..];
    }
}

/// Converts the negative error number at the start of `bytes`.
fn convert_error(bytes: &mut [u8], guest_error: GuestError) {
    let Some(field) = bytes.first_chunk_mut::<4>() else { return };
    let error = i32::from_le_bytes(*field).wrapping_neg();
    if error > 0 {
        *field = (guest_error(Errno(error)) as i32).wrapping_neg().to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest with numbers of its own.
    fn other_number(error: Errno) -> u64 {
        error.0 as u64 + 1000
    }

    fn message(kind: u16, contents: &[u8]) -> Vec<u8> {
        let length = (HEADER + contents.len()) as u32;
        [&length.to_le_bytes()[..], &kind.to_le_bytes(), &[0; 10], contents].concat()
    }

    fn error(number: i32) -> [u8; 4] {
        number.wrapping_neg().to_le_bytes()
    }

    /// A route with its table (RTA_TABLE), and the error for packets that take it.
    fn route(number: i32) -> Vec<u8> {
        let table = [&[8, 0, 15, 0][..], &error(libc::ENETUNREACH)].concat();
        let cache = [&[36, 0, 12, 0][..], &[0; 12], &error(number), &[0; 16]].concat();
        message(24, &[&[0; ROUTE][..], &table, &cache].concat())
    }

    #[test]
    fn errors_of_messages_and_routes_are_converted() {
        let messages = |refused: i32, unreachable: i32| {
            [message(2, &error(refused)), route(unreachable), message(3, &[0; 4])].concat()
        };
        for is_of_routes in [false, true] {
            let mut bytes = messages(libc::ECONNREFUSED, libc::ENETUNREACH);
            convert_messages(&mut bytes, is_of_routes, other_number);
            let unreachable = if is_of_routes { libc::ENETUNREACH + 1000 } else { libc::ENETUNREACH };
            assert_eq!(bytes, messages(libc::ECONNREFUSED + 1000, unreachable));
        }
    }

    #[test]
    fn damaged_messages_are_left_as_they_are() {
        let whole = [route(libc::ENETUNREACH), message(2, &error(libc::ECONNREFUSED))].concat();
        for at in 0..whole.len() {
            for byte in [0, 1, 0xff] {
                let mut bytes = whole[..at].to_vec();
                convert_messages(&mut bytes, true, other_number);
                let mut bytes = whole.clone();
                bytes[at] = byte;
                convert_messages(&mut bytes, true, other_number);
                assert_eq!(bytes.len(), whole.len());
            }
        }
    }
}
