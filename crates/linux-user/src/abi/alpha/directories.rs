//! Directory entries in OSF/1's format.

use crate::abi::layout::{GuestStructure, u64_at};
use crate::calls::files::entries;
use host::Errno;

use super::{Call, CallOutcome};

/// osf_getdirentries(descriptor, buffer, size, base): entries in OSF/1's format, and the first one's offset in the
/// directory.
pub fn osf_getdirentries(call: &mut Call) -> CallOutcome {
    /// The header of an entry: the file's number, the entry's length, the name's length.
    const NAME: usize = 8;
    /// Size of the header of a host entry.
    const HOST_NAME: usize = 19;
    let [descriptor, buffer, size, base, ..] = call.arguments;
    let size = u64::from(size as u32);
    let mut position = call.host(libc::SYS_lseek, [descriptor, 0, libc::SEEK_CUR as u64, 0, 0, 0])?;
    let begin = position;
    // Host entries are up to three times as long.
    let entries = entries(call, descriptor, 3 * size.min(1 << 14) + 512)?;
    let (mut record, mut at) = (GuestStructure::new(), 0);
    while at < entries.len() {
        let entry = &entries[at..];
        let length = usize::from(u16::from_le_bytes([entry[16], entry[17]]));
        let name = entry[HOST_NAME..length].split(|&byte| byte == 0).next().unwrap_or_default();
        let bytes = (NAME + name.len() + 1).next_multiple_of(4);
        let end = record.bytes().len() + bytes;
        let number = u32::try_from(u64_at(entry, 0));
        if end as u64 > size || number.is_err() {
            if at == 0 {
                let error = if number.is_err() { libc::EOVERFLOW } else { libc::EINVAL };
                set_position(call, descriptor, position)?;
                return Err(Errno(error));
            }
            break;
        }
        let lengths = bytes as u32 | (name.len() as u32) << 16;
        record = record.u32s(&[number.unwrap_or_default(), lengths]).raw(name).zeros_to(end);
        position = u64_at(entry, 8);
        at += length;
    }
    if at < entries.len() {
        set_position(call, descriptor, position)?;
    }
    if at > 0 && base != 0 {
        call.write(base, &GuestStructure::new().u64s(&[begin]))?;
    }
    call.write(buffer, &record)?;
    Ok(record.bytes().len() as u64)
}

fn set_position(call: &Call, descriptor: u64, position: u64) -> CallOutcome {
    call.host(libc::SYS_lseek, [descriptor, position, libc::SEEK_SET as u64, 0, 0, 0])
}
