//! Which instructions transfer control, by their code: of x86-64 and AArch64. Of other instruction sets it is only known that
//! the last instruction of an emulator's block may.

use isa::DescribedKind;

/// The transfer of control that the code of an instruction describes: its kind, and the distance to its target if it has one.
pub(crate) type TransferCode = (DescribedKind, Option<i64>);

/// A classifier of instructions; None for an instruction set that it does not know.
pub(crate) fn classifier(architecture: &str) -> Option<fn(&[u8]) -> TransferCode> {
    match architecture {
        "x86_64" => Some(x86_64),
        "aarch64" => Some(aarch64),
        _ => None,
    }
}

const OPERATION: TransferCode = (DescribedKind::Operation, None);

/// *Intel 64 and IA-32 Architectures Software Developer's Manual*, volume 2, appendix A.
fn x86_64(code: &[u8]) -> TransferCode {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    let repeats = code[..prefixes].iter().any(|byte| matches!(byte, 0xf2 | 0xf3));
    let opcode = &code[prefixes..];
    let length = code.len() as i64;
    let short = || code.last().map(|&byte| length + i64::from(byte as i8));
    let near = || code.last_chunk().map(|bytes| length + i64::from(i32::from_le_bytes(*bytes)));
    match *opcode {
        [0x70..=0x7f | 0xe0..=0xe3, _] => (DescribedKind::Branch, short()),
        [0xeb, _] => (DescribedKind::Jump, short()),
        [0xe9, ..] => (DescribedKind::Jump, near()),
        [0xe8, ..] => (DescribedKind::StoringCall, near()),
        [0x0f, 0x80..=0x8f, ..] => (DescribedKind::Branch, near()),
        [0xc2 | 0xc3 | 0xca | 0xcb | 0xcf, ..] => (DescribedKind::Return, None),
        [0x0f, 0x05 | 0x34] | [0xcd, _] => (DescribedKind::SystemCall, None),
        [0xff, operand, ..] => match operand >> 3 & 7 {
            2 | 3 => (DescribedKind::IndirectCall, None),
            4 | 5 => (DescribedKind::IndirectJump, None),
            _ => OPERATION,
        },
        [0xa4..=0xa7 | 0xaa..=0xaf | 0x6c..=0x6f] if repeats => (DescribedKind::Repeat, None),
        // Traps.
        [0x0f, 0x0b] | [0xcc | 0xf4] => (DescribedKind::MayLeave, None),
        _ => OPERATION,
    }
}

/// *Arm Architecture Reference Manual* for A-profile, "Branches, exception generating and system instructions".
fn aarch64(code: &[u8]) -> TransferCode {
    let Some(word) = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return OPERATION };
    // The signed field of this many bits from bit `low` on counts instructions.
    let distance = |low: u32, bits: u32| {
        let field = (word << (32 - low - bits)) as i32 >> (32 - bits);
        Some(4 * i64::from(field))
    };
    match word >> 24 {
        0x14..=0x17 => (DescribedKind::Jump, distance(0, 26)),
        0x94..=0x97 => (DescribedKind::Call, distance(0, 26)),
        // b.cond, cbz, cbnz.
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => (DescribedKind::Branch, distance(5, 19)),
        // tbz, tbnz.
        0x36 | 0x37 | 0xb6 | 0xb7 => (DescribedKind::Branch, distance(5, 14)),
        // With and without authentication of pointers.
        0xd6 | 0xd7 => match word >> 21 & 7 {
            0 => (DescribedKind::IndirectJump, None),
            1 => (DescribedKind::IndirectCall, None),
            2 => (DescribedKind::Return, None),
            _ => (DescribedKind::MayLeave, None),
        },
        0xd4 => match word & 0x00e0_001f {
            1 => (DescribedKind::SystemCall, None),
            _ => (DescribedKind::MayLeave, None),
        },
        _ => OPERATION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DescribedKind::*;

    #[test]
    fn transfers_of_x86_64() {
        // Assembled by GNU as, disassembled by objdump.
        let cases: [(&[u8], TransferCode); 16] = [
            (&[0x74, 0xfe], (Branch, Some(0))),
            (&[0x0f, 0x85, 0x10, 0, 0, 0], (Branch, Some(0x16))),
            (&[0xeb, 0x05], (Jump, Some(7))),
            (&[0xe9, 0xfb, 0xff, 0xff, 0xff], (Jump, Some(0))),
            (&[0x67, 0xe8, 0x8f, 0x12, 0, 0], (StoringCall, Some(0x1295))),
            (&[0xf3, 0xc3], (Return, None)),
            (&[0xf2, 0xff, 0xe0], (IndirectJump, None)),
            (&[0x41, 0xff, 0x54, 0x24, 0x08], (IndirectCall, None)),
            (&[0xff, 0xc0], OPERATION),
            (&[0x0f, 0x05], (SystemCall, None)),
            (&[0xf3, 0x48, 0xa5], (Repeat, None)),
            (&[0x48, 0xa5], OPERATION),
            (&[0xf3, 0x0f, 0x1e, 0xfa], OPERATION),
            (&[0x48, 0x8b, 0x05, 0x70, 0x00, 0, 0], OPERATION),
            (&[0x0f, 0x0b], (MayLeave, None)),
            // vpxor: its first byte is a prefix of its own.
            (&[0xc5, 0xf9, 0xef, 0xc0], OPERATION),
        ];
        for (code, expected) in cases {
            assert_eq!(x86_64(code), expected, "{code:02x?}");
        }
    }

    #[test]
    fn transfers_of_aarch64() {
        let cases: [(u32, TransferCode); 13] = [
            (0x1400_0003, (Jump, Some(12))),
            (0x97ff_ffff, (Call, Some(-4))),
            (0x54ff_ffe1, (Branch, Some(-4))),
            (0xb400_0040, (Branch, Some(8))),
            (0x3607_fff0, (Branch, Some(-4))),
            (0xd61f_0220, (IndirectJump, None)),
            (0xd63f_0260, (IndirectCall, None)),
            (0xd65f_03c0, (Return, None)),
            (0xd65f_0bff, (Return, None)),
            (0xd400_0001, (SystemCall, None)),
            (0xd420_0020, (MayLeave, None)),
            (0xd503_233f, OPERATION),
            (0xa9bf_7bfd, OPERATION),
        ];
        for (word, expected) in cases {
            assert_eq!(aarch64(&word.to_le_bytes()), expected, "{word:#x}");
        }
    }
}
