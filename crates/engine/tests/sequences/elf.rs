//! Minimal executables from instructions and data.

use std::path::Path;

/// Where the instructions are.
pub const TEXT: u64 = 0x1_2000_0000;
/// Where the data is.
pub const DATA: u64 = 0x1_4000_0000;

const HEADERS: u64 = 64 + 2 * 56;
const ALIGNMENT: u64 = 0x1_0000;

/// Writes an executable that starts at the first instruction.
pub fn write(path: &Path, words: &[u32], data: &[u8]) {
    let text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text_offset = HEADERS.next_multiple_of(ALIGNMENT);
    let data_offset = (text_offset + text.len() as u64).next_multiple_of(ALIGNMENT);
    let mut file = Vec::new();
    // Elf64_Ehdr: 64 bits, little-endian; ET_EXEC, EM_ALPHA.
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend([2u16.to_le_bytes(), 0x9026u16.to_le_bytes(), 1u16.to_le_bytes(), [0; 2]].concat());
    file.extend([TEXT, 64, 0].iter().flat_map(|field| field.to_le_bytes()));
    file.extend(0u32.to_le_bytes());
    file.extend([64u16, 56, 2, 64, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    // Elf64_Phdr: PT_LOAD, readable and executable or writable.
    for (flags, offset, address, bytes) in
        [(5u32, text_offset, TEXT, text.len()), (6, data_offset, DATA, data.len())]
    {
        file.extend([1u32.to_le_bytes(), flags.to_le_bytes()].concat());
        let bytes = bytes as u64;
        let fields = [offset, address, address, bytes, bytes, ALIGNMENT];
        file.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
    }
    file.resize(text_offset as usize, 0);
    file.extend(&text);
    file.resize(data_offset as usize, 0);
    file.extend(data);
    std::fs::write(path, file).expect("writable");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its own file");
}
