//! Memory shared by a vfork child with its parent. The child has a copy of memory, as after fork. Its parent waits
//! until the child ends or executes a program, and then copies what the child wrote to stack frames near the stack
//! pointer: posix_spawn of the C library reads the child's error there.

use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::abi::Abi;
use crate::calls::call::{Call, CallOutcome};
use crate::reserved::high_copy;
use crate::state::vfork::{Parent, ParentFrames};

/// Forks by `fork`, which returns 0 in the child, and waits for the child. As in Linux, signals do not interrupt the
/// wait. The child's writes are copied only if it `shares` memory.
pub fn fork<G: Abi>(
    call: &mut Call<G>,
    shares: bool,
    fork: impl FnOnce(&mut Call<G>) -> CallOutcome,
) -> CallOutcome {
    let stack_pointer = call.cpu.stack_pointer();
    let frames = if shares { Some(ParentFrames::new(call.memory, stack_pointer)?) } else { None };
    let Some((mut reader, writer)) = out_of_the_way() else {
        // Without free descriptors for the pipe, the parent does not wait.
        return fork(call);
    };
    let child = fork(call)?;
    if child == 0 {
        drop(reader);
        call.kernel.parent = Some(Parent { frames, _end: writer });
        return Ok(0);
    }
    drop(writer);
    let mask = host::block_all();
    // Nothing is ever written to the pipe; any failure ends the wait, too.
    while call.kernel.released(|| reader.read(&mut [0])).is_err_and(|e| e.kind() == ErrorKind::Interrupted)
        && !call.kernel.is_ending()
    {}
    host::set_mask(mask);
    if let Some(frames) = frames {
        frames.take(call.memory);
    }
    Ok(child)
}

/// A pipe with reserved descriptors.
fn out_of_the_way() -> Option<(PipeReader, OwnedFd)> {
    let (reader, writer) = std::io::pipe().ok()?;
    Some((high_copy(reader.as_raw_fd())?.into(), high_copy(writer.as_raw_fd())?))
}
