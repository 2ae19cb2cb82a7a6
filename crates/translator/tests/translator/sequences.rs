//! Random sequences of instructions, with flags and registers that live over transfers of control: all registers and all counts are those
//! of a native run.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use events::ProcessEnd;
use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemorySize,
    Mnemonic, OpAccess, OpKind, Register,
};

use crate::single_steps::differences;
use crate::stepped::step;
use crate::support::{assemble, by_address, translated};

/// Bytes of the memory that instructions access, on both sides of rbx.
const SIDE: usize = 16384;
/// Items of a program: instructions, branches over some, calls.
const ITEMS: usize = 700;

/// Features of the processor that instructions may need, beside those that every x86-64 processor has.
fn is_available(feature: CpuidFeature) -> bool {
    use CpuidFeature::*;
    match feature {
        INTEL8086 | INTEL186 | INTEL286 | INTEL386 | INTEL486 | X64 | CMOV | FPU | FPU287 | FPU387 | MMX
        | SSE | SSE2 | CMPXCHG16B => true,
        SSE3 => is_x86_feature_detected!("sse3"),
        SSSE3 => is_x86_feature_detected!("ssse3"),
        SSE4_1 => is_x86_feature_detected!("sse4.1"),
        SSE4_2 => is_x86_feature_detected!("sse4.2"),
        POPCNT => is_x86_feature_detected!("popcnt"),
        LZCNT => is_x86_feature_detected!("lzcnt"),
        BMI1 => is_x86_feature_detected!("bmi1"),
        BMI2 => is_x86_feature_detected!("bmi2"),
        ADX => is_x86_feature_detected!("adx"),
        MOVBE => is_x86_feature_detected!("movbe"),
        AES => is_x86_feature_detected!("aes"),
        PCLMULQDQ => is_x86_feature_detected!("pclmulqdq"),
        F16C => is_x86_feature_detected!("f16c"),
        FMA => is_x86_feature_detected!("fma"),
        AVX => is_x86_feature_detected!("avx"),
        AVX2 => is_x86_feature_detected!("avx2"),
        AVX512F => is_x86_feature_detected!("avx512f"),
        AVX512BW => is_x86_feature_detected!("avx512bw"),
        AVX512DQ => is_x86_feature_detected!("avx512dq"),
        AVX512VL => is_x86_feature_detected!("avx512vl"),
        _ => false,
    }
}

/// Instructions that differ between runs, fault, or change what the program needs.
fn is_excluded(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    let mnemonic = instruction.mnemonic();
    matches!(
        mnemonic,
        Div | Idiv
            | Cpuid
            | In
            | Out
            | Insb
            | Insd
            | Insw
            | Outsb
            | Outsd
            | Outsw
            | Cli
            | Sti
            | Hlt
            | Std
            | Popfq
            | Popf
            | Ldmxcsr
            | Vldmxcsr
            | Stmxcsr
            | Vstmxcsr
            | Lar
            | Lsl
            | Verr
            | Verw
            | Str
            | Sldt
            | Sgdt
            | Sidt
            | Smsw
            | Iretq
            | Iretd
            | Iret
            | Lfs
            | Lgs
            | Lss
            | Emms
            | Fxsave
            | Fxrstor
            | Fxsave64
            | Fxrstor64
            | Wait
            | Ud0
            | Ud1
            | Ud2
            | Sysret
            | Sysexit
            | Clts
            | Wrmsr
            | Rdmsr
            | Rdpmc
            | Rdtsc
            | Invd
            | Wbinvd
            | Lmsw
            | Lgdt
            | Lidt
            | Lldt
            | Ltr
            | Invlpg
            | Cmpxchg16b
            | Xlatb
            | Fldenv
            | Fnstenv
            | Frstor
            | Fnsave
            | Fldcw
    ) || instruction.is_privileged()
        || !instruction.cpuid_features().iter().all(|&it| is_available(it))
        || instruction.has_rep_prefix() && instruction.is_string_instruction()
        || instruction.flow_control() != FlowControl::Next
        || [Register::FS, Register::GS].contains(&instruction.segment_prefix())
        || instruction.has_lock_prefix()
        || uses_segments(instruction)
}

fn uses_segments(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| {
        let register = instruction.op_register(operand);
        instruction.op_kind(operand) == OpKind::Register
            && (register.is_segment_register() || register.is_cr() || register.is_dr() || register.is_tr())
    })
}

/// Random bytes as compilers and assemblers might have encoded an instruction.
fn random_bytes(random: &mut fastrand::Rng) -> [u8; 15] {
    let mut bytes = [0; 15];
    random.fill(&mut bytes);
    let start: &[u8] = match random.u8(..16) {
        0 => &[0x66],
        1 => &[0xf2, 0x0f],
        2 => &[0xf3, 0x0f],
        3 | 4 => &[0x0f],
        5 => &[0x66, 0x0f],
        6 | 7 => &[0xc5],
        8 => &[0xc4],
        9 | 10 => &[0x62],
        _ => &[],
    };
    bytes[..start.len()].copy_from_slice(start);
    if start.is_empty() && random.bool() {
        bytes[0] = 0x40 | random.u8(..16);
    }
    bytes
}

/// A random instruction as lines of assembler.
fn instruction(random: &mut fastrand::Rng, factory: &mut InstructionInfoFactory) -> String {
    loop {
        let mut bytes = random_bytes(random);
        let mut decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        if instruction.is_invalid() || is_excluded(&instruction) {
            continue;
        }
        let info = factory.info(&instruction);
        let is_reserved =
            |register: Register| [Register::RSP, Register::RBX].contains(&register.full_register());
        let memory = info.used_memory().iter().any(|used| used.access() != OpAccess::NoMemAccess);
        let written = info.used_registers().iter().any(|used| {
            is_reserved(used.register())
                && !(matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
                    && used.register().full_register() == Register::RBX)
        });
        if written {
            continue;
        }
        let (at, size) = (offsets.displacement_offset(), offsets.displacement_size());
        let is_relative = instruction.memory_base() == Register::RIP;
        if memory {
            let is_based =
                instruction.memory_base() == Register::RBX && instruction.memory_index() == Register::None;
            let has_operand =
                (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
            let is_usual = info.used_memory().len() == 1 && instruction.memory_size() != MemorySize::Unknown;
            if !(has_operand && is_usual && (is_based || is_relative)) || size == 2 {
                continue;
            }
        } else if is_relative {
            continue;
        }
        let code = &mut bytes[..instruction.len()];
        match size {
            1 if memory => code[at] = 64 * random.u8(..2),
            4 if memory && !is_relative => {
                let displacement = 64 * random.i32(-100..100);
                code[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
            }
            _ => {}
        }
        let list = |bytes: &[u8]| bytes.iter().map(|byte| byte.to_string()).collect::<Vec<_>>().join(",");
        if memory && is_relative {
            let rest = code.len() - at - 4;
            let target = 64 * random.usize(..100);
            let immediate =
                if rest > 0 { format!("\n.byte {}", list(&code[at + 4..])) } else { String::new() };
            return format!(".byte {}\n.long data + {target} - . - 4 - {rest}{immediate}", list(&code[..at]));
        }
        return format!(".byte {}", list(code));
    }
}

const CONDITIONS: [&str; 16] =
    ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];

/// The stores or loads of all vector registers, at a symbol.
fn vectors(loads: bool, symbol: &str) -> String {
    let mut text = String::new();
    let (count, name, prefix, size) = match () {
        () if is_x86_feature_detected!("avx512f") => (32, "zmm", "vmovdqu64", 64),
        () if is_x86_feature_detected!("avx") => (16, "ymm", "vmovups", 32),
        () => (16, "xmm", "movups", 16),
    };
    for number in 0..count {
        let (register, memory) = (format!("%{name}{number}"), format!("{symbol} + {}", size * number));
        let (from, to) = if loads { (memory, register) } else { (register, memory) };
        writeln!(text, "{prefix} {from}, {to}").unwrap();
    }
    text
}

/// A program that executes a random sequence three times, and writes all registers to the file that its argument names.
fn program(seed: u64) -> String {
    let (mut random, mut factory) = (fastrand::Rng::with_seed(seed), InstructionInfoFactory::new());
    let mut text = String::from(
        ".globl _start\n_start:\nmov 16(%rsp), %rdi\nmov $2, %eax\nmov $0101, %esi\nmov $0600, %edx\n",
    );
    text += "syscall\nmov %eax, file\n";
    text += &vectors(true, "data");
    const REGISTERS: [&str; 14] =
        ["rax", "rcx", "rdx", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    for register in REGISTERS {
        writeln!(text, "movabs ${:#x}, %{register}", random.u64(..)).unwrap();
    }
    text += "mov $data + 16384, %rbx\nfirst:\n";
    let mut open: Vec<(usize, usize)> = Vec::new();
    for item in 0..ITEMS {
        open.retain(|&(end, label)| {
            if end == item {
                writeln!(text, "l{label}:").unwrap();
            }
            end != item
        });
        match random.u8(..12) {
            0 | 1 => {
                let condition = CONDITIONS[random.usize(..16)];
                writeln!(text, "j{condition} l{item}").unwrap();
                open.push((item + 1 + random.usize(..8), item));
            }
            2 => writeln!(text, "call f{}", random.u8(..8)).unwrap(),
            3 => writeln!(text, "call *table + {}(%rip)", 8 * random.u8(..8)).unwrap(),
            4 if random.bool() => {
                writeln!(text, "jmp l{item}").unwrap();
                open.push((item + 1 + random.usize(..3), item));
            }
            _ => writeln!(text, "{}", instruction(&mut random, &mut factory)).unwrap(),
        }
    }
    for (_, label) in open {
        writeln!(text, "l{label}:").unwrap();
    }
    text += "decl rounds\njz done\njmp first\ndone:\n";
    for (index, register) in REGISTERS.iter().enumerate() {
        writeln!(text, "mov %{register}, registers + {}", 8 * index).unwrap();
    }
    text += "pushfq\npopq registers + 112\n";
    text += &vectors(false, "registers + 128");
    text += "cld\nmov $1, %eax\nmov file, %edi\nmov $registers, %esi\nmov $36864, %edx\nsyscall\nmov $231, %eax\nxor %edi, %edi\nsyscall\n";
    for function in 0..8 {
        writeln!(text, "f{function}:").unwrap();
        for _ in 0..random.usize(..6) {
            writeln!(text, "{}", instruction(&mut random, &mut factory)).unwrap();
        }
        text += "ret\n";
    }
    text += ".data\n.balign 64\nregisters: .fill 4096\ndata:\n";
    for _ in 0..2 * SIDE / 8 {
        writeln!(text, ".quad {:#x}", random.u64(..)).unwrap();
    }
    text += "table: .quad f0, f1, f2, f3, f4, f5, f6, f7\nfile: .long 0\nrounds: .long 3\n";
    text
}

#[test]
fn random_sequences_do_as_natively() {
    let folder = tempfile::tempdir().unwrap();
    let [natively, here, stepped] = ["natively", "here", "stepped"].map(|name| folder.path().join(name));
    let (mut whole, mut instructions) = (0, 0);
    for seed in 0..testing::sample(6, 400) as u64 {
        let path = assemble(folder.path(), &format!("sequence{seed}"), &program(seed));
        let status = Command::new(&path).arg(&natively).status().unwrap();
        let run = translated(&path, &[here.to_str().unwrap()]);
        match status.code() {
            Some(code) => {
                whole += 1;
                assert_eq!(run.end, ProcessEnd::Exited(code), "seed {seed}");
            }
            None => assert!(matches!(run.end, ProcessEnd::Killed(_)), "seed {seed}: {:?}", run.end),
        }
        let read = |path| fs::read(path).unwrap_or_default();
        assert!(read(&natively) == read(&here), "registers or memory differ: seed {seed}");
        let oracle = step(&path, &[stepped.to_str().unwrap()]);
        assert_eq!(differences(&oracle.executions, &by_address(&run)), Vec::<String>::new(), "seed {seed}");
        instructions += run.counts.instructions();
    }
    assert!(whole > 0 && instructions > 1_000, "{whole} sequences, {instructions} instructions");
}
