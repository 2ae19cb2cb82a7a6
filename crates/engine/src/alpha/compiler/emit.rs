//! From a region to Cranelift's intermediate code. Here: blocks and registers; in `control` transfers
//! of control, in `memory` loads and stores, in `operate` what single instructions compute.

use std::mem::offset_of;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    self, AbiParam, Function, InstBuilder, MemFlagsData, SigRef, Signature, SourceLoc, TrapCode,
    UserFuncName, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};

use super::Site;
use super::arena::Entries;
use super::liveness::{self, Registers};
use super::region::{Edge, Region};
use isa::Op;
use trace::BlockId;

use crate::alpha::block::BlockCache;
use crate::alpha::cpu::{Cpu, HostSide, register::SINK};
use crate::alpha::meaning::{Break, Step, execute};

mod control;
mod memory;
mod operate;

/// A region: its own guest address (which only the stand-in for missing code needs; the Cpu is in the
/// pinned register), returns where the program goes on. The convention is the one in which nothing
/// survives a call, as the guest's registers do not.
pub(super) fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::Winch);
    signature.params.push(AbiParam::new(I64));
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// Writes the region's code into `function`. Source locations there are indices into the result:
/// where the interpreter takes over after a fault.
///
/// A fault of a load leaves registers in the Cpu that are older than the load. That does no harm: nothing
/// but loads and arithmetic was executed since the last instruction after which the Cpu was up to date,
/// and the interpreter executes that again from there. A segment is what begins with such an
/// instruction. Stores begin one, and the Cpu is brought up to date before them.
pub(super) fn emit(
    region: &Region,
    cache: &BlockCache,
    counting: bool,
    entries: &mut Entries,
    target: TargetFrontendConfig,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
) -> Vec<Site> {
    function.name = UserFuncName::default();
    let mut builder = FunctionBuilder::new(function, context);
    let region_signature = builder.import_signature(signature());
    let mut helper = Signature::new(CallConv::SystemV);
    helper.params = vec![AbiParam::new(I64); 2];
    helper.returns = vec![AbiParam::new(I64)];
    let helper_signature = builder.import_signature(helper.clone());
    helper.params.push(AbiParam::new(I64));
    let go_on_signature = builder.import_signature(helper);
    let variables = std::array::from_fn(|_| builder.declare_var(I64));
    let mut before = vec![Vec::new(); region.nodes.len()];
    for (index, edges) in region.edges.iter().enumerate() {
        edges.iter().for_each(|edge| before[edge.to].push(index));
    }
    let builder_executed = builder.declare_var(I64);
    let emitter = Emitter {
        blocks: region.nodes.iter().map(|_| builder.create_block()).collect(),
        leave: builder.create_block(),
        elsewhere: builder.create_block(),
        builder,
        region,
        cache,
        entries,
        region_signature,
        helper_signature,
        go_on_signature,
        cpu: Value::from_u32(0),
        variables,
        live: liveness::live_in(region, cache),
        dirty: Registers::default(),
        before,
        checked: vec![Vec::new(); region.nodes.len()],
        carried: vec![None; region.nodes.len()],
        executed: builder_executed,
        counting,
        sites: Vec::new(),
        index: 0,
    };
    emitter.all(target)
}

struct Emitter<'a> {
    builder: FunctionBuilder<'a>,
    region: &'a Region,
    cache: &'a BlockCache,
    entries: &'a mut Entries,
    /// Of the guest's blocks.
    blocks: Vec<ir::Block>,
    /// Returns its parameter: the program goes on there, by the interpreter or whoever called.
    leave: ir::Block,
    /// Goes on at its parameter, in other code if there is some.
    elsewhere: ir::Block,
    region_signature: SigRef,
    helper_signature: SigRef,
    go_on_signature: SigRef,
    /// The address of the Cpu.
    cpu: Value,
    /// The registers' contents: integer, then floating-point.
    variables: [Variable; 64],
    /// The registers that must be in variables at each block's beginning.
    live: Vec<Registers>,
    /// Variables that must still be written to the Cpu.
    dirty: Registers,
    /// For each block those that pass control to it.
    before: Vec<Vec<usize>>,
    /// At the end of each block that was written: addresses found to lie in the address space.
    checked: Vec<Vec<Value>>,
    /// For each block to which control comes from one place only, what is dirty there, and the segment.
    carried: Vec<Option<(Registers, Site)>>,
    /// Whether executions are counted, in the observer's counts and in the Cpu's instructions.
    counting: bool,
    /// Instructions that are not in the Cpu's count yet.
    executed: Variable,
    /// Where the interpreter takes over after a fault: the last one after faults of what is written next.
    sites: Vec<Site>,
    /// The block that is written.
    index: usize,
}

/// What compiled code leaves to the interpreter by a fault.
const TRAP: TrapCode = TrapCode::unwrap_user(1);

/// Accesses to the Cpu: they never fault.
fn state() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned()
}

/// Where a field of [`HostSide`] lies in the Cpu.
macro_rules! host_field {
    ($field:ident) => {
        (offset_of!(Cpu, host) + offset_of!(HostSide, $field)) as i32
    };
}
use host_field;

/// Where a register lies in the Cpu.
fn offset((is_float, number): (bool, u8)) -> i32 {
    let file = if is_float { offset_of!(Cpu, f) } else { offset_of!(Cpu, r) };
    (file + 8 * usize::from(number)) as i32
}

impl<'a> Emitter<'a> {
    fn all(mut self, target: TargetFrontendConfig) -> Vec<Site> {
        self.entry();
        for index in 0..self.blocks.len() {
            self.block(index);
            self.seal();
        }
        self.shared_exits();
        self.builder.seal_all_blocks();
        self.builder.finalize(target);
        self.sites
    }

    fn entry(&mut self) {
        let entry = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        self.builder.seal_block(entry);
        self.cpu = self.builder.ins().get_pinned_reg(I64);
        self.reset_executed();
        self.reload(self.live[0]);
        let here = self.cache.block(self.region.nodes[0].id).address;
        self.poll(here);
        if self.region.calls {
            let here = self.constant(here);
            self.check_stack(here);
        }
        self.builder.ins().jump(self.blocks[0], &[]);
    }

    /// Tells of each block all of whose predecessors are written: the earlier, the less work.
    fn seal(&mut self) {
        let mut sealed = Vec::new();
        for &Edge { to, .. } in &self.region.edges[self.index] {
            if self.before[to].iter().max() == Some(&self.index) && !sealed.contains(&to) {
                sealed.push(to);
                self.builder.seal_block(self.blocks[to]);
            }
        }
    }

    fn block(&mut self, index: usize) {
        self.index = index;
        self.begin(self.blocks[index]);
        // What the only way here has checked is checked.
        if let &[from] = &self.before[index][..]
            && index > 0
            && from < index
        {
            self.checked[index] = self.checked[from].clone();
        }
        let cache: &'a BlockCache = self.cache;
        let block = cache.block(self.region.nodes[index].id);
        match self.carried[index].take() {
            Some((dirty, mut site)) => {
                self.dirty = dirty;
                site.undone.push(self.region.nodes[index].id);
                self.new_site(site);
            }
            None => self.begin_segment(0),
        }
        self.count(self.region.nodes[index].id, block.steps.len());
        for (at, step) in block.steps.iter().enumerate() {
            let here = block.address + 4 * at as u64;
            if self.transfer(step, at, here, block) {
                return;
            }
            self.instruction(step, at);
        }
        self.go(block.end());
    }

    /// Begins a block to which control may come from several places.
    fn begin(&mut self, block: ir::Block) {
        self.builder.switch_to_block(block);
        self.cpu = self.builder.ins().get_pinned_reg(I64);
        self.dirty = Registers::default();
    }

    /// Begins a block to which control comes from one place, which was written just before.
    fn continue_in(&mut self, block: ir::Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    // Registers

    fn constant(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(I64, value as i64)
    }

    fn variable(&self, (is_float, number): (bool, u8)) -> Variable {
        self.variables[usize::from(number) + 32 * usize::from(is_float)]
    }

    fn get(&mut self, register: (bool, u8)) -> Value {
        if register.1 == 31 {
            return self.constant(0);
        }
        self.builder.use_var(self.variable(register))
    }

    fn set(&mut self, register: (bool, u8), value: Value) {
        if usize::from(register.1) != SINK {
            self.builder.def_var(self.variable(register), value);
            let (is_float, number) = register;
            let one = if is_float { Registers::float(number) } else { Registers::integer(number) };
            self.dirty = self.dirty.and(one);
        }
    }

    fn read(&mut self, register: u8) -> Value {
        self.get((false, register))
    }

    fn write(&mut self, register: u8, value: Value) {
        self.set((false, register), value);
    }

    fn read_float(&mut self, register: u8) -> Value {
        self.get((true, register))
    }

    fn write_float(&mut self, register: u8, value: Value) {
        self.set((true, register), value);
    }

    /// Loads registers that others may have changed.
    fn reload(&mut self, registers: Registers) {
        for register in registers.each() {
            let value = self.builder.ins().load(I64, state(), self.cpu, offset(register));
            self.builder.def_var(self.variable(register), value);
        }
    }

    /// From here on a fault makes the interpreter begin at an instruction of the block. Nothing may be
    /// dirty.
    fn begin_segment(&mut self, index: usize) {
        debug_assert_eq!(self.dirty, Registers::default());
        self.new_site(Site { block: self.region.nodes[self.index].id, index, undone: Vec::new() });
    }

    fn new_site(&mut self, site: Site) {
        self.builder.set_srcloc(SourceLoc::new(self.sites.len() as u32));
        self.sites.push(site);
    }

    /// Counts an execution of a block.
    fn count(&mut self, id: BlockId, instructions: usize) {
        if !self.counting {
            return;
        }
        let counts = self.builder.ins().load(I64, state(), self.cpu, host_field!(counts));
        let offset = 8 * id as i32;
        let count = self.builder.ins().load(I64, state(), counts, offset);
        let count = self.builder.ins().iadd_imm_s(count, 1);
        self.builder.ins().store(state(), count, counts, offset);
        let executed = self.builder.use_var(self.executed);
        let executed = self.builder.ins().iadd_imm_s(executed, instructions as i64);
        self.builder.def_var(self.executed, executed);
    }

    /// Brings the Cpu's count of instructions up to date, for others to see.
    fn settle_executed(&mut self) {
        if self.counting {
            let executed = self.builder.use_var(self.executed);
            let offset = offset_of!(Cpu, instructions) as i32;
            let sum = self.builder.ins().load(I64, state(), self.cpu, offset);
            let sum = self.builder.ins().iadd(sum, executed);
            self.builder.ins().store(state(), sum, self.cpu, offset);
            self.reset_executed();
        }
    }

    fn reset_executed(&mut self) {
        let zero = self.constant(0);
        self.builder.def_var(self.executed, zero);
    }

    /// Writes to the Cpu what only host registers hold.
    fn flush(&mut self) {
        for register in std::mem::take(&mut self.dirty).each() {
            let value = self.builder.use_var(self.variable(register));
            self.builder.ins().store(state(), value, self.cpu, offset(register));
        }
    }

    fn instruction(&mut self, step: &Step, at: usize) {
        if !self.access(step, at) && !self.operate(step) {
            self.by_interpreter(step, at);
        }
    }

    /// Lets the interpreter execute one instruction; it executes it again if it does not complete.
    fn by_interpreter(&mut self, step: &Step, at: usize) {
        self.flush();
        self.begin_segment(at);
        if step.op == Op::Rpcc {
            self.settle_executed();
        }
        let function = self.constant(one as *const () as u64);
        let step_address = self.constant(step as *const Step as u64);
        let done =
            self.builder.ins().call_indirect(self.helper_signature, function, &[self.cpu, step_address]);
        let failed = self.builder.inst_results(done)[0];
        self.builder.ins().trapnz(failed, TRAP);
        self.reload(Registers::integer(step.c).and(Registers::float(step.c)));
        self.begin_segment(at + 1);
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
