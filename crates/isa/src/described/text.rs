//! Assembler text of the instruction sets whose words are descriptions, from the code itself.

use disarm64::{InsnDisplay, decoder};
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

/// Makes the text of an instruction of its code and its address, if the code is one.
pub(super) type Disassembler = fn(&[u8], u64) -> Option<String>;

/// x86 in 64-bit mode, in the AT&T syntax of the GNU tools.
pub(super) fn x86_64(code: &[u8], address: u64) -> Option<String> {
    x86(64, code, address)
}

/// x86 in 32-bit mode.
pub(super) fn i386(code: &[u8], address: u64) -> Option<String> {
    x86(32, code, address)
}

fn x86(bits: u32, code: &[u8], address: u64) -> Option<String> {
    let instruction = Decoder::with_ip(bits, code, address, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    let mut text = String::new();
    formatter.format(&instruction, &mut text);
    Some(text)
}

/// AArch64.
pub(super) fn aarch64(code: &[u8], address: u64) -> Option<String> {
    let word = u32::from_le_bytes(code.get(..4)?.try_into().ok()?);
    let text = decoder::decode(word)?.display_at(address).to_string();
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_assemblers() {
        for (code, expected) in [
            (&[0x48, 0x89, 0xe5][..], "mov %rsp, %rbp"),
            (&[0x8b, 0x44, 0x8b, 0xfc], "mov -4(%rbx,%rcx,4), %eax"),
            (&[0xe8, 0x05, 0, 0, 0], "call 0x100a"),
            (&[0x75, 0xfe], "jne 0x1000"),
            (&[0x48, 0x8d, 0x05, 0x10, 0, 0, 0], "lea 0x1017, %rax"),
        ] {
            assert_eq!(x86_64(code, 0x1000).as_deref(), Some(expected), "{code:x?}");
        }
        assert_eq!(i386(&[0x89, 0xe5], 0).as_deref(), Some("mov %esp, %ebp"));
        for (word, expected) in [
            (0xd65f_03c0_u32, "ret x30"),
            (0x9100_83e0, "add x0, sp, #0x20"),
            (0x9400_0002, "bl 0x1008"),
            (0xf940_0fe1, "ldr x1, [sp, #0x18]"),
        ] {
            assert_eq!(aarch64(&word.to_le_bytes(), 0x1000).as_deref(), Some(expected), "{word:#x}");
        }
    }

    #[test]
    fn code_that_is_no_instruction_has_no_text() {
        assert_eq!(x86_64(&[0x06], 0), None);
        assert_eq!(x86_64(&[0x48], 0), None);
        assert_eq!(aarch64(&[0; 2], 0), None);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100_000 {
            let code = random.u128(..).to_le_bytes();
            let length = random.usize(..=code.len());
            for disassemble in [x86_64, i386, aarch64] {
                let _ = disassemble(&code[..length], random.u64(..));
            }
        }
    }
}
