//! The queries of a processor's extensions, and the order to discard code that was changed.

use isa::RiscvExtension;
use riscv::RiscvCpu;

use crate::abi::layout::GuestStructure;
use host::Errno;

use super::{ADDRESS_SPACE, Call, CallOutcome};

/// The extensions in `RISCV_HWPROBE_KEY_IMA_EXT_0`, by their bits (asm/hwprobe.h).
#[rustfmt::skip]
const EXTENSION_BITS: &[(u32, RiscvExtension)] = &[
    (0, RiscvExtension::D), (1, RiscvExtension::C), (2, RiscvExtension::V), (3, RiscvExtension::Zba),
    (4, RiscvExtension::Zbb), (5, RiscvExtension::Zbs), (6, RiscvExtension::Zicboz), (7, RiscvExtension::Zbc),
    (8, RiscvExtension::Zbkb), (9, RiscvExtension::Zbkc), (10, RiscvExtension::Zbkx), (27, RiscvExtension::Zfh),
    (28, RiscvExtension::Zfhmin), (29, RiscvExtension::Zihintntl), (32, RiscvExtension::Zfa),
    (34, RiscvExtension::Zacas), (35, RiscvExtension::Zicond), (36, RiscvExtension::Zihintpause),
    (42, RiscvExtension::Zimop), (43, RiscvExtension::Zca), (44, RiscvExtension::Zcb), (45, RiscvExtension::Zcd),
    (47, RiscvExtension::Zcmop), (48, RiscvExtension::Zawrs), (55, RiscvExtension::Zicbom), (56, RiscvExtension::Zaamo),
    (57, RiscvExtension::Zalrsc), (58, RiscvExtension::Zabha),
];

/// Bytes that one instruction of Zicboz zeroes.
const ZEROED_BLOCK: u64 = isa::CACHE_BLOCK as u64;

/// The value of a key of riscv_hwprobe; None if it is not known.
fn property(cpu: &RiscvCpu, key: u64) -> Option<u64> {
    const BASE_IMA: u64 = 1;
    const FAST: u64 = 3;
    let has = |extension| cpu.extensions.has(extension);
    Some(match key {
        // The vendor, the architecture and the implementation: none.
        0..=2 => 0,
        3 => BASE_IMA,
        4 => EXTENSION_BITS.iter().filter(|(_, one)| has(*one)).fold(0, |bits, (bit, _)| bits | 1 << bit),
        // Unaligned accesses of integers.
        5 | 9 => FAST,
        6 if has(RiscvExtension::Zicboz) => ZEROED_BLOCK,
        7 => ADDRESS_SPACE - 1,
        _ => return None,
    })
}

/// riscv_hwprobe(pairs, number of pairs, bytes of a set of processors, the set, flags): all processors are alike.
pub fn riscv_hwprobe(call: &mut Call) -> CallOutcome {
    const PAIR: u64 = 16;
    let [pairs, count, bytes, set, flags, _] = call.arguments;
    // Bit 0 asks which processors have the values; without them, a set without its size is an error.
    if flags != 0 || (bytes == 0) != (set == 0) {
        return Err(Errno(libc::EINVAL));
    }
    for index in 0..count {
        let pair = pairs.wrapping_add(PAIR.wrapping_mul(index));
        let key = call.read_u64(pair)?;
        let (key, value) = property(call.cpu, key).map_or((u64::MAX, 0), |value| (key, value));
        call.write(pair, &GuestStructure::new().u64s(&[key, value]))?;
    }
    Ok(0)
}

/// riscv_flush_icache(start, end, flags)
pub fn riscv_flush_icache(call: &mut Call) -> CallOutcome {
    const LOCAL: u64 = 1;
    if call.arguments[2] & !LOCAL != 0 {
        return Err(Errno(libc::EINVAL));
    }
    call.memory.code_changed();
    Ok(0)
}

/// The contents of /proc/cpuinfo: one processor.
pub fn processor_information(cpu: &RiscvCpu) -> String {
    let isa = cpu.extensions.to_string();
    format!(
        "processor\t: 0\nhart\t\t: 0\nisa\t\t: {isa}\nmmu\t\t: sv39\nmvendorid\t: 0x0\nmarchid\t\t: 0x0\nmimpid\t\t: 0x0\n\n"
    )
}
