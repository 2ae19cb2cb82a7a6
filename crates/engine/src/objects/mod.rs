//! Follows the calls of functions whose arguments identify objects, such as the operators of a query's plan: what is executed
//! belongs to the object of the innermost call.

mod rules;
mod site;
mod statements;
mod steps;
mod structures;
mod table;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, TryLockError};

use events::LoadedImage;
use events::record::Mark;
use guest::DecodedBlock;
use guest_memory::Memory;
use image::{CallState, Image};

use self::rules::ObjectRole;
pub use self::rules::ObjectRule;
pub use self::site::check_objects;
use self::site::{ObjectSite, sites};
use self::steps::{KnownSteps, StepSite, SteppedCall};
pub use self::structures::StructureRule;
pub(crate) use self::structures::StructureSites;
pub(crate) use self::table::ObjectTable;
use crate::lock;
use crate::platform::Platform;
use crate::program_location::entries;

/// The name of an object that cannot be named.
const UNNAMED: &str = "(unnamed)";

/// The calls of one thread that are for objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectCalls {
    rules: Arc<[ObjectRule]>,
    /// Shared by the threads of a process.
    table: Arc<Mutex<ObjectTable>>,
    /// By the addresses of entries.
    sites: BTreeMap<u64, Arc<ObjectSite>>,
    /// By the addresses of blocks.
    steps: BTreeMap<u64, Arc<StepSite>>,
    known_steps: KnownSteps,
    /// Return addresses of calls so far.
    returns: HashSet<u64>,
    open: Vec<OpenCall>,
    requires_recompilation: bool,
    /// Marks that have not been recorded.
    pub(crate) marks: Vec<Mark>,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct OpenCall {
    return_address: u64,
    stack_pointer: u64,
    object: u32,
    /// The object's key, if the object ends with the call.
    ends: Option<u64>,
    /// The lock that the call acquires, and the result with which it does.
    acquires: Option<(u32, Option<u64>)>,
    /// Whether it has waited for the lock.
    awaits: bool,
    /// The interpreted program of the call, if the rule has steps.
    stepped: Option<SteppedCall>,
}

/// The registers of a processor that expressions read, of any guest.
trait CallRegisters {
    /// An argument of a function, from 0.
    fn argument_value(&self, number: usize) -> u64;
    /// A register by GDB's number.
    fn debugger_register(&self, number: usize) -> Option<u64>;
    /// The return address and the stack pointer.
    fn frame(&self) -> (u64, u64);
}

impl<G: Platform> CallRegisters for G {
    fn argument_value(&self, number: usize) -> u64 {
        self.argument(number)
    }

    fn debugger_register(&self, number: usize) -> Option<u64> {
        self.registers().get(number).copied()
    }

    fn frame(&self) -> (u64, u64) {
        (self.return_address(), self.stack_pointer())
    }
}

/// The state of a program at the entry of a function, or at a step of a call.
#[derive(Clone, Copy)]
struct Entered<'p> {
    cpu: &'p dyn CallRegisters,
    memory: &'p Memory,
    /// The element of a list that is looked at.
    index: u64,
    /// At a step: the call.
    call: Option<&'p OpenCall>,
}

impl CallState for Entered<'_> {
    fn argument(&self, number: usize) -> u64 {
        match self.call.and_then(|call| call.stepped) {
            Some(stepped) => stepped.arguments[number],
            None => self.cpu.argument_value(number),
        }
    }

    fn register(&self, number: u16) -> Option<u64> {
        // Debug information numbers integer registers as GDB does.
        self.cpu.debugger_register(number.into())
    }

    fn frame(&self) -> Option<u64> {
        self.call.map(|call| call.stack_pointer)
    }

    fn index(&self) -> u64 {
        self.index
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.memory.read(address, bytes).is_ok()
    }

    fn text(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        match self.memory.read_string(address, limit) {
            Ok(Some(text)) => Some(text),
            // It is longer, and cut.
            Ok(None) => {
                let mut bytes = vec![0; limit];
                self.memory.read(address, &mut bytes).ok().map(|()| bytes)
            }
            Err(_) => None,
        }
    }
}

impl ObjectCalls {
    pub(crate) fn new(rules: Arc<[ObjectRule]>) -> ObjectCalls {
        ObjectCalls { rules, ..ObjectCalls::default() }
    }

    /// The calls of another thread.
    pub(crate) fn thread(&self) -> ObjectCalls {
        let (sites, steps, returns) = (self.sites.clone(), self.steps.clone(), self.returns.clone());
        ObjectCalls {
            table: self.table.clone(),
            sites,
            steps,
            returns,
            ..ObjectCalls::new(self.rules.clone())
        }
    }

    /// The process is a copy of another one. The lock may be another thread's, which does not exist here.
    pub(crate) fn forked(&mut self) {
        let copy = match self.table.try_lock() {
            Ok(table) => table.clone(),
            Err(TryLockError::Poisoned(table)) => table.into_inner().clone(),
            Err(TryLockError::WouldBlock) => {
                self.open.clear();
                ObjectTable::default()
            }
        };
        std::mem::forget(std::mem::replace(&mut self.table, Arc::new(Mutex::new(copy))));
        self.marks.clear();
        self.resume();
    }

    /// Another program takes the place of this one.
    pub(crate) fn replaced(&mut self) {
        let (table, marks) = (self.table.clone(), vec![Mark::ObjectLeft(0)]);
        *self = ObjectCalls { table, marks, ..ObjectCalls::new(self.rules.clone()) };
    }

    /// Recording begins: its first mark says what the program works on.
    pub(crate) fn resume(&mut self) {
        if let Some(call) = self.open.last() {
            self.marks = vec![Mark::ObjectLeft(call.object)];
        }
    }

    /// The objects so far.
    pub(crate) fn table(&self) -> &Mutex<ObjectTable> {
        &self.table
    }

    /// An image was mapped.
    pub(crate) fn mapped(&mut self, image: &LoadedImage, file: &Image) {
        let known = self.sites.len() + self.steps.len();
        let found = sites(&self.rules, image, file, &mut |_| {});
        for (function, site) in found.functions {
            let site = Arc::new(site);
            let entries = entries(file, function).map(|at| (at.wrapping_add(image.bias), site.clone()));
            self.sites.extend(entries);
        }
        let steps = found.steps.into_iter();
        self.steps.extend(steps.map(|(at, step)| (at.wrapping_add(image.bias), Arc::new(step))));
        self.requires_recompilation |= self.sites.len() + self.steps.len() > known;
    }

    /// Whether [`ObjectCalls::enter`] must be called for each execution of the block: for entries, return addresses and steps.
    pub(crate) fn must_report<G: Platform>(&self, block: &DecodedBlock<G>) -> bool {
        let address = &block.address;
        self.sites.contains_key(address) || self.returns.contains(address) || self.steps.contains_key(address)
    }

    /// Whether [`ObjectCalls::must_report`] has become true for more blocks since the last call.
    pub(crate) fn requires_recompilation(&mut self) -> bool {
        std::mem::take(&mut self.requires_recompilation)
    }

    /// Control is at the first instruction of a block.
    pub(crate) fn enter<G: Platform>(&mut self, block: &DecodedBlock<G>, cpu: &G, memory: &Memory) {
        if let Some(call) = self.open.last() {
            let is_back = block.address == call.return_address && cpu.stack_pointer() == call.stack_pointer;
            // A call may be left by other means than its return, as by longjmp.
            if is_back || cpu.stack_pointer() > call.stack_pointer {
                self.leave(block, cpu);
            }
        }
        if let Some(site) = self.sites.get(&block.address).cloned() {
            self.called(&site, &Entered { cpu, memory, index: 0, call: None });
        }
        if let Some(step) = self.steps.get(&block.address).cloned() {
            self.step(&step, cpu, memory);
        }
    }

    /// Control is at a step of the innermost call.
    fn step<G: Platform>(&mut self, step: &StepSite, cpu: &G, memory: &Memory) {
        let Some(call) = self.open.last_mut() else { return };
        let Some(stepped) = call.stepped.filter(|stepped| stepped.rule == step.rule) else { return };
        let entered = Entered { cpu, memory, index: 0, call: Some(call) };
        let object = step.object(&stepped, &mut self.known_steps, &mut lock(&self.table), &entered);
        if object != call.object {
            call.object = object;
            let is_back = object == stepped.whole;
            self.marks.push(if is_back { Mark::ObjectLeft(object) } else { Mark::ObjectEntered(object) });
        }
    }

    /// Control enters a function that interprets a program.
    fn begin_steps(&mut self, site: &ObjectSite, entered: &Entered) {
        let arguments = [0, 1, 2, 3, 4, 5].map(|number| entered.argument(number));
        let begins = site.begins.as_ref().and_then(|begins| begins.value(entered));
        if begins.is_none_or(|begins| begins != 0) {
            self.known_steps.forget(arguments[0]);
        }
        let object = self.current();
        let stepped = Some(SteppedCall { rule: site.rule, whole: object, arguments });
        let (return_address, stack_pointer) = entered.cpu.frame();
        self.requires_recompilation |= self.returns.insert(return_address);
        let call = OpenCall {
            return_address,
            stack_pointer,
            object,
            ends: None,
            acquires: None,
            awaits: false,
            stepped,
        };
        self.open.push(call);
    }

    /// Ends the calls that have returned or were left.
    #[cold]
    fn leave<G: Platform>(&mut self, block: &DecodedBlock<G>, cpu: &G) {
        let stack_pointer = cpu.stack_pointer();
        let is_over = |call: &OpenCall| {
            let is_back = block.address == call.return_address && stack_pointer == call.stack_pointer;
            is_back || stack_pointer > call.stack_pointer
        };
        while let Some(call) = self.open.pop_if(|call| is_over(call)) {
            if let Some(key) = call.ends {
                lock(&self.table).end(key);
            }
            let returned = block.address == call.return_address && stack_pointer == call.stack_pointer;
            if let Some((held, result)) = call.acquires {
                if returned && result.is_none_or(|result| result == cpu.result()) {
                    self.marks.push(Mark::LockAcquired(held));
                } else if call.awaits {
                    self.marks.push(Mark::LockReleased(held));
                }
            }
        }
        self.marks.push(Mark::ObjectLeft(self.current()));
    }

    /// The object of the innermost call, or 0.
    fn current(&self) -> u32 {
        self.open.last().map_or(0, |call| call.object)
    }

    /// Control enters a function.
    fn called(&mut self, site: &ObjectSite, entered: &Entered) {
        let (return_address, stack_pointer) = entered.cpu.frame();
        let rule = &self.rules[site.rule];
        let role = rule.role;
        if rule.steps.is_some() {
            return self.begin_steps(site, entered);
        }
        if role == ObjectRole::Waits {
            if let Some(call) = self.open.last_mut()
                && let Some((awaited, _)) = call.acquires
            {
                call.awaits = true;
                self.marks.push(Mark::LockAwaited(awaited));
            }
            return;
        }
        let key = match &site.key {
            Some(key) => match key.value(entered) {
                Some(key) => Some(key),
                // The argument points nowhere: the call is for no object.
                None => return,
            },
            None => None,
        };
        if role == ObjectRole::Labels {
            let mut table = lock(&self.table);
            let number = key.filter(|&number| !table.has_label(number));
            if let Some((number, name)) = number.zip(site.name.text(entered)) {
                table.label(number, name);
            }
            return;
        }
        let existing = key.filter(|_| rule.role != ObjectRole::Begins);
        let existing = existing.and_then(|key| lock(&self.table).existing(key));
        if existing.is_none() && rule.name.is_none() {
            // It began before recording did, or is none.
            return;
        }
        let current = match site.name_above(rule, entered) {
            Some(name) => lock(&self.table).inside(self.current(), name),
            None => self.current(),
        };
        let Some(object) = existing.or_else(|| self.object(site, key, entered, current)) else { return };
        // A lock is the same wherever it is acquired and released.
        let held = if role.is_of_lock() { self.lock_object(site, entered) } else { None };
        if role == ObjectRole::Releases {
            self.marks.extend(held.map(Mark::LockReleased));
        }
        let acquires = held.filter(|_| role == ObjectRole::Acquires);
        let acquires = acquires.map(|held| (held, self.rules[site.rule].result));
        let ends = key.filter(|_| self.rules[site.rule].role == ObjectRole::Ends);
        let this = (object, return_address, stack_pointer);
        if let Some(call) = self.open.last_mut()
            && (call.object, call.return_address, call.stack_pointer) == this
        {
            // A tail call: the function handed over to another one for the same object.
            call.ends = call.ends.or(ends);
            call.acquires = call.acquires.or(acquires);
            return;
        }
        if self.returns.insert(return_address) {
            self.requires_recompilation = true;
        }
        self.open.push(OpenCall {
            return_address,
            stack_pointer,
            object,
            ends,
            acquires,
            awaits: false,
            stepped: None,
        });
        self.marks.push(Mark::ObjectEntered(object));
    }

    /// The object of a call that begins it, or that names it. None if it has a key and no name, as where a pointer is null.
    fn object(&mut self, site: &ObjectSite, key: Option<u64>, entered: &Entered, parent: u32) -> Option<u32> {
        let rule = &self.rules[site.rule];
        let name = site.full_name(rule, entered);
        let name = match name {
            None if key.is_some() => return None,
            name => name.unwrap_or_else(|| UNNAMED.into()),
        };
        // Locks of one name are shown as one where they are acquired, too.
        let identity = site.identity.as_ref().filter(|_| !rule.role.is_of_lock());
        let identity = identity.and_then(|identity| identity.value(entered));
        let mut table = lock(&self.table);
        let number = match key {
            None if identity.is_none() => table.inside(parent, name),
            _ => table.number(parent, name, identity),
        };
        key.into_iter().for_each(|key| table.begin(key, number));
        Some(number)
    }

    /// The lock that a call acquires or releases.
    fn lock_object(&self, site: &ObjectSite, entered: &Entered) -> Option<u32> {
        let name = site.full_name(&self.rules[site.rule], entered).unwrap_or_else(|| UNNAMED.into());
        let identity = site.identity.as_ref().and_then(|identity| identity.value(entered));
        Some(lock(&self.table).lock(name, identity))
    }
}
