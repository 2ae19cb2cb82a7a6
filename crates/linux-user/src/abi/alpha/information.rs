//! OSF/1's information calls, by which the C library controls IEEE traps.

use alpha::cpu::Cpu;
use alpha::float::control;
use host::Errno;

use crate::abi::layout::GuestStructure;
use crate::calls::sysinfo::{copy_name, names};

use super::{Call, CallOutcome};

const EINVAL: Errno = Errno(libc::EINVAL);
const NOT_SUPPORTED: Errno = Errno(libc::EOPNOTSUPP);

/// osf_utsname(buffer): five names of 32 bytes.
pub fn osf_utsname(call: &mut Call) -> CallOutcome {
    let buffer = call.arguments[0];
    let record =
        names::<Cpu>()?[..5].iter().fold(GuestStructure::new(), |record, name| record.raw(&name[..32]));
    call.write(buffer, &record)?;
    Ok(0)
}

/// osf_getdomainname(buffer, size)
pub fn osf_getdomainname(call: &mut Call) -> CallOutcome {
    copy_name(call, &names::<Cpu>()?[5])
}

/// osf_sysinfo(command, buffer, size): the names of uname, then names that Linux does not have.
pub fn osf_sysinfo(call: &mut Call) -> CallOutcome {
    let [_, buffer, size, ..] = call.arguments;
    let names = names::<Cpu>()?;
    let name = |index: usize| names[index].split(|&byte| byte == 0).next().unwrap_or_default();
    let mut text = match call.int(0) {
        command @ 1..=5 => name(command as usize - 1).to_vec(),
        6 => b"alpha".to_vec(),
        7..=9 => b"dummy".to_vec(),
        _ => return Err(EINVAL),
    };
    text.push(0);
    call.memory.write(buffer, &text[..text.len().min(size as usize)])?;
    Ok(0)
}

/// osf_getsysinfo(operation, buffer, size, start, argument)
pub fn osf_getsysinfo(call: &mut Call) -> CallOutcome {
    const UNALIGNED_CONTROL: u64 = 8;
    const IEEE_CONTROL: u64 = 45;
    const PROCESSOR_TYPE: u64 = 60;
    /// A 21264, by its number in the hardware restart parameter block.
    const EV6: u64 = 8;
    let [operation, buffer, size, ..] = call.arguments;
    let (record, result) = match operation {
        IEEE_CONTROL => (GuestStructure::new().u64s(&[control::ieee_control(call.cpu)]), 0),
        UNALIGNED_CONTROL if size >= 4 => {
            (GuestStructure::new().u32s(&[call.kernel.abi.unaligned_control as u32]), 1)
        }
        PROCESSOR_TYPE if size >= 8 => (GuestStructure::new().u64s(&[EV6]), 1),
        UNALIGNED_CONTROL | PROCESSOR_TYPE => return Err(EINVAL),
        _ => return Err(NOT_SUPPORTED),
    };
    call.write(buffer, &record)?;
    Ok(result)
}

/// osf_setsysinfo(operation, buffer, size, start, argument)
pub fn osf_setsysinfo(call: &mut Call) -> CallOutcome {
    const NAMED_PAIRS: u64 = 1;
    const IEEE_CONTROL: u64 = 14;
    const RAISE_EXCEPTION: u64 = 1001;
    let [operation, buffer, size, ..] = call.arguments;
    match operation {
        IEEE_CONTROL => {
            let word = call.read_u64(buffer)?;
            control::set_ieee_control(call.cpu, word);
            Ok(0)
        }
        RAISE_EXCEPTION => {
            let exceptions = call.read_u64(buffer)?;
            if let Some(code) = control::raise_exceptions(call.cpu, exceptions) {
                call.thread.send_fault(call.kernel, libc::SIGFPE, code, 0);
            }
            Ok(0)
        }
        NAMED_PAIRS => set_pairs(call, buffer, size),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Pairs of 32-bit words, a name and a value; Linux knows only the name for the control of unaligned accesses.
fn set_pairs(call: &mut Call, buffer: u64, count: u64) -> CallOutcome {
    const UNALIGNED_CONTROL: u32 = 6;
    const UNALIGNED_BITS: u32 = 7;
    for index in 0..count {
        let pair = buffer.wrapping_add(8 * index);
        let (name, value) = (call.read_u32(pair)?, call.read_u32(pair.wrapping_add(4))?);
        if name != UNALIGNED_CONTROL {
            return Err(NOT_SUPPORTED);
        }
        call.kernel.abi.unaligned_control = u64::from(value & UNALIGNED_BITS);
    }
    Ok(0)
}
