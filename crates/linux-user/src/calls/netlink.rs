//! Netlink sockets, whose messages contain error numbers.

use crate::abi::Abi;
use crate::abi::layout::u32_at;
use crate::calls::call::{Argument, Call, CallOutcome};
use host::Errno;

/// Size of a `struct nlmsghdr` (linux/netlink.h): length, type, flags, sequence, port.
const HEADER: usize = 16;
/// The types of messages that begin with a negative error number: NLMSG_ERROR and NLMSG_DONE.
const WITH_ERROR: [u16; 2] = [2, 3];

/// socket(family, type, protocol)
pub fn socket<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let arguments = &[Argument::Number, Argument::Flags(G::SOCKET_TYPE), Argument::Number];
    let socket = call.pass(libc::SYS_socket, arguments)?;
    call.kernel.opened_netlink |= call.int(0) == libc::AF_NETLINK;
    Ok(socket)
}

/// Converts the error numbers in `received` bytes that a descriptor's buffers have got, in place. A buffer is the guest's
/// address and a number of bytes.
pub fn convert<G: Abi>(call: &mut Call<G>, buffers: &[[u64; 2]], received: u64) -> Result<(), Errno> {
    if !call.kernel.opened_netlink || !is_netlink(call.int(0)) {
        return Ok(());
    }
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
    convert_messages::<G>(&mut bytes);
    let mut rest = &bytes[..];
    for (start, part) in parts {
        let (now, later) = rest.split_at(part);
        call.memory.write(start, now)?;
        rest = later;
    }
    Ok(())
}

/// Whether a descriptor is a netlink socket.
fn is_netlink(descriptor: i32) -> bool {
    let (mut domain, mut size) = (0i32, 4 as libc::socklen_t);
    // SAFETY: the pointers are to values of this frame, of the stated size.
    let known = unsafe {
        let value = (&raw mut domain).cast();
        libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN, value, &mut size) == 0
    };
    known && domain == libc::AF_NETLINK
}

/// Converts the error numbers of a sequence of messages, each of which begins at a multiple of 4.
fn convert_messages<G: Abi>(mut bytes: &mut [u8]) {
    while bytes.len() >= HEADER {
        let (length, kind) = (u32_at(bytes, 0) as usize, u16::from_le_bytes([bytes[4], bytes[5]]));
        if length < HEADER {
            return;
        }
        if WITH_ERROR.contains(&kind) && length.min(bytes.len()) >= HEADER + 4 {
            let error = (u32_at(bytes, HEADER) as i32).wrapping_neg();
            if error > 0 {
                let error = (G::guest_error(Errno(error)) as i32).wrapping_neg();
                bytes[HEADER..HEADER + 4].copy_from_slice(&error.to_le_bytes());
            }
        }
        let next = length.next_multiple_of(4).min(bytes.len());
        bytes = &mut bytes[next..];
    }
}
