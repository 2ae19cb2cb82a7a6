//! ioctl: terminals, and the few requests that are supported on other descriptors.

use crate::abi::Abi;
use crate::abi::arguments::IoctlArgument;
use crate::abi::layout::{GuestStructure, HOST_TERMIOS, u32_at, u64_at};
use crate::calls::call::{Call, CallOutcome};
use crate::calls::sockets;
use crate::reserved;
use host::Errno;

use IoctlArgument::{
    AddressFilter, Bytes, Descriptor, GetTermios, Interfaces, PacketFilter, SetTermios, Value,
};

/// Requests on network interfaces with a `struct ifreq` without pointers: name, flags, addresses, metric, MTU,
/// hardware address, index, queue length, which they get or set (linux/sockios.h).
#[rustfmt::skip]
const INTERFACE_REQUESTS: [u64; 25] = [
    0x8910, 0x8913, 0x8915, 0x8917, 0x8919, 0x891b, 0x891d, 0x8921, 0x8927, 0x8933, 0x8935, 0x8942, 0x8938,
    0x8914, 0x8916, 0x8918, 0x891a, 0x891c, 0x891e, 0x8922, 0x8923, 0x8924, 0x8934, 0x8937, 0x8943,
];
const INTERFACE_BYTES: u64 = 40;

/// ioctl(descriptor, request, argument)
pub fn ioctl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, request, argument, ..] = call.arguments;
    let request = u64::from(request as u32);
    let make = |call: &mut Call<G>, host: u64, third: u64| {
        call.host_unlocked(libc::SYS_ioctl, [descriptor, host, third, 0, 0, 0])
    };
    if INTERFACE_REQUESTS.contains(&request) {
        let interface = call.pointer(argument, INTERFACE_BYTES)?;
        return make(call, request, interface);
    }
    let Some((_, host, third)) = G::IOCTL_REQUESTS.iter().find(|(guest, ..)| *guest == request) else {
        // EBADF takes precedence.
        call.host(libc::SYS_fcntl, [descriptor, libc::F_GETFD as u64, 0, 0, 0, 0])?;
        return Err(Errno(libc::ENOTTY));
    };
    let host = *host;
    match third {
        Value => make(call, host, argument),
        Descriptor => {
            reserved::check_descriptor(argument)?;
            make(call, host, argument)
        }
        Bytes(bytes) => {
            let argument = call.pointer(argument, *bytes)?;
            make(call, host, argument)
        }
        GetTermios => {
            let mut termios = [0u8; HOST_TERMIOS];
            make(call, host, termios.as_mut_ptr() as u64)?;
            call.write(argument, &G::guest_termios(&termios))?;
            Ok(0)
        }
        SetTermios => {
            let mut termios = vec![0u8; G::TERMIOS_BYTES];
            call.memory.read(argument, &mut termios)?;
            let termios = G::host_termios(&termios);
            make(call, host, termios.bytes().as_ptr() as u64)
        }
        Interfaces => {
            let bytes: [u8; 16] = call.read(argument)?;
            let size = u32_at(&bytes, 0);
            let buffer = call.pointer(u64_at(&bytes, 8), u64::from(size))?;
            let mut configuration = [u64::from(size), buffer];
            make(call, host, configuration.as_mut_ptr() as u64)?;
            call.write(argument, &GuestStructure::new().u32s(&[configuration[0] as u32]))?;
            Ok(0)
        }
        AddressFilter => {
            // The kernel reads the number again: from a copy, so that no other thread can change it.
            let header: [u8; 4] = call.read(argument)?;
            let addresses = usize::from(u16::from_le_bytes([header[2], header[3]]));
            let mut filter = vec![0; 4 + 6 * addresses];
            call.memory.read(argument, &mut filter)?;
            filter[..4].copy_from_slice(&header);
            make(call, host, filter.as_ptr() as u64)
        }
        PacketFilter => {
            let program = sockets::filter_program(call, argument)?;
            make(call, host, program.as_ptr() as u64)
        }
    }
}
