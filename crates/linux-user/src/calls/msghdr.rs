//! Messages with vectors and control data: sendmsg, recvmsg and their plural forms.

use std::ops::Range;

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::netlink;
use crate::reserved;
use host::Errno;

/// Size of a msghdr, and of an mmsghdr, which adds the number of bytes transferred.
const HEADER: usize = 56;
const NUMBERED_HEADER: u64 = 64;
/// Size of a control message's header: length, level, type.
const CONTROL_HEADER: usize = 16;
/// Maximum size of control data (net.core.optmem_max is 128 KiB or less).
const MOST_CONTROL: u64 = 1 << 17;

/// A guest's msghdr, converted to the host's with the memory that it points to.
struct ConvertedMessage {
    vectors: Vec<[u64; 2]>,
    control: Vec<u8>,
    /// Name, its size, vectors, their number, control, its size, flags.
    header: [u64; 7],
    /// The guest's address for control data.
    control_address: u64,
}

impl ConvertedMessage {
    fn read<G: Abi>(call: &Call<G>, address: u64, sends: bool) -> Result<ConvertedMessage, Errno> {
        let bytes: [u8; HEADER] = call.read(address)?;
        let word = |index: usize| u64_at(&bytes, 8 * index);
        let name_size = u64::from(u32_at(&bytes, 8));
        if word(3) > 1024 {
            return Err(Errno(libc::EMSGSIZE));
        }
        let (control_address, control_size) = (word(4), word(5));
        if sends && control_size > MOST_CONTROL {
            return Err(Errno(libc::ENOBUFS));
        }
        let mut control = vec![0; control_size.min(MOST_CONTROL) as usize];
        if control_address == 0 {
            control.clear();
        } else if sends {
            call.memory.read(control_address, &mut control)?;
            convert_levels(&mut control, G::SOCKET_LEVEL as u32, libc::SOL_SOCKET as u32);
            check_rights(&control)?;
        }
        let vectors = call.vectors(word(2), word(3))?;
        let header = [call.pointer(word(0), name_size)?, name_size, 0, 0, 0, 0, word(6)];
        Ok(ConvertedMessage { vectors, control, header, control_address })
    }

    /// The host's header; valid until the message is moved or changed.
    fn host(&mut self) -> u64 {
        self.header[2] = self.vectors.as_ptr() as u64;
        self.header[3] = self.vectors.len() as u64;
        self.header[4] = if self.control.is_empty() { 0 } else { self.control.as_mut_ptr() as u64 };
        self.header[5] = self.control.len() as u64;
        self.header.as_mut_ptr() as u64
    }

    /// Writes back what was received in addition to the data.
    fn write_back<G: Abi>(&mut self, call: &mut Call<G>, address: u64) -> Result<(), Errno> {
        let used = (self.header[5] as usize).min(self.control.len());
        let control = &mut self.control[..used];
        convert_errors::<G>(control);
        convert_levels(control, libc::SOL_SOCKET as u32, G::SOCKET_LEVEL as u32);
        if used > 0 {
            call.memory.write(self.control_address, control)?;
        }
        call.write(address.wrapping_add(8), &GuestStructure::new().u32s(&[self.header[1] as u32]))?;
        let rest = GuestStructure::new().u64s(&[used as u64]).u32s(&[self.header[6] as u32]);
        call.write(address.wrapping_add(40), &rest)
    }
}

/// The start of each control message, and the end of the last.
fn control_messages(control: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at + CONTROL_HEADER > control.len() {
            return None;
        }
        let (start, length) = (at, u64_at(control, at) as usize);
        // A message that is too short is the last one.
        let bytes = if length < CONTROL_HEADER { control.len() } else { length.saturating_add(7) & !7 };
        at = at.saturating_add(bytes);
        Some(start..start.saturating_add(length).clamp(start + CONTROL_HEADER, control.len()))
    })
}

/// Replaces the level `from` in each control message.
fn convert_levels(control: &mut [u8], from: u32, to: u32) {
    let starts: Vec<usize> = control_messages(control).map(|message| message.start).collect();
    for at in starts {
        if u32_at(control, at + 8) == from {
            control[at + 8..at + 12].copy_from_slice(&to.to_le_bytes());
        }
    }
}

/// Levels and types of the control messages that begin with a `struct sock_extended_err` (linux/errqueue.h): IP_RECVERR,
/// IPV6_RECVERR and PACKET_TX_TIMESTAMP.
const EXTENDED_ERRORS: [[u32; 2]; 3] = [
    [libc::IPPROTO_IP as u32, libc::IP_RECVERR as u32],
    [libc::IPPROTO_IPV6 as u32, libc::IPV6_RECVERR as u32],
    [libc::SOL_PACKET as u32, libc::PACKET_TX_TIMESTAMP as u32],
];

/// Converts the error number at the start of each extended error, `ee_errno`.
fn convert_errors<G: Abi>(control: &mut [u8]) {
    let errors = control_messages(control).filter(|message| {
        let kind = [8, 12].map(|at| u32_at(control, message.start + at));
        EXTENDED_ERRORS.contains(&kind) && message.len() >= CONTROL_HEADER + 4
    });
    let errors: Vec<usize> = errors.map(|message| message.start + CONTROL_HEADER).collect();
    for at in errors {
        let error = G::guest_error(Errno(u32_at(control, at) as i32)) as u32;
        control[at..at + 4].copy_from_slice(&error.to_le_bytes());
    }
}

/// Fails if a descriptor of the engine would be sent.
fn check_rights(control: &[u8]) -> Result<(), Errno> {
    let rights = [libc::SOL_SOCKET as u32, libc::SCM_RIGHTS as u32];
    control_messages(control)
        .filter(|message| [8, 12].map(|at| u32_at(control, message.start + at)) == rights)
        .flat_map(|message| control[message.start + CONTROL_HEADER..message.end].chunks_exact(4))
        .try_for_each(|number| reserved::check_descriptor(u32_at(number, 0).into()))
}

fn send<G: Abi>(call: &mut Call<G>, address: u64, flags: u64) -> CallOutcome {
    let mut message = ConvertedMessage::read(call, address, true)?;
    let arguments = [call.arguments[0], message.host(), flags, 0, 0, 0];
    call.wait(libc::SYS_sendmsg, arguments, Restarts)
}

fn receive<G: Abi>(call: &mut Call<G>, address: u64, flags: u64) -> CallOutcome {
    let mut message = ConvertedMessage::read(call, address, false)?;
    let arguments = [call.arguments[0], message.host(), flags, 0, 0, 0];
    let received = call.wait(libc::SYS_recvmsg, arguments, Restarts)?;
    message.write_back(call, address)?;
    let buffers =
        message.vectors.iter().map(|&[start, bytes]| [call.memory.guest(start as *const u8), bytes]);
    netlink::convert(call, &buffers.collect::<Vec<_>>(), received)?;
    Ok(received)
}

/// sendmsg(socket, message, flags)
pub fn sendmsg<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, message, flags, ..] = call.arguments;
    send(call, message, flags)
}

/// recvmsg(socket, message, flags)
pub fn recvmsg<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, message, flags, ..] = call.arguments;
    receive(call, message, flags)
}

/// Sends or receives messages one by one; an error after the first one is not reported.
fn several<G: Abi>(
    call: &mut Call<G>,
    mut one: impl FnMut(&mut Call<G>, u64, u64) -> CallOutcome,
) -> CallOutcome {
    let [_, messages, count, ..] = call.arguments;
    let count = u64::from(count as u32).min(1024);
    for index in 0..count {
        let address = messages.wrapping_add(NUMBERED_HEADER * index);
        match one(call, address, index) {
            Ok(bytes) => {
                let record = GuestStructure::new().u32s(&[bytes as u32]);
                call.write(address.wrapping_add(HEADER as u64), &record)?;
            }
            Err(error) if index == 0 => return Err(error),
            Err(_) => return Ok(index),
        }
    }
    Ok(count)
}

/// sendmmsg(socket, messages, count, flags)
pub fn sendmmsg<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let flags = call.arguments[3];
    several(call, |call, address, _| send(call, address, flags))
}

/// recvmmsg(socket, messages, count, flags, timeout): the timeout is checked only between messages (recvmmsg(2)), and
/// so has no effect on the receipt of one.
pub fn recvmmsg<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, _, _, flags, timeout, _] = call.arguments;
    let deadline = call.read_timeout(timeout)?.map(std::time::Duration::from_nanos);
    let started = std::time::Instant::now();
    let after_first = if flags & libc::MSG_WAITFORONE as u64 != 0 { libc::MSG_DONTWAIT as u64 } else { 0 };
    several(call, |call, address, index| {
        if index > 0 && deadline.is_some_and(|deadline| started.elapsed() >= deadline) {
            return Err(Errno(libc::EAGAIN));
        }
        let flags = flags & !(libc::MSG_WAITFORONE as u64);
        receive(call, address, if index == 0 { flags } else { flags | after_first })
    })
}
