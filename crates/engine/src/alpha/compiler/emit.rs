//! From a region to Cranelift's intermediate code: control flow, registers, memory. What single
//! instructions compute is in `operate`.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    self, AbiParam, Function, InstBuilder, MemFlagsData, Signature, SourceLoc, Type, UserFuncName, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch, Variable};
use isa::{Flags, Op};

use super::arena::Entries;
use super::region::Region;
use crate::alpha::block::{Block, BlockCache};
use crate::alpha::cpu::{Cpu, HostSide, register::SINK};
use crate::alpha::meaning::{Break, Step, execute, pal};
use crate::memory::ADDRESS_SPACE;

mod operate;

/// A region: no arguments (the Cpu is in the pinned register), returns where the program goes on.
pub(super) fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// Writes the region's code into `function`.
pub(super) fn emit(
    region: &Region,
    cache: &BlockCache,
    entries: &Entries,
    target: TargetFrontendConfig,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
) {
    function.name = UserFuncName::default();
    let mut builder = FunctionBuilder::new(function, context);
    let region_signature = builder.import_signature(signature());
    let mut helper = Signature::new(CallConv::SystemV);
    helper.params = vec![AbiParam::new(I64); 2];
    helper.returns = vec![AbiParam::new(I64)];
    let helper_signature = builder.import_signature(helper);
    let entry = builder.create_block();
    let blocks: Vec<ir::Block> = region.blocks.iter().map(|_| builder.create_block()).collect();
    let r = std::array::from_fn(|_| builder.declare_var(I64));
    let f = std::array::from_fn(|_| builder.declare_var(I64));
    let (used_r, used_f) = region.registers(cache);
    let mut emitter = Emitter {
        builder,
        region,
        cache,
        entries,
        blocks,
        region_signature,
        helper_signature,
        cpu: Value::from_u32(0),
        r,
        f,
        used_r,
        used_f,
        dirty_r: 0,
        dirty_f: 0,
        checked: Vec::new(),
    };
    emitter.builder.switch_to_block(entry);
    emitter.cpu = emitter.builder.ins().get_pinned_reg(I64);
    emitter.reload();
    emitter.builder.ins().jump(emitter.blocks[0], &[]);
    for index in 0..region.blocks.len() {
        emitter.block(index);
    }
    emitter.builder.seal_all_blocks();
    emitter.builder.finalize(target);
}

struct Emitter<'a> {
    builder: FunctionBuilder<'a>,
    region: &'a Region,
    cache: &'a BlockCache,
    entries: &'a Entries,
    blocks: Vec<ir::Block>,
    region_signature: ir::SigRef,
    helper_signature: ir::SigRef,
    /// The address of the Cpu.
    cpu: Value,
    /// The registers' contents.
    r: [Variable; 32],
    f: [Variable; 32],
    /// Which registers the region reads.
    used_r: u32,
    used_f: u32,
    /// Which of them must still be written to the Cpu.
    dirty_r: u32,
    dirty_f: u32,
    /// Addresses that were found to lie in the address space.
    checked: Vec<Value>,
}

/// Accesses to the Cpu: they never fault.
fn state() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned()
}

fn r_offset(register: u8) -> i32 {
    (offset_of!(Cpu, r) + 8 * register as usize) as i32
}

fn f_offset(register: u8) -> i32 {
    (offset_of!(Cpu, f) + 8 * register as usize) as i32
}

impl<'a> Emitter<'a> {
    fn block(&mut self, index: usize) {
        self.enter(self.blocks[index]);
        let cache: &'a BlockCache = self.cache;
        let block = cache.block(self.region.blocks[index]);
        for (at, step) in block.steps.iter().enumerate() {
            self.builder.set_srcloc(SourceLoc::new(Region::site(index, at)));
            let here = block.address + 4 * at as u64;
            if self.transfer(step, here, block) {
                return;
            }
            self.instruction(step, here);
        }
        self.go(block.end());
    }

    fn enter(&mut self, block: ir::Block) {
        self.builder.switch_to_block(block);
        self.cpu = self.builder.ins().get_pinned_reg(I64);
        debug_assert_eq!((self.dirty_r, self.dirty_f), (0, 0));
        self.checked.clear();
    }

    /// Loads every register that the region reads: others may have changed them. What is not read
    /// before it is loaded again costs nothing.
    fn reload(&mut self) {
        for register in 0..31u8 {
            if self.used_r >> register & 1 != 0 {
                self.reload_one(self.r[register as usize], r_offset(register));
            }
            if self.used_f >> register & 1 != 0 {
                self.reload_one(self.f[register as usize], f_offset(register));
            }
        }
    }

    fn reload_one(&mut self, variable: Variable, offset: i32) {
        let value = self.builder.ins().load(I64, state(), self.cpu, offset);
        self.builder.def_var(variable, value);
    }

    // Registers

    fn constant(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(I64, value as i64)
    }

    fn read(&mut self, register: u8) -> Value {
        if register == 31 {
            return self.constant(0);
        }
        self.builder.use_var(self.r[register as usize])
    }

    fn write(&mut self, register: u8, value: Value) {
        if register as usize != SINK {
            self.builder.def_var(self.r[register as usize], value);
            self.dirty_r |= 1 << register;
        }
    }

    fn read_float(&mut self, register: u8) -> Value {
        if register == 31 {
            return self.constant(0);
        }
        self.builder.use_var(self.f[register as usize])
    }

    fn write_float(&mut self, register: u8, value: Value) {
        if register as usize != SINK {
            self.builder.def_var(self.f[register as usize], value);
            self.dirty_f |= 1 << register;
        }
    }

    /// Writes to the Cpu what only host registers hold.
    fn flush(&mut self) {
        for register in 0..31u8 {
            if self.dirty_r >> register & 1 != 0 {
                let value = self.builder.use_var(self.r[register as usize]);
                self.builder.ins().store(state(), value, self.cpu, r_offset(register));
            }
            if self.dirty_f >> register & 1 != 0 {
                let value = self.builder.use_var(self.f[register as usize]);
                self.builder.ins().store(state(), value, self.cpu, f_offset(register));
            }
        }
        (self.dirty_r, self.dirty_f) = (0, 0);
    }

    // Leaving

    /// Leaves the region: the program goes on at `address`.
    fn leave(&mut self, address: u64) {
        let address = self.constant(address);
        self.builder.ins().return_(&[address]);
    }

    /// Leaves to `address` if `condition` is not zero. The registers must have been flushed.
    fn leave_if(&mut self, condition: Value, address: u64) {
        let (out, on) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(condition, out, &[], on, &[]);
        self.builder.set_cold_block(out);
        self.builder.switch_to_block(out);
        self.leave(address);
        self.builder.switch_to_block(on);
    }

    /// Ends the block: control goes to a fixed address.
    fn go(&mut self, address: u64) {
        self.flush();
        match self.region.by_address.get(&address) {
            Some(&index) => {
                let block = self.blocks[index];
                self.builder.ins().jump(block, &[]);
            }
            None => self.tail(address),
        }
    }

    /// Goes on in other code if there is some, as if by a jump; else leaves.
    fn tail(&mut self, address: u64) {
        if address >= ADDRESS_SPACE {
            return self.leave(address);
        }
        let target = self.constant(address);
        let slot = self.constant(self.entries.slot(address) as u64);
        let code = self.builder.ins().load(I64, state(), slot, 0);
        self.tail_code(target, code);
    }

    fn tail_code(&mut self, target: Value, code: Value) {
        let result = self.call_code(target, code);
        self.builder.ins().return_(&[result]);
    }

    /// Looks up the code for an address that is not known before: zero outside the address space.
    fn look_up(&mut self, target: Value) -> Value {
        let high = self.builder.ins().ushr_imm_u(target, i64::from(ADDRESS_SPACE.trailing_zeros()));
        let inside = self.builder.ins().icmp_imm_u(IntCC::Equal, high, 0);
        let (ask, join) = (self.builder.create_block(), self.builder.create_block());
        let code = self.builder.append_block_param(join, I64);
        let zero = self.constant(0);
        self.builder.ins().brif(inside, ask, &[], join, &[zero.into()]);
        self.builder.switch_to_block(ask);
        let offset = self.builder.ins().ishl_imm_u(target, 1);
        let base = self.constant(self.entries.base() as u64);
        let slot = self.builder.ins().iadd(base, offset);
        let found = self.builder.ins().load(I64, state(), slot, 0);
        self.builder.ins().jump(join, &[found.into()]);
        self.builder.switch_to_block(join);
        code
    }

    /// Calls `code` and gives what it returns. Where there is no code, or no room on the host's stack,
    /// the region is left for `target` instead.
    fn call_code(&mut self, target: Value, code: Value) -> Value {
        let limit = (offset_of!(Cpu, host) + offset_of!(HostSide, stack_limit)) as i32;
        let limit = self.builder.ins().load(I64, state(), self.cpu, limit);
        let stack_pointer = self.builder.ins().get_stack_pointer(I64);
        let room = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, stack_pointer, limit);
        let exists = self.builder.ins().icmp_imm_u(IntCC::NotEqual, code, 0);
        let both = self.builder.ins().band(room, exists);
        let (call, out) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(both, call, &[], out, &[]);
        self.builder.set_cold_block(out);
        self.builder.switch_to_block(out);
        self.builder.ins().return_(&[target]);
        self.builder.switch_to_block(call);
        let done = self.builder.ins().call_indirect(self.region_signature, code, &[]);
        self.builder.inst_results(done)[0]
    }

    /// A guest call: goes on at `back` if the callee returns there.
    fn call(&mut self, target: Value, code: Value, back: u64) {
        let next = self.call_code(target, code);
        let expected = self.builder.ins().icmp_imm_s(IntCC::Equal, next, back as i64);
        let (returned, elsewhere) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(expected, returned, &[], elsewhere, &[]);
        self.builder.set_cold_block(elsewhere);
        self.builder.switch_to_block(elsewhere);
        self.builder.ins().return_(&[next]);
        self.enter(returned);
        self.reload();
        self.go(back);
    }

    /// Before a transfer backwards: leaves if a signal waits, so that loops end.
    fn poll(&mut self, here: u64, target: u64) {
        if target <= here {
            let flag = self.constant(crate::linux::pending_flag() as u64);
            let pending = self.builder.ins().load(I8, MemFlagsData::new().with_notrap(), flag, 0);
            self.leave_if(pending, target);
        }
    }

    /// A transfer of control, which ends the block; false if the instruction is none.
    fn transfer(&mut self, step: &Step, here: u64, block: &Block) -> bool {
        let (back, target) = (here + 4, step.immediate as u64);
        match step.op {
            Op::Br | Op::Bsr => {
                let link = self.constant(back);
                self.write(step.c, link);
                self.flush();
                if step.op == Op::Bsr && target < ADDRESS_SPACE {
                    let slot = self.constant(self.entries.slot(target) as u64);
                    let code = self.builder.ins().load(I64, state(), slot, 0);
                    let target = self.constant(target);
                    self.call(target, code, back);
                } else {
                    self.poll(here, target);
                    self.go(target);
                }
            }
            Op::Jmp | Op::Jsr | Op::Ret | Op::JsrCoroutine => {
                let base = self.read(step.b);
                let target = self.builder.ins().band_imm_s(base, !3);
                let link = self.constant(back);
                self.write(step.c, link);
                self.flush();
                match step.op {
                    Op::Ret => drop(self.builder.ins().return_(&[target])),
                    Op::Jsr => {
                        let code = self.look_up(target);
                        self.call(target, code, back);
                    }
                    _ => self.jump(target, &block.jumps),
                }
            }
            Op::CallPal if !matches!(step.immediate, pal::RDUNIQ | pal::WRUNIQ) => {
                self.flush();
                self.leave(here);
            }
            op if op.is(Flags::CONDITIONAL) => {
                let condition = self.condition(step);
                self.flush();
                let (taken, not) = (self.builder.create_block(), self.builder.create_block());
                self.builder.ins().brif(condition, taken, &[], not, &[]);
                self.builder.switch_to_block(taken);
                self.poll(here, target);
                self.go(target);
                self.builder.switch_to_block(not);
                self.go(back);
            }
            _ => return false,
        }
        true
    }

    /// A jump within the function, by a table: to the places it went before without leaving.
    fn jump(&mut self, target: Value, known: &[u64]) {
        let other = self.builder.create_block();
        let mut switch = Switch::new();
        for address in known {
            if let Some(&index) = self.region.by_address.get(address) {
                switch.set_entry(u128::from(*address), self.blocks[index]);
            }
        }
        switch.emit(&mut self.builder, target, other);
        self.builder.switch_to_block(other);
        let code = self.look_up(target);
        self.tail_code(target, code);
    }

    // Memory

    /// The address of a memory operand, known to lie where only the guest's memory is: accesses to
    /// other addresses are left to the interpreter. Flushes, for the access may fault.
    fn address(&mut self, step: &Step, here: u64) -> Value {
        let base = self.read(step.b);
        self.flush();
        if !self.checked.contains(&base) {
            // The displacement reaches at most 32 KB further, where nothing is ever mapped.
            let high = self.builder.ins().ushr_imm_u(base, i64::from(ADDRESS_SPACE.trailing_zeros()));
            self.leave_if(high, here);
            self.checked.push(base);
        }
        self.builder.ins().iadd_imm_s(base, step.immediate)
    }

    /// Guest loads are atomic for Cranelift so that they stay where they are: the instruction that
    /// faults must be the load's own.
    fn load(&mut self, kind: Type, address: Value) -> Value {
        self.builder.ins().atomic_load(kind, MemFlagsData::new(), address)
    }

    fn store(&mut self, kind: Type, address: Value, value: Value) {
        let value = if kind == I64 { value } else { self.builder.ins().ireduce(kind, value) };
        self.builder.ins().store(MemFlagsData::new(), value, address, 0);
    }

    fn instruction(&mut self, step: &Step, here: u64) {
        let op = step.op;
        match op {
            Op::Ldbu | Op::Ldwu | Op::Ldl | Op::Ldq | Op::LdqU => {
                let mut address = self.address(step, here);
                let kind = match op {
                    Op::Ldbu => I8,
                    Op::Ldwu => I16,
                    Op::Ldl => I32,
                    _ => I64,
                };
                if op == Op::LdqU {
                    address = self.builder.ins().band_imm_s(address, !7);
                }
                let loaded = self.load(kind, address);
                let value = match op {
                    Op::Ldbu | Op::Ldwu => self.builder.ins().uextend(I64, loaded),
                    Op::Ldl => self.builder.ins().sextend(I64, loaded),
                    _ => loaded,
                };
                self.write(step.c, value);
            }
            Op::Stb | Op::Stw | Op::Stl | Op::Stq | Op::StqU => {
                let value = self.read(step.a);
                let mut address = self.address(step, here);
                let kind = match op {
                    Op::Stb => I8,
                    Op::Stw => I16,
                    Op::Stl => I32,
                    _ => I64,
                };
                if op == Op::StqU {
                    address = self.builder.ins().band_imm_s(address, !7);
                }
                self.store(kind, address, value);
            }
            Op::Ldt => {
                let address = self.address(step, here);
                let value = self.load(I64, address);
                self.write_float(step.c, value);
            }
            Op::Stt => {
                let value = self.read_float(step.a);
                let address = self.address(step, here);
                self.store(I64, address, value);
            }
            _ => {
                if !self.operate(step) {
                    self.by_interpreter(step, here);
                }
            }
        }
    }

    /// Lets the interpreter execute one instruction; leaves if it does not complete.
    fn by_interpreter(&mut self, step: &Step, here: u64) {
        self.flush();
        let function = self.constant(one as *const () as u64);
        let step_address = self.constant(step as *const Step as u64);
        let done =
            self.builder.ins().call_indirect(self.helper_signature, function, &[self.cpu, step_address]);
        let failed = self.builder.inst_results(done)[0];
        self.leave_if(failed, here);
        if (step.c as usize) != SINK {
            self.reload_one(self.r[step.c as usize], r_offset(step.c));
            self.reload_one(self.f[step.c as usize], f_offset(step.c));
        }
    }
}

/// Executes one instruction that is no transfer of control. On an exception everything is as before,
/// so that the interpreter can execute it again and raise the exception.
extern "C" fn one(cpu: *mut Cpu, step: *const Step) -> u64 {
    // SAFETY: compiled code passes its Cpu, and a step of a block that lives as long as the code;
    // `run` noted the memory and the model for as long as compiled code runs.
    let (cpu, step, memory, model) = unsafe {
        let cpu = &mut *cpu;
        let (memory, model) = (&*cpu.host.memory, cpu.host.model);
        (cpu, &*step, memory, model)
    };
    let before = (cpu.r[step.c as usize], cpu.f[step.c as usize], cpu.lock, cpu.fpcr, cpu.ieee_control);
    let pc = cpu.pc;
    match execute(step, cpu, memory, model) {
        Ok(()) => 0,
        Err(Break::Exception(_) | Break::SystemCall | Break::InstructionBarrier) => {
            (cpu.r[step.c as usize], cpu.f[step.c as usize], cpu.lock, cpu.fpcr, cpu.ieee_control) = before;
            cpu.pc = pc;
            1
        }
    }
}
