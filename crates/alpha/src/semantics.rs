//! The semantics of each instruction: one line an instruction (Alpha Architecture Reference Manual, chapter 4). This is the
//! reference that everything faster is compared with.

use std::sync::atomic::{Ordering, fence};

use isa::Op;

use crate::bytes::*;
use crate::cpu::{Cpu, Exception, LoadLock, register::*};
pub use crate::decoded_instruction::DecodedInstruction;
use crate::float;
use crate::pal;
use guest_memory::Memory;

/// Why a block was left before the next one could begin.
pub type Break = guest::Break<Exception>;

impl From<Exception> for Break {
    #[cold]
    fn from(exception: Exception) -> Break {
        Break::Exception(exception)
    }
}

/// Integer overflow in the exception summary.
const IOV: u64 = 1 << 6;

fn long(value: u64) -> u64 {
    value as i32 as u64
}

/// Executes one instruction. `cpu.pc` must be the address of the instruction behind it; a transfer
/// of control replaces it.
///
/// Always inlined into the loop that decides what runs next.
#[inline(always)]
pub fn execute(
    step: &DecodedInstruction,
    cpu: &mut Cpu,
    memory: &Memory,
    model: isa::CpuModel,
) -> Result<(), Break> {
    let a = cpu.r[step.a as usize];
    let b = cpu.r[step.b as usize].wrapping_add(step.immediate as u64);
    macro_rules! result {
        ($value:expr) => {
            cpu.r[step.c as usize] = $value
        };
    }
    macro_rules! load {
        ($size:literal, $value:ident => $register:expr) => {{
            let $value = memory.load::<$size>(b)?;
            count_unaligned::<$size>(cpu, b);
            result!($register)
        }};
    }
    macro_rules! store {
        ($size:literal, $value:expr) => {{
            memory.store::<$size>(b, $value)?;
            count_unaligned::<$size>(cpu, b)
        }};
    }
    macro_rules! float_load {
        ($size:literal, $value:ident => $register:expr) => {{
            let $value = memory.load::<$size>(b)?;
            count_unaligned::<$size>(cpu, b);
            cpu.f[step.c as usize] = $register
        }};
    }
    macro_rules! move_if {
        ($condition:expr) => {
            if $condition {
                result!(b)
            }
        };
    }
    macro_rules! branch_if {
        ($condition:expr) => {
            if $condition {
                cpu.pc = step.immediate as u64
            }
        };
    }
    macro_rules! trapping {
        ($type:ty, $operation:ident) => {{
            let (value, overflow) = (a as $type).$operation(b as $type);
            result!(value as u64);
            if overflow {
                return Err(Exception::Arithmetic { summary: IOV, registers: 1 << (step.c & 31) }.into());
            }
        }};
    }
    let (signed_a, signed_b) = (a as i64, b as i64);
    let fa = cpu.f[step.a as usize];
    match step.op {
        // Memory, integer
        Op::Lda | Op::Ldah => result!(b),
        Op::Ldbu => load!(1, value => value),
        Op::Ldwu => load!(2, value => value),
        Op::Ldl => load!(4, value => long(value)),
        Op::Ldq => load!(8, value => value),
        Op::LdqU => result!(memory.load::<8>(b & !7)?),
        Op::LdlL => result!(load_locked::<4>(cpu, memory, b)?),
        Op::LdqL => result!(load_locked::<8>(cpu, memory, b)?),
        Op::Stb => store!(1, a),
        Op::Stw => store!(2, a),
        Op::Stl => store!(4, a),
        Op::Stq => store!(8, a),
        Op::StqU => memory.store::<8>(b & !7, a)?,
        Op::StlC => result!(store_conditional::<4>(cpu, memory, b, a)?),
        Op::StqC => result!(store_conditional::<8>(cpu, memory, b, a)?),
        // Memory, floating
        Op::Lds => float_load!(4, value => float::load_s(value as u32)),
        Op::Ldt => float_load!(8, value => value),
        Op::Ldf => float_load!(4, value => float::load_f(value as u32)),
        Op::Ldg => float_load!(8, value => float::load_g(value)),
        Op::Sts => store!(4, u64::from(float::store_s(fa))),
        Op::Stt => store!(8, fa),
        Op::Stf => store!(4, u64::from(float::store_f(fa))),
        Op::Stg => store!(8, float::store_g(fa)),
        // Control
        Op::Br | Op::Bsr => {
            result!(cpu.pc);
            cpu.pc = step.immediate as u64;
        }
        Op::Beq => branch_if!(a == 0),
        Op::Bne => branch_if!(a != 0),
        Op::Blt => branch_if!(signed_a < 0),
        Op::Ble => branch_if!(signed_a <= 0),
        Op::Bgt => branch_if!(signed_a > 0),
        Op::Bge => branch_if!(signed_a >= 0),
        Op::Blbc => branch_if!(a & 1 == 0),
        Op::Blbs => branch_if!(a & 1 != 0),
        Op::Fbeq => branch_if!(fa << 1 == 0),
        Op::Fbne => branch_if!(fa << 1 != 0),
        Op::Fblt => branch_if!((fa as i64) < 0 && fa << 1 != 0),
        Op::Fble => branch_if!((fa as i64) < 0 || fa << 1 == 0),
        Op::Fbgt => branch_if!((fa as i64) >= 0 && fa << 1 != 0),
        Op::Fbge => branch_if!((fa as i64) >= 0 || fa << 1 == 0),
        Op::Jmp | Op::Jsr | Op::Ret | Op::JsrCoroutine => {
            let target = cpu.r[step.b as usize] & !3;
            result!(cpu.pc);
            cpu.pc = target;
        }
        // Integer arithmetic
        Op::Addl => result!(long(a.wrapping_add(b))),
        Op::Addq => result!(a.wrapping_add(b)),
        Op::Addlv => trapping!(i32, overflowing_add),
        Op::Addqv => trapping!(i64, overflowing_add),
        Op::Subl => result!(long(a.wrapping_sub(b))),
        Op::Subq => result!(a.wrapping_sub(b)),
        Op::Sublv => trapping!(i32, overflowing_sub),
        Op::Subqv => trapping!(i64, overflowing_sub),
        Op::S4addl => result!(long((a << 2).wrapping_add(b))),
        Op::S4addq => result!((a << 2).wrapping_add(b)),
        Op::S4subl => result!(long((a << 2).wrapping_sub(b))),
        Op::S4subq => result!((a << 2).wrapping_sub(b)),
        Op::S8addl => result!(long((a << 3).wrapping_add(b))),
        Op::S8addq => result!((a << 3).wrapping_add(b)),
        Op::S8subl => result!(long((a << 3).wrapping_sub(b))),
        Op::S8subq => result!((a << 3).wrapping_sub(b)),
        Op::Mull => result!(long(a.wrapping_mul(b))),
        Op::Mulq => result!(a.wrapping_mul(b)),
        Op::Mullv => trapping!(i32, overflowing_mul),
        Op::Mulqv => trapping!(i64, overflowing_mul),
        Op::Umulh => result!(((u128::from(a) * u128::from(b)) >> 64) as u64),
        Op::Cmpeq => result!(u64::from(a == b)),
        Op::Cmplt => result!(u64::from(signed_a < signed_b)),
        Op::Cmple => result!(u64::from(signed_a <= signed_b)),
        Op::Cmpult => result!(u64::from(a < b)),
        Op::Cmpule => result!(u64::from(a <= b)),
        Op::Cmpbge => result!(compare_bytes(a, b)),
        // Logic and shift
        Op::And => result!(a & b),
        Op::Bis => result!(a | b),
        Op::Xor => result!(a ^ b),
        Op::Bic => result!(a & !b),
        Op::Ornot => result!(a | !b),
        Op::Eqv => result!(a ^ !b),
        Op::Sll => result!(a << (b & 63)),
        Op::Srl => result!(a >> (b & 63)),
        Op::Sra => result!((signed_a >> (b & 63)) as u64),
        Op::Cmoveq => move_if!(a == 0),
        Op::Cmovne => move_if!(a != 0),
        Op::Cmovlt => move_if!(signed_a < 0),
        Op::Cmovle => move_if!(signed_a <= 0),
        Op::Cmovgt => move_if!(signed_a > 0),
        Op::Cmovge => move_if!(signed_a >= 0),
        Op::Cmovlbc => move_if!(a & 1 == 0),
        Op::Cmovlbs => move_if!(a & 1 != 0),
        Op::Amask => result!(b & !model.amask()),
        Op::Implver => result!(model.implver()),
        // Bytes
        Op::Zap => result!(keep(a, !b)),
        Op::Zapnot => result!(keep(a, b)),
        Op::Extbl => result!(extract_low(a, b, 1)),
        Op::Extwl => result!(extract_low(a, b, 2)),
        Op::Extll => result!(extract_low(a, b, 4)),
        Op::Extql => result!(extract_low(a, b, 8)),
        Op::Extwh => result!(extract_high(a, b, 2)),
        Op::Extlh => result!(extract_high(a, b, 4)),
        Op::Extqh => result!(extract_high(a, b, 8)),
        Op::Insbl => result!(insert_low(a, b, 1)),
        Op::Inswl => result!(insert_low(a, b, 2)),
        Op::Insll => result!(insert_low(a, b, 4)),
        Op::Insql => result!(insert_low(a, b, 8)),
        Op::Inswh => result!(insert_high(a, b, 2)),
        Op::Inslh => result!(insert_high(a, b, 4)),
        Op::Insqh => result!(insert_high(a, b, 8)),
        Op::Mskbl => result!(mask_low(a, b, 1)),
        Op::Mskwl => result!(mask_low(a, b, 2)),
        Op::Mskll => result!(mask_low(a, b, 4)),
        Op::Mskql => result!(mask_low(a, b, 8)),
        Op::Mskwh => result!(mask_high(a, b, 2)),
        Op::Msklh => result!(mask_high(a, b, 4)),
        Op::Mskqh => result!(mask_high(a, b, 8)),
        Op::Sextb => result!(b as i8 as u64),
        Op::Sextw => result!(b as i16 as u64),
        // Counting (CIX) and motion video (MVI)
        Op::Ctpop => result!(u64::from(b.count_ones())),
        Op::Ctlz => result!(u64::from(b.leading_zeros())),
        Op::Cttz => result!(u64::from(b.trailing_zeros())),
        Op::Perr => result!(pixel_error(a, b)),
        Op::Pklb => result!(pack(b, 4, 2)),
        Op::Pkwb => result!(pack(b, 2, 4)),
        Op::Unpkbl => result!(unpack(b, 4, 2)),
        Op::Unpkbw => result!(unpack(b, 2, 4)),
        Op::Minub8 => result!(bytewise(a, b, u8::min)),
        Op::Maxub8 => result!(bytewise(a, b, u8::max)),
        Op::Minsb8 => result!(bytewise(a, b, |a, b| (a as i8).min(b as i8) as u8)),
        Op::Maxsb8 => result!(bytewise(a, b, |a, b| (a as i8).max(b as i8) as u8)),
        Op::Minuw4 => result!(wordwise(a, b, u16::min)),
        Op::Maxuw4 => result!(wordwise(a, b, u16::max)),
        Op::Minsw4 => result!(wordwise(a, b, |a, b| (a as i16).min(b as i16) as u16)),
        Op::Maxsw4 => result!(wordwise(a, b, |a, b| (a as i16).max(b as i16) as u16)),
        // Between the register files
        Op::Itoft => cpu.f[step.c as usize] = a,
        Op::Itofs => cpu.f[step.c as usize] = float::load_s(a as u32),
        Op::Itoff => cpu.f[step.c as usize] = float::load_f(a as u32),
        Op::Ftoit => result!(fa),
        Op::Ftois => result!(long(u64::from(float::store_s(fa)))),
        // Miscellaneous
        // Other threads and processes see the same memory.
        Op::Mb => fence(Ordering::SeqCst),
        Op::Wmb => fence(Ordering::Release),
        Op::Trapb | Op::Excb | Op::Fetch | Op::FetchM | Op::Ecb | Op::Wh64 | Op::Wh64en => {}
        Op::Rpcc => result!(cpu.instructions & 0xffff_ffff),
        Op::Rc => result!(u64::from(std::mem::replace(&mut cpu.interrupt_flag, false))),
        Op::Rs => result!(u64::from(std::mem::replace(&mut cpu.interrupt_flag, true))),
        Op::CallPal => return call_pal(step.immediate, cpu),
        // Floating-point operates
        _ => float::execute(step, cpu)?,
    }
    Ok(())
}

/// Linux fixes up unaligned accesses of ordinary loads and stores; the host does it by itself. Those that
/// fault are not counted, for they may be executed again.
#[inline(always)]
fn count_unaligned<const SIZE: u64>(cpu: &mut Cpu, address: u64) {
    cpu.unaligned += u64::from(address & (SIZE - 1) != 0);
}

fn load_locked<const SIZE: usize>(cpu: &mut Cpu, memory: &Memory, address: u64) -> Result<u64, Break> {
    if !address.is_multiple_of(SIZE as u64) {
        return Err(Exception::Unaligned(address).into());
    }
    let loaded = memory.load::<SIZE>(address)?;
    let value = if SIZE == 4 { long(loaded) } else { loaded };
    cpu.lock = LoadLock { address, value };
    Ok(value)
}

/// Succeeds if nothing changed the value since the load-locked: a compare-and-exchange, as other
/// threads and processes see the same memory. (A value changed and changed back is not noticed.)
fn store_conditional<const SIZE: usize>(
    cpu: &mut Cpu,
    memory: &Memory,
    address: u64,
    value: u64,
) -> Result<u64, Break> {
    if !address.is_multiple_of(SIZE as u64) {
        return Err(Exception::Unaligned(address).into());
    }
    let lock = std::mem::replace(&mut cpu.lock, LoadLock::NONE);
    if lock.address != address {
        return Ok(0);
    }
    Ok(u64::from(memory.compare_exchange::<SIZE>(address, lock.value, value)?))
}

#[inline(never)]
fn call_pal(function: i64, cpu: &mut Cpu) -> Result<(), Break> {
    match function {
        pal::CALLSYS => Err(Break::SystemCall),
        pal::IMB => Err(Break::InstructionBarrier),
        pal::RDUNIQ => {
            cpu.r[V0] = cpu.unique;
            Ok(())
        }
        pal::WRUNIQ => {
            cpu.unique = cpu.r[A0];
            Ok(())
        }
        pal::CLRFEN => Ok(()),
        pal::BPT => Err(Exception::Breakpoint.into()),
        pal::BUGCHK => Err(Exception::Bugcheck.into()),
        pal::GENTRAP => Err(Exception::Gentrap.into()),
        _ => Err(Exception::IllegalInstruction.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guest_memory::Layout;
    use isa::{InstructionFormat, evaluate};
    use proptest::prelude::*;

    /// Integer operate instructions that [`evaluate`] omits: they are rare, and traces contain their results.
    const OMITTED: [Op; 25] = [
        Op::Cmpbge,
        Op::Amask,
        Op::Implver,
        Op::Inswh,
        Op::Inslh,
        Op::Insqh,
        Op::Mskwh,
        Op::Msklh,
        Op::Mskqh,
        Op::Ctpop,
        Op::Ctlz,
        Op::Cttz,
        Op::Perr,
        Op::Pklb,
        Op::Pkwb,
        Op::Unpkbl,
        Op::Unpkbw,
        Op::Minub8,
        Op::Maxub8,
        Op::Minsb8,
        Op::Maxsb8,
        Op::Minuw4,
        Op::Maxuw4,
        Op::Minsw4,
        Op::Maxsw4,
    ];

    /// Values at which instructions behave differently: zero, small ones, powers of two and their neighbours, any.
    fn operand() -> impl Strategy<Value = u64> {
        let near_power = (0u32..64, -1i64..=1).prop_map(|(bit, by)| (1u64 << bit).wrapping_add_signed(by));
        prop_oneof![
            Just(0),
            any::<u64>(),
            0u64..64,
            near_power.clone(),
            near_power.prop_map(u64::wrapping_neg)
        ]
    }

    /// Two operands. Comparisons need equal ones and neighbours.
    fn operands() -> impl Strategy<Value = (u64, u64)> {
        let neighbours = (operand(), -1i64..=1).prop_map(|(a, by)| (a, a.wrapping_add_signed(by)));
        prop_oneof![(operand(), operand()), neighbours]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The two descriptions of integer operates agree; the second one may only omit the listed instructions.
        #[test]
        fn integer_operates_agree_with_isa_evaluate((a, b) in operands(), old in operand()) {
            let memory = Memory::new(Layout { page: 8192, bytes: 1 << 42, map_base: 1 << 38, large_page: 1 << 22, large_base: 1 << 41 })?;
            for op in Op::ALL.into_iter().filter(|op| op.format() == InstructionFormat::Operate) {
                let step = DecodedInstruction { op, a: 1, b: 2, c: 3, immediate: 0 };
                let mut cpu = Cpu::default();
                cpu.r[1..4].copy_from_slice(&[a, b, old]);
                let trap = execute(&step, &mut cpu, &memory, isa::CpuModel::Ev67).is_err();
                prop_assert!(!trap || op.is(isa::Flags::OVERFLOW));
                match evaluate(op, a, b, old) {
                    Some(result) => prop_assert_eq!(cpu.r[3], result, "{:?} {:#x} {:#x}", op, a, b),
                    None => prop_assert!(OMITTED.contains(&op), "{:?} is omitted", op),
                }
            }
        }
    }
}
