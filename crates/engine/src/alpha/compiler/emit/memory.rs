//! Loads and stores.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};
use isa::Op;

use super::{Cpu, Emitter, HostSide, TRAP, host_field, offset_of, state};
use crate::alpha::meaning::Step;

impl Emitter<'_> {
    /// An access to memory; false if the instruction is none of the common ones.
    pub(super) fn access(&mut self, step: &Step, at: usize) -> bool {
        let op = step.op;
        let kind = match op {
            Op::Ldbu | Op::Stb => I8,
            Op::Ldwu | Op::Stw => I16,
            Op::Ldl | Op::Stl => I32,
            Op::Ldq | Op::Stq | Op::LdqU | Op::StqU | Op::Ldt | Op::Stt => I64,
            _ => return false,
        };
        let is_store = matches!(op, Op::Stb | Op::Stw | Op::Stl | Op::Stq | Op::StqU | Op::Stt);
        if is_store {
            self.flush();
            self.begin_segment(at);
        }
        let mut address = self.address(step);
        if matches!(op, Op::LdqU | Op::StqU) {
            address = self.builder.ins().band_imm_s(address, !7);
        } else if self.counting && kind != I8 {
            // The interpreter counts accesses that are not aligned.
            let low = self.builder.ins().band_imm_s(address, i64::from(kind.bytes()) - 1);
            self.builder.ins().trapnz(low, TRAP);
        }
        match op {
            Op::Stb | Op::Stw | Op::Stl | Op::Stq | Op::StqU => {
                let value = self.read(step.a);
                let value = if kind == I64 { value } else { self.builder.ins().ireduce(kind, value) };
                self.store(address, value);
            }
            Op::Stt => {
                let value = self.read_float(step.a);
                self.store(address, value);
            }
            _ => {
                let loaded = self.load(kind, address);
                let value = match kind {
                    I8 | I16 => self.builder.ins().uextend(I64, loaded),
                    I32 => self.builder.ins().sextend(I64, loaded),
                    _ => loaded,
                };
                self.set((op == Op::Ldt, step.c), value);
            }
        }
        if is_store {
            self.begin_segment(at + 1);
        }
        true
    }

    /// The address of a memory operand, known to lie where only the guest's memory is: an access to
    /// another address traps, and is left to the interpreter.
    fn address(&mut self, step: &Step) -> Value {
        let base = self.read(step.b);
        if !self.checked[self.index].contains(&base) {
            // The displacement reaches at most 32 KB further, where nothing is ever mapped.
            let limit = self.builder.ins().load(I64, state(), self.cpu, host_field!(address_limit));
            let outside = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, base, limit);
            self.builder.ins().trapnz(outside, TRAP);
            self.checked[self.index].push(base);
        }
        self.builder.ins().iadd_imm_s(base, step.immediate)
    }

    /// Guest loads are atomic for Cranelift so that they stay where they are: between the stores.
    fn load(&mut self, kind: Type, address: Value) -> Value {
        self.builder.ins().atomic_load(kind, MemFlagsData::new(), address)
    }

    fn store(&mut self, address: Value, value: Value) {
        self.builder.ins().store(MemFlagsData::new(), value, address, 0);
    }
}
