//! The table and what derives from it, checked against the paper, the manual and each other.

use pathlength_isa::encode::{self, EncodeError, SecondOperand};
use pathlength_isa::{
    CpuModel, Extension, Flags, Group, Instruction, InstructionFormat, Nop, Op, Operands, Qualifiers,
    Rounding, TABLE, decode, nop_kind,
};
use proptest::prelude::*;

/// Table 13 of the 1997 paper. Its `beg` is `beq`, its `mskhl` is `msklh`, its `callsys` is a
/// `call_pal`; `rdteb`, a PAL call of Windows NT, is left out.
const TABLE_13: [(Group, &str); 7] = [
    (Group::IntegerLoad, "ldwu ldbu ldl_l ldah ldq_u lda ldq ldl"),
    (Group::IntegerStore, "stb stw stl_c stq_u stl stq"),
    (Group::IntegerControl, "blbs jsr jmp blbc bgt blt bge br bsr ret bne beq"),
    (
        Group::IntegerArithmetic,
        "cmpbge s8subq umulh mull cmpeq s8addl cmple cmpule cmpult cmplt subl s4addl addq subq addl",
    ),
    (
        Group::LogicalShift,
        "cmovlbs cmovlbc cmovle cmovgt cmovlt ornot cmovne cmoveq cmovge srl bic sll sra xor and bis",
    ),
    (
        Group::ByteManipulation,
        "insll inslh mskll msklh insqh zap insql mskwl mskqh mskbl insbl extwh mskql extql inswl extqh extwl \
         extll extlh zapnot extbl",
    ),
    (Group::Other, "addt ldt stt mulq call_pal cpys trapb mb"),
];

fn op(mnemonic: &str) -> Op {
    let op = Op::ALL.into_iter().find(|op| op.mnemonic() == mnemonic);
    op.unwrap_or_else(|| panic!("{mnemonic} is not in the table"))
}

#[test]
fn groups_are_the_papers() {
    for (group, members) in TABLE_13 {
        for mnemonic in members.split_whitespace() {
            assert_eq!(op(mnemonic).group(), group, "{mnemonic}");
        }
    }
    assert_eq!(TABLE_13.map(|(group, _)| group), Group::ALL);
}

#[test]
fn mnemonics_are_unique_and_in_order() {
    let mut mnemonics: Vec<_> = TABLE.iter().map(|row| row.mnemonic).collect();
    mnemonics.sort_unstable();
    mnemonics.dedup();
    assert_eq!(mnemonics.len(), Op::COUNT);
    for (i, row) in TABLE.iter().enumerate() {
        assert_eq!(row.op as usize, i);
    }
}

#[test]
fn flags_agree_with_formats() {
    for row in &TABLE {
        let transfer = matches!(row.format, InstructionFormat::Branch | InstructionFormat::MemoryJump);
        assert_eq!(row.op.is(Flags::BRANCH), transfer, "{}", row.mnemonic);
        let access = row.op.is(Flags::LOAD) || row.op.is(Flags::STORE);
        assert_eq!(row.op.access_size().is_some(), access, "{}", row.mnemonic);
        let memory = row.format == InstructionFormat::Memory && !matches!(row.op, Op::Lda | Op::Ldah);
        assert_eq!(memory, access, "{}", row.mnemonic);
        assert_eq!(row.op.is(Flags::OVERFLOW), row.mnemonic.ends_with("/v"), "{}", row.mnemonic);
    }
    assert_eq!(Op::Ldwu.access_size(), Some(2));
    assert_eq!(Op::Stf.access_size(), Some(4));
    assert!(Op::Ftoit.is_float() && Op::Itoft.is_float() && Op::Fbeq.is_float() && !Op::Ldq.is_float());
}

#[test]
fn implementations() {
    use Extension::*;
    let extensions = [Base, Bwx, Fix, Cix, Mvi];
    let expected: [(&str, &[Extension], u64); 6] = [
        ("ev4", &[Base], 0),
        ("ev5", &[Base], 1),
        ("ev56", &[Base, Bwx], 1),
        ("pca56", &[Base, Bwx, Mvi], 1),
        ("ev6", &[Base, Bwx, Fix, Mvi], 2),
        ("ev67", &[Base, Bwx, Fix, Cix, Mvi], 2),
    ];
    for ((name, has, implver), cpu) in expected.into_iter().zip(CpuModel::ALL) {
        assert_eq!(name.parse(), Ok(cpu));
        assert_eq!(cpu.to_string(), name);
        assert_eq!(cpu.implver(), implver);
        for extension in extensions {
            assert_eq!(cpu.has(extension), has.contains(&extension), "{name} {extension:?}");
        }
    }
    let message = "ev8".parse::<CpuModel>().unwrap_err().to_string();
    assert!(message.contains("ev8") && message.contains("ev67"), "{message}");
}

#[test]
fn extensions() {
    let of = |extension| TABLE.iter().filter(move |row| row.extension == extension).map(|row| row.mnemonic);
    assert_eq!(of(Extension::Bwx).collect::<Vec<_>>(), ["ldbu", "ldwu", "stw", "stb", "sextb", "sextw"]);
    assert_eq!(of(Extension::Cix).collect::<Vec<_>>(), ["ctpop", "ctlz", "cttz"]);
    assert_eq!(of(Extension::Fix).count(), 9);
    assert_eq!(of(Extension::Mvi).count(), 13);
}

#[test]
fn no_operations() {
    assert_eq!(nop_kind(0x47ff_041f), Some(Nop::Nop));
    assert_eq!(nop_kind(0x2ffe_0000), Some(Nop::Unop));
    assert_eq!(nop_kind(0x5fff_041f), Some(Nop::Fnop));
    // addq $1,$2,$31 does nothing; addq/v may trap; addq $1,$2,$3 and ldq $31,0($30) do something.
    let into = |op, rc| encode::operate(op, 1, SecondOperand::Register(2), rc).unwrap();
    assert_eq!(nop_kind(into(Op::Addq, 31)), Some(Nop::Nop));
    assert_eq!(nop_kind(into(Op::Addqv, 31)), None);
    assert_eq!(nop_kind(into(Op::Addq, 3)), None);
    assert_eq!(nop_kind(encode::memory(Op::Ldq, 31, 30, 0).unwrap()), None);
    assert_eq!(nop_kind(0x1000_0000), None);
}

#[test]
fn prefetches() {
    let load = |op, ra| decode(encode::memory(op, ra, 16, 64).unwrap()).unwrap();
    assert!(load(Op::Ldl, 31).is_prefetch() && load(Op::Lds, 31).is_prefetch());
    assert!(!load(Op::Ldl, 1).is_prefetch() && !load(Op::LdqU, 31).is_prefetch());
    assert!(!load(Op::LdlL, 31).is_prefetch() && !load(Op::Lda, 31).is_prefetch());
}

#[test]
fn names_for_counting() {
    let name = |word| decode(word).unwrap().name();
    assert_eq!(name(0x83), "callsys");
    assert_eq!(name(0x9e), "rduniq");
    assert_eq!(name(0xae), "clrfen");
    assert_eq!(name(0xab), "call_pal");
    let addt = encode::float_operate(
        Op::Addt,
        Qualifiers { rounding: Rounding::Chopped, underflow: true, software: true, inexact: false },
        1,
        2,
        3,
    );
    let addt = decode(addt.unwrap()).unwrap();
    assert_eq!((addt.name(), addt.disassemble(0).to_string().as_str()), ("addt", "addt/suc $f1,$f2,$f3"));
}

#[test]
fn errors_say_what_was_wrong() {
    let text = |result: Result<u32, EncodeError>| result.unwrap_err().to_string();
    assert_eq!(text(encode::memory(Op::Addq, 1, 2, 3)), "addq has the format Operate, not Memory");
    assert_eq!(
        text(encode::memory(Op::Ldq, 32, 2, 3)),
        "there is no register 32: they are numbered from 0 to 31"
    );
    assert!(text(encode::branch(Op::Br, 31, 2)).contains("multiple of 4"));
    assert!(text(encode::branch(Op::Br, 31, 4 << 20)).contains("21 bits"));
    assert!(text(encode::jump(Op::Jmp, 31, 27, 0x4000)).contains("14 bits"));
    assert!(text(encode::call_pal(1 << 26)).contains("26 bits"));
    // cpys rounds nothing, ctpop takes no literal, sqrtt has no first source.
    let chopped = Qualifiers { rounding: Rounding::Chopped, ..Qualifiers::NONE };
    assert_eq!(encode::float_operate(Op::Cpys, chopped, 1, 2, 3), Err(EncodeError::Operands(Op::Cpys)));
    assert_eq!(
        encode::operate(Op::Ctpop, 31, SecondOperand::Literal(1), 3),
        Err(EncodeError::Operands(Op::Ctpop))
    );
    let sqrtt = encode::float_operate(Op::Sqrtt, Qualifiers::NONE, 1, 2, 3);
    assert_eq!(sqrtt, Err(EncodeError::Operands(Op::Sqrtt)));
}

/// Encodes a decoded instruction again, from the values of its accessors.
fn encode_again(i: Instruction) -> Result<u32, EncodeError> {
    match i.op.format() {
        InstructionFormat::Memory => encode::memory(i.op, i.ra(), i.rb(), i.displacement() as i16),
        InstructionFormat::MemoryFunction => encode::memory_function(i.op, i.ra(), i.rb()),
        InstructionFormat::MemoryJump => {
            encode::jump(i.op, i.ra(), i.rb(), (i.displacement() / 4) as u16 & 0x3fff)
        }
        InstructionFormat::Branch => encode::branch(i.op, i.ra(), i.displacement().into()),
        InstructionFormat::Operate => {
            let second = i.literal().map_or(SecondOperand::Register(i.rb()), SecondOperand::Literal);
            encode::operate(i.op, i.ra(), second, i.rc())
        }
        InstructionFormat::FloatOperate => {
            encode::float_operate(i.op, i.qualifiers(), i.ra(), i.rb(), i.rc())
        }
        InstructionFormat::Pal => encode::call_pal(i.function()),
    }
}

/// Bits that an instruction ignores and the encoder writes as 0: 15:13 of an integer operation on registers.
fn ignored(i: Instruction) -> u32 {
    if i.op.format() == InstructionFormat::Operate && i.literal().is_none() { 7 << 13 } else { 0 }
}

/// A word that is an instruction with this row, with operands from random bits.
fn word_of(row: &pathlength_isa::InstructionRow, bits: u32) -> u32 {
    let function = match row.format {
        InstructionFormat::Memory | InstructionFormat::Branch | InstructionFormat::Pal => (0, 0),
        InstructionFormat::MemoryFunction => (0xffff, u32::from(row.function)),
        InstructionFormat::MemoryJump => (3 << 14, u32::from(row.function) << 14),
        InstructionFormat::Operate => (0x7f << 5, u32::from(row.function) << 5),
        InstructionFormat::FloatOperate => (0x7ff << 5, u32::from(row.function) << 5),
    };
    let rb_31 = 31 << 16;
    let ra_31 = 31 << 21;
    let (ones, zeros) = match row.operands {
        Operands::RegistersRaRbRc => (0, 1 << 12),
        Operands::RbRc | Operands::FbFc | Operands::Address => (ra_31, 0),
        Operands::RegisterRbRc => (ra_31, 1 << 12),
        Operands::Rc => (ra_31 | 3 << 12, 0x7f << 14),
        Operands::FaRc | Operands::RaFc => (rb_31, 0),
        Operands::Fpcr => (ra_31 | rb_31 | 31, 0),
        _ => (0, 0),
    };
    let (mask, value) = function;
    let word = bits & 0x03ff_ffff & !mask | value | u32::from(row.opcode) << 26;
    (word | ones) & !zeros
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Total, and what decodes encodes to the same word.
    #[test]
    fn words_survive(word: u32) {
        if let Some(instruction) = decode(word) {
            prop_assert_eq!(encode_again(instruction), Ok(word & !ignored(instruction)));
        }
    }

    /// Every instruction with random operands decodes to itself, and encodes to the same word.
    #[test]
    fn every_instruction_survives(bits: u32) {
        for row in &TABLE {
            let word = word_of(row, bits);
            let instruction = decode(word);
            prop_assert_eq!(instruction, Some(Instruction { op: row.op, word }), "{:08x}", word);
            let instruction = instruction.unwrap();
            prop_assert_eq!(encode_again(instruction), Ok(word & !ignored(instruction)), "{}", row.mnemonic);
        }
    }

    /// Legal qualifiers survive; which ones are legal, objdump decides in another test.
    #[test]
    fn qualifiers_survive(traps in 0_u8..8, rounding in 0_usize..4, op in 0..Op::COUNT) {
        let rounding = [Rounding::Chopped, Rounding::MinusInfinity, Rounding::Normal, Rounding::Dynamic][rounding];
        let qualifiers = Qualifiers {
            rounding, underflow: traps & 1 != 0, inexact: traps & 2 != 0, software: traps & 4 != 0,
        };
        if let Ok(word) = encode::float_operate(Op::ALL[op], qualifiers, 31, 31, 31) {
            let instruction = decode(word).unwrap();
            prop_assert_eq!(instruction.op, Op::ALL[op]);
            prop_assert_eq!(instruction.qualifiers(), qualifiers);
        }
    }
}
