//! The calls on actions and masks of signals in Alpha's layouts.

use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::abi::signals::SignalAction;
use crate::calls::signal_calls::{action_of, change_action, change_mask};
use host::Errno;

use super::{Call, CallOutcome};

const EINVAL: Errno = Errno(libc::EINVAL);

/// rt_sigaction(signal, action, old action, mask size, restorer)
pub fn rt_sigaction(call: &mut Call) -> CallOutcome {
    let [_, new, old, size, restorer, _] = call.arguments;
    let signal = call.int(0);
    if size != 8 {
        return Err(EINVAL);
    }
    let before = action_of(call, signal)?;
    if new != 0 {
        let bytes: [u8; 24] = call.read(new)?;
        let (handler, flags, mask) = (u64_at(&bytes, 0), u64::from(u32_at(&bytes, 8)), u64_at(&bytes, 16));
        change_action(call, signal, SignalAction { handler, mask, flags, restorer })?;
    }
    if old != 0 {
        call.write(old, &GuestStructure::new().u64s(&[before.handler, before.flags, before.mask]))?;
    }
    Ok(0)
}

/// sigaction(signal, action, old action): OSF/1's, without a restorer.
pub fn sigaction(call: &mut Call) -> CallOutcome {
    let [_, new, old, ..] = call.arguments;
    let signal = call.int(0);
    let before = action_of(call, signal)?;
    if new != 0 {
        let bytes: [u8; 20] = call.read(new)?;
        let (handler, mask, flags) = (u64_at(&bytes, 0), u64_at(&bytes, 8), u64::from(u32_at(&bytes, 16)));
        change_action(call, signal, SignalAction { handler, mask, flags, restorer: 0 })?;
    }
    if old != 0 {
        call.write(
            old,
            &GuestStructure::new().u64s(&[before.handler, before.mask]).u32s(&[before.flags as u32]),
        )?;
    }
    Ok(0)
}

/// osf_sigprocmask(how, set): the result is the old mask.
pub fn osf_sigprocmask(call: &mut Call) -> CallOutcome {
    let before = call.thread.signals.mask;
    let set = call.arguments[1];
    change_mask(call, call.int(0), set)?;
    Ok(before)
}
