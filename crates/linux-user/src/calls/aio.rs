//! Asynchronous input and output (io_setup and related calls) by the host's kernel. It gets copies of the guest's
//! control blocks, so that other guest threads cannot change an address between its check and its use.
//!
//! The guest's ID of a context is the address of a page of zeros. The C library that uses contexts (libaio) looks
//! there for the ring in which the kernel stores events, finds no valid ring, and falls back to system calls.

use std::collections::BTreeMap;

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::calls::call::RestartRule::Fails;
use crate::calls::call::{Call, CallOutcome};
use crate::reserved::check_descriptor;
use crate::state::aio::{AioContext, BLOCK_BYTES, ControlBlock};
use crate::state::clock::timespec;
use guest_memory::RegionBacking;
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);
const EFAULT: Errno = Errno(libc::EFAULT);

/// io_pgetevents, whose number the crate libc lacks.
#[cfg(target_arch = "x86_64")]
const PGETEVENTS: libc::c_long = 333;
#[cfg(target_arch = "aarch64")]
const PGETEVENTS: libc::c_long = 292;

// linux/aio_abi.h, the same on both sides: a control block's command; sizes of a control block and of an event.
const READ_VECTORS: u16 = 7;
const WRITE_VECTORS: u16 = 8;
const READ: u16 = 0;
const WRITE: u16 = 1;
const EVENT_BYTES: usize = 32;
/// Offset in a control block of the key, which the kernel sets.
const KEY: usize = 8;
/// Offsets of the descriptor, the flags, and the eventfd that is notified if a flag says so.
const DESCRIPTOR: usize = 20;
const FLAGS: usize = 56;
const TELL_END: u32 = 1;
const END_DESCRIPTOR: usize = 60;

fn context<'a, G: Abi>(call: &'a mut Call<G>, id: u64) -> Result<&'a mut AioContext, Errno> {
    call.kernel.contexts.0.get_mut(&id).ok_or(EINVAL)
}

/// io_setup(events, id)
pub fn io_setup<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [events, address, ..] = call.arguments;
    if call.read_u64(address)? != 0 {
        return Err(EINVAL);
    }
    let mut host = 0u64;
    call.host(libc::SYS_io_setup, [events, &raw mut host as u64, 0, 0, 0, 0])?;
    let bytes = G::LAYOUT.page;
    let page = call.memory.find_free(0, bytes).ok_or(Errno(libc::ENOMEM)).and_then(|page| {
        call.memory.map_anonymous(
            page,
            bytes,
            libc::PROT_READ,
            false,
            RegionBacking::Named("/[aio] (deleted)"),
        )?;
        Ok(page)
    });
    let written =
        page.and_then(|page| call.write(address, &GuestStructure::new().u64s(&[page])).map(|()| page));
    match written {
        Ok(page) => {
            call.kernel.contexts.0.insert(page, AioContext { host, under_way: BTreeMap::new() });
            Ok(0)
        }
        Err(error) => {
            call.host(libc::SYS_io_destroy, [host, 0, 0, 0, 0, 0])?;
            Err(error)
        }
    }
}

/// io_destroy(id)
pub fn io_destroy<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let id = call.arguments[0];
    let context = call.kernel.contexts.0.remove(&id).ok_or(EINVAL)?;
    // The kernel may wait for operations in progress; the control blocks are kept until then.
    call.host_unlocked(libc::SYS_io_destroy, [context.host, 0, 0, 0, 0, 0])?;
    call.memory.unmap(id, G::LAYOUT.page)?;
    Ok(0)
}

/// io_submit(id, number, control blocks)
pub fn io_submit<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, count, blocks, ..] = call.arguments;
    if (count as i64) < 0 {
        return Err(EINVAL);
    }
    let host = context(call, id)?.host;
    let mut submitted = 0;
    while submitted < count {
        match submit(call, id, host, blocks.wrapping_add(8 * submitted)) {
            Ok(()) => submitted += 1,
            Err(error) if submitted == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(submitted)
}

/// Submits the control block to which the word at `pointer` points.
fn submit<G: Abi>(call: &mut Call<G>, id: u64, host: u64, pointer: u64) -> Result<(), Errno> {
    let guest = call.read_u64(pointer)?;
    let mut bytes: [u8; BLOCK_BYTES] = call.read(guest)?;
    let command = u16::from_le_bytes([bytes[16], bytes[17]]);
    check_descriptor(u32_at(&bytes, DESCRIPTOR).into())?;
    if u32_at(&bytes, FLAGS) & TELL_END != 0 {
        check_descriptor(u32_at(&bytes, END_DESCRIPTOR).into())?;
    }
    let (buffer, size) = (u64_at(&bytes, 24), u64_at(&bytes, 32));
    // The kernel copies the vectors when the block is submitted.
    let vectors = match command {
        READ_VECTORS | WRITE_VECTORS => Some(call.vectors(buffer, size)?),
        _ => None,
    };
    let pointer = match (&vectors, command) {
        (Some(vectors), _) => vectors.as_ptr() as u64,
        (None, READ | WRITE) => call.pointer(buffer, size)?,
        _ => buffer,
    };
    bytes[24..32].copy_from_slice(&pointer.to_le_bytes());
    let block = Box::new(ControlBlock(bytes));
    let address = &raw const *block as u64;
    // It is registered before it is submitted, since another thread may take its event at once.
    context(call, id)?.under_way.insert(address, (guest, block));
    let submitted = call.host_unlocked(libc::SYS_io_submit, [host, 1, &raw const address as u64, 0, 0, 0]);
    if let Err(error) = submitted {
        context(call, id)?.under_way.remove(&address);
        return Err(error);
    }
    // As Linux, ignore a failure: the program has unmapped the block.
    let _ = call.write(guest.wrapping_add(KEY as u64), &GuestStructure::new().u32s(&[0]));
    Ok(())
}

/// io_cancel(id, control block, event)
pub fn io_cancel<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, guest, event, ..] = call.arguments;
    let known = context(call, id)?;
    let block = known.under_way.iter().find(|(_, (address, _))| *address == guest);
    let (host, block) = (known.host, block.map(|(address, _)| *address).ok_or(EINVAL)?);
    let mut bytes = [0u8; EVENT_BYTES];
    let outcome = call.host(libc::SYS_io_cancel, [host, block, bytes.as_mut_ptr() as u64, 0, 0, 0])?;
    let record = taken(call, id, &bytes)?;
    call.write(event, &record)?;
    Ok(outcome)
}

/// Converts an event to the guest's, with the error that its result may be. Its control block is no longer in progress.
fn taken<G: Abi>(call: &mut Call<G>, id: u64, event: &[u8]) -> Result<GuestStructure, Errno> {
    let block = context(call, id)?.under_way.remove(&u64_at(event, 8));
    let guest = block.map_or(0, |(guest, _)| guest);
    let result = match u64_at(event, 16) as i64 {
        error @ -4095..0 => G::guest_error(Errno(-error as i32)).wrapping_neg(),
        result => result as u64,
    };
    Ok(GuestStructure::new().raw(&event[..8]).u64s(&[guest, result]).raw(&event[24..]))
}

/// io_getevents(id, at least, at most, events, timeout)
pub fn io_getevents<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    events(call, None)
}

/// io_pgetevents(id, at least, at most, events, timeout, signal mask and its size)
pub fn io_pgetevents<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let address = call.arguments[5];
    let mut mask = None;
    if address != 0 {
        let bytes: [u8; 16] = call.read(address)?;
        mask = call.optional_mask(u64_at(&bytes, 0), u64::from(u32_at(&bytes, 8)))?;
    }
    events(call, mask)
}

fn events<G: Abi>(call: &mut Call<G>, mask: Option<u64>) -> CallOutcome {
    const MOST_AT_ONCE: u64 = 1 << 16;
    let [id, least, most, address, timeout, _] = call.arguments;
    if most as i64 <= 0 || (least as i64) < 0 || least > most {
        return Err(EINVAL);
    }
    let host = context(call, id)?.host;
    let timeout = call.read_timeout(timeout)?;
    let words = timeout.map(timespec);
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let most = most.min(MOST_AT_ONCE);
    let mut found = vec![0u8; EVENT_BYTES * most as usize];
    let pointer = found.as_mut_ptr() as u64;
    let count = call.with_mask(mask, |call, mask| {
        let pair = [mask.as_ref().map_or(0, |mask| mask as *const u64 as u64), 8];
        let arguments = [host, least.min(most), most, pointer, limit, pair.as_ptr() as u64];
        call.wait(PGETEVENTS, arguments, Fails)
    })?;
    if let Some(timeout) = timeout.filter(|_| count < least) {
        call.slept(timeout);
    }
    for (index, event) in found.chunks(EVENT_BYTES).take(count as usize).enumerate() {
        let record = taken(call, id, event)?;
        call.write(address.wrapping_add((EVENT_BYTES * index) as u64), &record).map_err(|_| EFAULT)?;
    }
    Ok(count)
}
