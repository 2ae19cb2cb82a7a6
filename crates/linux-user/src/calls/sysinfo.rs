//! Queries of the system: names, sizes, random numbers.

use crate::abi::Abi;
use crate::abi::layout::GuestStructure;
use crate::calls::call::{Argument, Call, CallOutcome, RestartRule};
use crate::state::rlimit;
use crate::state::settings::RandomSource;
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);

/// Succeeds without an effect.
pub fn nothing<G: Abi>(_: &mut Call<G>) -> CallOutcome {
    Ok(0)
}

/// getpagesize()
pub fn getpagesize<G: Abi>(_: &mut Call<G>) -> CallOutcome {
    Ok(G::LAYOUT.page)
}

/// getdtablesize(): the kernel's upper limit of descriptors (fs.nr_open); here the guest's maximum.
pub fn getdtablesize<G: Abi>(_: &mut Call<G>) -> CallOutcome {
    Ok(rlimit::most_descriptors())
}

/// The host's six names, with the guest's machine name.
pub fn names<G: Abi>() -> Result<[[u8; 65]; 6], Errno> {
    let mut names = [[0u8; 65]; 6];
    // SAFETY: struct utsname is six arrays of 65 bytes (asm-generic/utsname.h).
    if unsafe { libc::syscall(libc::SYS_uname, names.as_mut_ptr()) } != 0 {
        return Err(Errno::last());
    }
    names[4] = [0; 65];
    names[4][..G::MACHINE_NAME.len()].copy_from_slice(G::MACHINE_NAME.as_bytes());
    Ok(names)
}

/// uname(buffer)
pub fn uname<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let buffer = call.arguments[0];
    call.write(buffer, &GuestStructure::new().raw(names::<G>()?.as_flattened()))?;
    Ok(0)
}

/// Copies a name with its NUL, truncated to the size of the buffer.
pub fn copy_name<G: Abi>(call: &mut Call<G>, name: &[u8; 65]) -> CallOutcome {
    let [buffer, size, ..] = call.arguments;
    if size as i32 <= 0 {
        return Err(EINVAL);
    }
    let length = name.iter().position(|&byte| byte == 0).map_or(65, |nul| nul + 1);
    call.write(buffer, &GuestStructure::new().raw(&name[..length.min(size as usize)]))?;
    Ok(0)
}

/// gethostname(buffer, size)
pub fn gethostname<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    copy_name(call, &names::<G>()?[1])
}

/// sysinfo(buffer). With the virtual clock only constant values are returned.
pub fn sysinfo<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let Some(uptime) = call.kernel.virtual_time(libc::CLOCK_BOOTTIME) else {
        return call.pass(libc::SYS_sysinfo, &[Argument::Bytes(112)]);
    };
    // SAFETY: an all-zero structure is valid and only written to.
    let host = unsafe {
        let mut host: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&mut host);
        host
    };
    let record = GuestStructure::new()
        .u64s(&[uptime / crate::state::clock::SECOND, 0, 0, 0, host.totalram, host.totalram / 2, 0, 0])
        .u64s(&[host.totalswap, host.totalswap, 1, 0, 0])
        .u32s(&[host.mem_unit])
        .zeros_to(112);
    let buffer = call.arguments[0];
    call.write(buffer, &record)?;
    Ok(0)
}

/// personality(persona): only PER_LINUX is supported.
pub fn personality<G: Abi>(_: &mut Call<G>) -> CallOutcome {
    Ok(0)
}

/// membarrier(command, flags, cpu)
pub fn membarrier<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    call.pass(libc::SYS_membarrier, &[Argument::Int, Argument::Int, Argument::Int])
}

/// getrandom(buffer, size, flags)
pub fn getrandom<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const FLAGS: u64 = 7;
    let [buffer, size, flags, ..] = call.arguments;
    if call.kernel.settings.random == RandomSource::Host {
        let arguments = &[Argument::Buffer, Argument::Number, Argument::Number];
        return call.pass_wait(libc::SYS_getrandom, arguments, RestartRule::Restarts);
    }
    // GRND_RANDOM and GRND_INSECURE exclude each other.
    if flags & !FLAGS != 0 || flags & 6 == 6 {
        return Err(EINVAL);
    }
    call.write_random(buffer, size)
}

impl<G: Abi> Call<'_, '_, G> {
    /// Writes bytes of the seeded generator: as many as requested, up to a mebibyte.
    pub fn write_random(&mut self, buffer: u64, size: u64) -> CallOutcome {
        const MOST_AT_ONCE: u64 = 1 << 20;
        let mut bytes = vec![0; size.min(MOST_AT_ONCE) as usize];
        self.kernel.fill_random(&mut bytes);
        self.memory.write(buffer, &bytes)?;
        Ok(bytes.len() as u64)
    }
}
