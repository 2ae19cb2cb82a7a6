//! A processor has the instructions of its extensions and no others.

use isa::{CpuModel, Extension, Op, Qualifiers};

use crate::engine::{Detail, Engine, Run, Summary};
use crate::guest::{compile, directory};
use crate::sequences::elf;

fn run(mut run: Run, cpu: CpuModel) -> Summary {
    run.cpu = cpu.to_string();
    Engine::start(&run).finish().1
}

#[test]
fn an_instruction_the_processor_lacks_is_illegal() {
    let directory = directory("processors");
    let instructions = [
        (Extension::Bwx, isa::encode::operate(Op::Sextb, 31, isa::encode::SecondOperand::Register(1), 1)),
        (Extension::Bwx, isa::encode::memory(Op::Ldbu, 1, 30, 0)),
        (Extension::Fix, isa::encode::float_operate(Op::Ftoit, Qualifiers::NONE, 1, 31, 1)),
        (Extension::Cix, isa::encode::operate(Op::Ctpop, 31, isa::encode::SecondOperand::Register(1), 1)),
        (Extension::Mvi, isa::encode::operate(Op::Pklb, 31, isa::encode::SecondOperand::Register(1), 1)),
    ];
    for (number, (extension, word)) in instructions.into_iter().enumerate() {
        let program = directory.join(format!("program{number}"));
        // lda v0,1(zero); the instruction; lda a0,7(zero); callsys: exit(7).
        elf::write(&program, &[0x201f_0001, word.expect("encodable"), 0x221f_0007, 0x83], &[0]);
        for cpu in CpuModel::ALL {
            let summary = run(Run::new(program.clone(), Detail::Nothing), cpu);
            let (end, instructions) = if cpu.has(extension) { ("status 7", 4) } else { ("signal 4", 1) };
            assert_eq!((&*summary.end, summary.instructions), (end, instructions), "{extension:?} on {cpu}");
        }
    }
}

/// Instructions executed that came with bytes and words.
fn byte_word_instructions(summary: &Summary) -> u64 {
    let blocks = summary.counts.blocks.iter().zip(&summary.counts.executions);
    let of_extension = |word: &&u32| isa::decode(**word).is_some_and(|i| i.op.extension() == Extension::Bwx);
    blocks.map(|(block, times)| block.words.iter().filter(of_extension).count() as u64 * times).sum()
}

#[test]
fn the_original_build_has_no_byte_and_word_instructions() {
    let directory = directory("builds");
    let original = compile(&directory, "original", &["bytes.c"], &["-mcpu=ev5", "-mno-bwx"]);
    let byte_word = compile(&directory, "byte-word", &["bytes.c"], &["-mcpu=ev56", "-mbwx"]);
    let on = |program: &std::path::Path, cpu| run(Run::new(program.into(), Detail::Nothing), cpu);
    let first = on(&original, CpuModel::Ev5);
    assert_eq!((&*first.end, byte_word_instructions(&first)), ("status 3", 0));
    let second = on(&byte_word, CpuModel::Ev56);
    assert_eq!(second.end, "status 3");
    assert!(byte_word_instructions(&second) > 1000, "{}", byte_word_instructions(&second));
    assert!(second.instructions < first.instructions);
    assert_eq!(on(&byte_word, CpuModel::Ev5).end, "signal 4");
}
