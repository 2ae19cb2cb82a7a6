//! What vfork's child shares with its parent. The child has a copy of memory, as after a fork; but its
//! parent waits until it is gone or another program, and then sees what the child wrote to the frames
//! near the stack pointer: there a C library's posix_spawn learns why the program could not be started.

use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::calls::call::{Call, Outcome};
use crate::reserved::high_copy;
use crate::state::vfork::{Frames, Parent};
use alpha::cpu::register;

/// Forks by `fork`, which returns 0 in the child, and waits for the child there. As in Linux no signal
/// interrupts that. The child shares what it writes only if it `shares` memory.
pub fn fork(call: &mut Call, shares: bool, fork: impl FnOnce(&mut Call) -> Outcome) -> Outcome {
    let stack_pointer = call.cpu.r[register::SP];
    let frames = if shares { Some(Frames::new(call.memory, stack_pointer)?) } else { None };
    let Some((mut reader, writer)) = out_of_the_way() else {
        // Without descriptors to wait by, the parent does not wait.
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
    // Nothing is ever written; any other failure is an end, too.
    while call.kernel.released(|| reader.read(&mut [0])).is_err_and(|e| e.kind() == ErrorKind::Interrupted)
        && !call.kernel.is_ending()
    {}
    host::set_mask(mask);
    if let Some(frames) = frames {
        frames.take(call.memory);
    }
    Ok(child)
}

/// A pipe whose numbers are the engine's.
fn out_of_the_way() -> Option<(PipeReader, OwnedFd)> {
    let (reader, writer) = std::io::pipe().ok()?;
    Some((high_copy(reader.as_raw_fd())?.into(), high_copy(writer.as_raw_fd())?))
}
