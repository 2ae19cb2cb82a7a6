//! POSIX message queues.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::descriptor_table;
use crate::state::clock::{host_time, timespec};
use host::Errno;

/// `struct mq_attr`: flags, which may contain O_NONBLOCK, and seven more words.
const ATTRIBUTE_BYTES: usize = 64;

fn host_attributes<G: Abi>(call: &Call<G>, address: u64) -> Result<[u64; 8], Errno> {
    let bytes: [u8; ATTRIBUTE_BYTES] = call.read(address)?;
    let mut words = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    words[0] = G::OPEN.host(words[0]);
    Ok(words)
}

/// mq_open(name, flags, mode, attributes)
pub fn mq_open<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, flags, mode, attributes, ..] = call.arguments;
    descriptor_table::note_message_queue();
    let name = call.text(0)?;
    let flags = G::OPEN.host(flags);
    let attributes = match attributes {
        0 => None,
        address => Some(host_attributes(call, address)?),
    };
    let pointer = attributes.as_ref().map_or(0, |words| words.as_ptr() as u64);
    call.host(libc::SYS_mq_open, [name.as_ptr() as u64, flags, mode, pointer, 0, 0])
}

/// mq_getsetattr(queue, new attributes, old attributes)
pub fn mq_getsetattr<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [queue, new, old, ..] = call.arguments;
    let new = match new {
        0 => None,
        address => Some(host_attributes(call, address)?),
    };
    let pointer = new.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let mut before = [0u64; 8];
    call.host(libc::SYS_mq_getsetattr, [queue, pointer, before.as_mut_ptr() as u64, 0, 0, 0])?;
    if old != 0 {
        before[0] = G::OPEN.guest(before[0]);
        call.write(old, &GuestStructure::new().u64s(&before))?;
    }
    Ok(0)
}

/// mq_notify(queue, event)
pub fn mq_notify<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const EVENT_BYTES: usize = 64;
    /// Size of the cookie in a notification by SIGEV_THREAD.
    const COOKIE_BYTES: u64 = 32;
    const SIGNAL: u32 = 0;
    const THREAD: u32 = 2;
    descriptor_table::note_message_queue();
    let [queue, event, ..] = call.arguments;
    let mut bytes = [0u8; EVENT_BYTES];
    if event == 0 {
        return call.host(libc::SYS_mq_notify, [queue, 0, 0, 0, 0, 0]);
    }
    bytes.copy_from_slice(&call.read::<EVENT_BYTES>(event)?);
    match u32_at(&bytes, 12) {
        SIGNAL => {
            let signal = G::host_signal(u32_at(&bytes, 8) as i32).ok_or(Errno(libc::EINVAL))?;
            bytes[8..12].copy_from_slice(&signal.to_le_bytes());
        }
        THREAD => {
            let cookie = call.pointer(u64_at(&bytes, 0), COOKIE_BYTES)?;
            bytes[..8].copy_from_slice(&cookie.to_le_bytes());
        }
        _ => {}
    }
    call.host(libc::SYS_mq_notify, [queue, bytes.as_ptr() as u64, 0, 0, 0, 0])
}

/// Sends or receives. The fourth argument is the priority or the address for it; the fifth is an absolute time.
fn timed<G: Abi>(call: &mut Call<G>, number: libc::c_long, priority: u64) -> CallOutcome {
    let [queue, message, size, _, timeout, _] = call.arguments;
    let message = call.pointer(message, size)?;
    let rest = match call.read_timeout(timeout)? {
        Some(end) => Some(call.kernel.until(libc::CLOCK_REALTIME, end)),
        None => None,
    };
    let words = rest.map(|rest| timespec(host_time(libc::CLOCK_REALTIME).saturating_add(rest)));
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let outcome = call.wait(number, [queue, message, size, priority, limit, 0], Restarts);
    if outcome == Err(Errno(libc::ETIMEDOUT)) {
        call.slept(rest.unwrap_or_default());
    }
    outcome
}

/// mq_timedsend(queue, message, size, priority, timeout)
pub fn mq_timedsend<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let priority = call.arguments[3];
    timed(call, libc::SYS_mq_timedsend, priority)
}

/// mq_timedreceive(queue, message, size, priority, timeout)
pub fn mq_timedreceive<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let priority = call.pointer(call.arguments[3], 4)?;
    timed(call, libc::SYS_mq_timedreceive, priority)
}
