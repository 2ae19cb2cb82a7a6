//! Queries of the system: names, sizes, random numbers; and OSF/1's system information calls, with which the C
//! library controls IEEE traps.

use crate::abi::layout::Record;
use crate::calls::call::{Argument, Call, Interrupted, Outcome};
use crate::calls::signal_frame;
use crate::state::rlimit;
use crate::state::settings::Random;
use alpha::float::control;
use host::Errno;
use memory::PAGE;

const EINVAL: Errno = Errno(libc::EINVAL);
const NOT_SUPPORTED: Errno = Errno(libc::EOPNOTSUPP);

/// Succeeds without an effect.
pub fn nothing(_: &mut Call) -> Outcome {
    Ok(0)
}

/// getpagesize()
pub fn getpagesize(_: &mut Call) -> Outcome {
    Ok(PAGE)
}

/// getdtablesize(): the kernel's upper limit of descriptors (fs.nr_open); here the guest's maximum.
pub fn getdtablesize(_: &mut Call) -> Outcome {
    Ok(rlimit::most_descriptors())
}

/// The host's six names, with Alpha's machine name.
fn names() -> Result<[[u8; 65]; 6], Errno> {
    let mut names = [[0u8; 65]; 6];
    // SAFETY: struct utsname is six arrays of 65 bytes (asm-generic/utsname.h).
    if unsafe { libc::syscall(libc::SYS_uname, names.as_mut_ptr()) } != 0 {
        return Err(Errno::last());
    }
    names[4] = [0; 65];
    names[4][..5].copy_from_slice(b"alpha");
    Ok(names)
}

/// uname(buffer)
pub fn uname(call: &mut Call) -> Outcome {
    let buffer = call.arguments[0];
    call.write(buffer, &Record::new().raw(names()?.as_flattened()))?;
    Ok(0)
}

/// osf_utsname(buffer): five names of 32 bytes.
pub fn osf_utsname(call: &mut Call) -> Outcome {
    let buffer = call.arguments[0];
    let record = names()?[..5].iter().fold(Record::new(), |record, name| record.raw(&name[..32]));
    call.write(buffer, &record)?;
    Ok(0)
}

/// Copies a name with its NUL, truncated to the size of the buffer.
fn copy_name(call: &mut Call, name: &[u8; 65]) -> Outcome {
    let [buffer, size, ..] = call.arguments;
    if size as i32 <= 0 {
        return Err(EINVAL);
    }
    let length = name.iter().position(|&byte| byte == 0).map_or(65, |nul| nul + 1);
    call.write(buffer, &Record::new().raw(&name[..length.min(size as usize)]))?;
    Ok(0)
}

/// gethostname(buffer, size)
pub fn gethostname(call: &mut Call) -> Outcome {
    copy_name(call, &names()?[1])
}

/// osf_getdomainname(buffer, size)
pub fn osf_getdomainname(call: &mut Call) -> Outcome {
    copy_name(call, &names()?[5])
}

/// osf_sysinfo(command, buffer, size): the names of uname, then names that Linux does not have.
pub fn osf_sysinfo(call: &mut Call) -> Outcome {
    let [_, buffer, size, ..] = call.arguments;
    let names = names()?;
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

/// sysinfo(buffer). With the virtual clock only constant values are returned.
pub fn sysinfo(call: &mut Call) -> Outcome {
    let Some(uptime) = call.kernel.virtual_time(libc::CLOCK_BOOTTIME) else {
        return call.pass(libc::SYS_sysinfo, &[Argument::Bytes(112)]);
    };
    // SAFETY: an all-zero structure is valid and only written to.
    let host = unsafe {
        let mut host: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&mut host);
        host
    };
    let record = Record::new()
        .u64s(&[uptime / crate::state::clock::SECOND, 0, 0, 0, host.totalram, host.totalram / 2, 0, 0])
        .u64s(&[host.totalswap, host.totalswap, 1, 0, 0])
        .u32s(&[host.mem_unit])
        .zeros_to(112);
    let buffer = call.arguments[0];
    call.write(buffer, &record)?;
    Ok(0)
}

/// personality(persona): only PER_LINUX is supported.
pub fn personality(_: &mut Call) -> Outcome {
    Ok(0)
}

/// membarrier(command, flags, cpu)
pub fn membarrier(call: &mut Call) -> Outcome {
    call.pass(libc::SYS_membarrier, &[Argument::Int, Argument::Int, Argument::Int])
}

/// getrandom(buffer, size, flags)
pub fn getrandom(call: &mut Call) -> Outcome {
    const FLAGS: u64 = 7;
    let [buffer, size, flags, ..] = call.arguments;
    if call.kernel.settings.random == Random::Host {
        let arguments = &[Argument::Buffer, Argument::Number, Argument::Number];
        return call.pass_wait(libc::SYS_getrandom, arguments, Interrupted::Restarts);
    }
    // GRND_RANDOM and GRND_INSECURE exclude each other.
    if flags & !FLAGS != 0 || flags & 6 == 6 {
        return Err(EINVAL);
    }
    call.write_random(buffer, size)
}

impl Call<'_, '_> {
    /// Writes bytes of the seeded generator: as many as requested, up to a mebibyte.
    pub fn write_random(&mut self, buffer: u64, size: u64) -> Outcome {
        const MOST_AT_ONCE: u64 = 1 << 20;
        let mut bytes = vec![0; size.min(MOST_AT_ONCE) as usize];
        self.kernel.fill_random(&mut bytes);
        self.memory.write(buffer, &bytes)?;
        Ok(bytes.len() as u64)
    }
}

/// osf_getsysinfo(operation, buffer, size, start, argument)
pub fn osf_getsysinfo(call: &mut Call) -> Outcome {
    const UNALIGNED_CONTROL: u64 = 8;
    const IEEE_CONTROL: u64 = 45;
    const PROCESSOR_TYPE: u64 = 60;
    /// A 21264, by its number in the hardware restart parameter block.
    const EV6: u64 = 8;
    let [operation, buffer, size, ..] = call.arguments;
    let (record, result) = match operation {
        IEEE_CONTROL => (Record::new().u64s(&[control::ieee_control(call.cpu)]), 0),
        UNALIGNED_CONTROL if size >= 4 => (Record::new().u32s(&[call.kernel.unaligned_control as u32]), 1),
        PROCESSOR_TYPE if size >= 8 => (Record::new().u64s(&[EV6]), 1),
        UNALIGNED_CONTROL | PROCESSOR_TYPE => return Err(EINVAL),
        _ => return Err(NOT_SUPPORTED),
    };
    call.write(buffer, &record)?;
    Ok(result)
}

/// osf_setsysinfo(operation, buffer, size, start, argument)
pub fn osf_setsysinfo(call: &mut Call) -> Outcome {
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
                call.thread.send_fault(call.kernel, signal_frame::SIGFPE, code, 0);
            }
            Ok(0)
        }
        NAMED_PAIRS => set_pairs(call, buffer, size),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Pairs of 32-bit words, a name and a value; Linux knows only the name for the control of unaligned accesses.
fn set_pairs(call: &mut Call, buffer: u64, count: u64) -> Outcome {
    const UNALIGNED_CONTROL: u32 = 6;
    const UNALIGNED_BITS: u32 = 7;
    for index in 0..count {
        let pair = buffer.wrapping_add(8 * index);
        let (name, value) = (call.read_u32(pair)?, call.read_u32(pair.wrapping_add(4))?);
        if name != UNALIGNED_CONTROL {
            return Err(NOT_SUPPORTED);
        }
        call.kernel.unaligned_control = u64::from(value & UNALIGNED_BITS);
    }
    Ok(0)
}
