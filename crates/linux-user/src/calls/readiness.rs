//! Readiness of descriptors of signals (signalfd) for the signals that the host does not know: poll, select and epoll
//! report it in addition to what the host finds at once.

use crate::abi::Abi;
use crate::abi::layout::u32_at;
use crate::calls::call::Call;
use crate::calls::signalfd::{accepts, descriptor_information, held};
use crate::reserved;

/// The events of poll that such a descriptor reports.
const READABLE: i16 = libc::POLLIN | libc::POLLRDNORM;

/// The entries of poll that are ready, and their events.
pub fn polled<G: Abi>(call: &Call<G>) -> Vec<(u64, i16)> {
    let signals = held(call);
    let [entries, count, ..] = call.arguments;
    if signals == 0 {
        return Vec::new();
    }
    let count = u64::from(count as u32).min(reserved::first() as u64);
    let ready = |at| {
        let entry: [u8; 8] = call.read(at).ok()?;
        let events = u32_at(&entry, 4) as i16 & READABLE;
        (events != 0 && accepts(u32_at(&entry, 0) as i32, signals)).then_some((at, events))
    };
    (0..count).filter_map(|index| ready(entries + 8 * index)).collect()
}

/// Adds the events to poll's entries. Returns how many descriptors are ready that the host found not to be.
pub fn add_polled<G: Abi>(call: &mut Call<G>, ready: &[(u64, i16)]) -> u64 {
    let mut more = 0;
    for &(at, events) in ready {
        let Ok(found) = call.read::<2>(at + 6) else { continue };
        let found = i16::from_le_bytes(found);
        let _ = call.memory.write(at + 6, &(found | events).to_le_bytes());
        more += u64::from(found == 0);
    }
    more
}

/// The descriptors in a set for reading that are ready.
pub fn selected<G: Abi>(call: &Call<G>, count: u64, set: u64) -> Vec<u64> {
    let signals = held(call);
    if signals == 0 || set == 0 {
        return Vec::new();
    }
    let is_in_set =
        |number: u64| call.read_u64(set + number / 64 * 8).is_ok_and(|word| word & 1 << (number % 64) != 0);
    (0..count).filter(|&number| is_in_set(number) && accepts(number as i32, signals)).collect()
}

/// Adds descriptors to a set. Returns how many were not in it.
pub fn add_selected<G: Abi>(call: &mut Call<G>, set: u64, ready: &[u64]) -> u64 {
    let mut more = 0;
    for number in ready {
        let (at, bit) = (set + number / 64 * 8, 1 << (number % 64));
        let Ok(word) = call.read_u64(at) else { continue };
        let _ = call.memory.write(at, &(word | bit).to_le_bytes());
        more += u64::from(word & bit == 0);
    }
    more
}

/// The events that an epoll descriptor has to report.
pub fn awaited<G: Abi>(call: &Call<G>) -> Vec<libc::epoll_event> {
    let signals = held(call);
    if signals == 0 {
        return Vec::new();
    }
    let information = descriptor_information(call.int(0));
    information.lines().filter_map(|line| interest(line, signals)).collect()
}

/// The event for a line about a descriptor that epoll awaits (proc_pid_fdinfo(5)), if that is ready.
fn interest(line: &str, signals: u64) -> Option<libc::epoll_event> {
    let mut words = line.split_ascii_whitespace();
    let mut value = |name: &str| words.next().filter(|&word| word == name).and_then(|_| words.next());
    let descriptor = value("tfd:")?.parse().ok()?;
    let events = u32::from_str_radix(value("events:")?, 16).ok()? & READABLE as u32;
    let data = u64::from_str_radix(value("data:")?, 16).ok()?;
    (events != 0 && accepts(descriptor, signals)).then_some(libc::epoll_event { events, u64: data })
}

/// Adds events to those that the host found, as far as there is room. Returns their number.
pub fn add_awaited(events: &mut [libc::epoll_event], mut found: usize, more: Vec<libc::epoll_event>) -> u64 {
    for event in more {
        let data = event.u64;
        let is_reported = events[..found].iter().any(|other| data == { other.u64 });
        if !is_reported && let Some(slot) = events.get_mut(found) {
            *slot = event;
            found += 1;
        }
    }
    found as u64
}
