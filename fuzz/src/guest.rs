//! A guest program to debug: some instructions without branches and system calls, followed by one that faults.
//! Whatever the debugger does to its registers, it ends soon and makes no system call.

use std::ops::Range;
use std::path::Path;

use isa::Op;
use isa::encode::{SecondOperand, memory, operate};

const TEXT: u64 = 0x1_2000_0000;
const DATA: u64 = 0x1_4000_0000;
const PAGE: u64 = 0x1_0000;
const HEADERS: usize = 64 + 3 * 56;

/// The address of the instructions, which must not be overwritten.
pub fn text() -> Range<u64> {
    TEXT..TEXT + PAGE
}

/// Writes the program's file.
pub fn write(path: &Path) -> std::io::Result<()> {
    let (ra, sp, zero) = (1, 30, 31);
    let one = [
        memory(Op::Stq, ra, sp, -8),
        operate(Op::Addq, ra, SecondOperand::Literal(1), ra),
        memory(Op::Ldq, ra, sp, -8),
    ];
    let fault = memory(Op::Ldq, ra, zero, 0);
    let words = one.into_iter().cycle().take(60).chain([fault]).map(|word| word.expect("encodable"));
    let words: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let mut file = header();
    let (load, stack) = (1, 0x6474_e551);
    let (code, data) = (PAGE, 2 * PAGE);
    file.extend(program_header(load, 5, code, TEXT, words.len() as u64));
    file.extend(program_header(load, 6, data, DATA, PAGE));
    // Requests a stack that is not executable.
    file.extend(program_header(stack, 6, 0, 0, 0));
    assert_eq!(file.len(), HEADERS);
    file.resize(code as usize, 0);
    file.extend(words);
    file.resize((data + PAGE) as usize, 0);
    std::fs::write(path, file)?;
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

/// An Elf64_Ehdr: little-endian, ET_EXEC, EM_ALPHA, three program headers.
fn header() -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend([2u16, 0x9026, 1, 0].into_iter().flat_map(u16::to_le_bytes));
    header.extend([TEXT, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    header.extend(0u32.to_le_bytes());
    header.extend([64u16, 56, 3, 64, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    header
}

fn program_header(kind: u32, flags: u32, offset: u64, address: u64, bytes: u64) -> Vec<u8> {
    let fields = [offset, address, address, bytes, bytes, PAGE];
    let kind = [kind, flags].into_iter().flat_map(u32::to_le_bytes);
    kind.chain(fields.into_iter().flat_map(u64::to_le_bytes)).collect()
}
