//! Follows the calls of functions whose arguments identify objects, such as the operators of a query's plan: what is executed
//! belongs to the object of the innermost call.

mod rules;
mod table;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, TryLockError};

use events::LoadedImage;
use events::record::Mark;
use guest::CallingConvention;
use image::{CallState, CompiledExpression, Expression, ExpressionError, ExpressionTypes, Image};
use memory::Memory;

pub use self::rules::ObjectRule;
use self::rules::{NamePiece, NameTemplate, ObjectRole};
pub(crate) use self::table::ObjectTable;
use crate::lock;
use crate::places::entries;
use crate::platform::{Block, Cpu};

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
    /// Return addresses of calls so far.
    returns: HashSet<u64>,
    open: Vec<OpenCall>,
    requires_recompilation: bool,
    /// Marks that have not been recorded.
    pub(crate) marks: Vec<Mark>,
}

/// A function at whose entry a call for an object begins.
#[derive(Clone, Debug)]
struct ObjectSite {
    rule: usize,
    key: Option<CompiledExpression>,
    name: Vec<CompiledPiece>,
    identity: Option<CompiledExpression>,
    /// By the details of the rule.
    details: Vec<Vec<CompiledPiece>>,
}

/// A part of a name.
#[derive(Clone, Debug)]
enum CompiledPiece {
    Text(String),
    /// The value of the first expression that has one.
    Value(Vec<CompiledExpression>),
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
}

/// The state of a program at the entry of a function.
struct Entered<'p> {
    cpu: &'p Cpu,
    memory: &'p Memory,
}

impl CallState for Entered<'_> {
    fn argument(&self, number: usize) -> u64 {
        self.cpu.argument(number)
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
        let (sites, returns) = (self.sites.clone(), self.returns.clone());
        ObjectCalls { table: self.table.clone(), sites, returns, ..ObjectCalls::new(self.rules.clone()) }
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
        let known = self.sites.len();
        for (function, site) in sites(&self.rules, image, file, &mut |_| {}) {
            let site = Arc::new(site);
            let entries = entries(file, function).map(|at| (at.wrapping_add(image.bias), site.clone()));
            self.sites.extend(entries);
        }
        self.requires_recompilation |= self.sites.len() > known;
    }

    /// Whether [`ObjectCalls::enter`] must be called for each execution of the block: for entries and for return addresses.
    pub(crate) fn must_report(&self, block: &Block) -> bool {
        self.sites.contains_key(&block.address) || self.returns.contains(&block.address)
    }

    /// Whether [`ObjectCalls::must_report`] has become true for more blocks since the last call.
    pub(crate) fn requires_recompilation(&mut self) -> bool {
        std::mem::take(&mut self.requires_recompilation)
    }

    /// Control is at the first instruction of a block.
    pub(crate) fn enter(&mut self, block: &Block, cpu: &Cpu, memory: &Memory) {
        if let Some(call) = self.open.last() {
            let is_back = block.address == call.return_address && cpu.stack_pointer() == call.stack_pointer;
            // A call may be left by other means than its return, as by longjmp.
            if is_back || cpu.stack_pointer() > call.stack_pointer {
                self.leave(block, cpu);
            }
        }
        if let Some(site) = self.sites.get(&block.address).cloned() {
            self.called(&site, &Entered { cpu, memory });
        }
    }

    /// Ends the calls that have returned or were left.
    #[cold]
    fn leave(&mut self, block: &Block, cpu: &Cpu) {
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
        let (return_address, stack_pointer) = (entered.cpu.return_address(), entered.cpu.stack_pointer());
        let rule = &self.rules[site.rule];
        let role = rule.role;
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
        let existing = key.filter(|_| rule.role != ObjectRole::Begins);
        let existing = existing.and_then(|key| lock(&self.table).existing(key));
        if existing.is_none() && rule.name.is_none() {
            // It began before recording did, or is none.
            return;
        }
        let current = self.current();
        let Some(object) = existing.or_else(|| self.object(site, key, entered, current)) else { return };
        // A lock is the same wherever it is acquired and released.
        let held = if role.is_of_lock() { self.object(site, None, entered, 0) } else { None };
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
        self.open.push(OpenCall { return_address, stack_pointer, object, ends, acquires, awaits: false });
        self.marks.push(Mark::ObjectEntered(object));
    }

    /// The object of a call that begins it, or that names it. None if it has a key and no name, as where a pointer is null.
    fn object(&mut self, site: &ObjectSite, key: Option<u64>, entered: &Entered, parent: u32) -> Option<u32> {
        let rule = &self.rules[site.rule];
        let plain = text(&site.name, entered).filter(|name| !name.is_empty());
        let plain = match plain {
            None if key.is_some() => return None,
            plain => plain.unwrap_or_else(|| UNNAMED.into()),
        };
        let mut name = rule.rename.get(&plain).unwrap_or(&plain).clone();
        let detail = rule.detail.iter().position(|detail| detail.of.contains(&plain));
        name.extend(detail.and_then(|detail| text(&site.details[detail], entered)));
        let identity = site.identity.as_ref().and_then(|identity| identity.value(entered));
        let mut table = lock(&self.table);
        let number = table.number(parent, name, identity);
        key.into_iter().for_each(|key| table.begin(key, number));
        Some(number)
    }
}

/// The text of all pieces; none if one has no value.
fn text(pieces: &[CompiledPiece], entered: &Entered) -> Option<String> {
    let piece = |piece: &CompiledPiece| match piece {
        CompiledPiece::Text(text) => Some(text.clone()),
        CompiledPiece::Value(values) => values.iter().find_map(|value| value.text(entered)),
    };
    pieces.iter().map(piece).collect()
}

/// The functions of an image that work on objects, by their link-time addresses. `problem` gets expressions that do not fit.
fn sites(
    rules: &[ObjectRule],
    image: &LoadedImage,
    file: &Image,
    problem: &mut dyn FnMut(ExpressionError),
) -> Vec<(u64, ObjectSite)> {
    let mut functions: Vec<(u64, usize)> = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        for name in rule.functions.iter().filter(|name| name.may_be_in(image)) {
            let found = name.symbols_in(file).into_iter().filter(|symbol| symbol.function);
            functions.extend(found.map(|symbol| (symbol.address, number)));
        }
    }
    if functions.is_empty() {
        return Vec::new();
    }
    let all = functions.iter().flat_map(|&(at, rule)| expressions(&rules[rule]).map(move |it| (at, it)));
    let mut compiled = ExpressionTypes::new(file, image.bias)
        .compile(all)
        .into_iter()
        .map(|one| one.map_err(&mut *problem).ok());
    let mut site = |&(address, rule): &(u64, usize)| {
        let mut next = || compiled.next().flatten();
        let rules = &rules[rule];
        let key = rules.key.as_ref().map(|_| next());
        let identity = rules.identity.as_ref().and_then(|_| next());
        let mut pieces = |template: &NameTemplate| {
            let piece = |piece: &NamePiece| match piece {
                NamePiece::Text(text) => CompiledPiece::Text(text.clone()),
                NamePiece::Value(values) => {
                    CompiledPiece::Value(values.iter().filter_map(|_| next()).collect())
                }
            };
            template.pieces.iter().map(piece).collect::<Vec<_>>()
        };
        let name = rules.name.as_ref().map_or_else(Vec::new, &mut pieces);
        let details = rules.detail.iter().map(|detail| pieces(&detail.text)).collect();
        let key = match key {
            // Objects whose key does not fit cannot be told apart.
            Some(None) => return None,
            Some(Some(key)) => Some(key),
            None => None,
        };
        Some((address, ObjectSite { rule, key, name, identity, details }))
    };
    functions.iter().filter_map(&mut site).collect()
}

/// The expressions of a rule, in the order in which a site has them.
fn expressions(rule: &ObjectRule) -> impl Iterator<Item = &Expression> {
    let own = rule.key.iter().chain(&rule.identity).map(|expression| &expression.1);
    let templates = rule.name.iter().chain(rule.detail.iter().map(|detail| &detail.text));
    own.chain(templates.flat_map(|template| {
        template.pieces.iter().flat_map(|piece| match piece {
            NamePiece::Value(expressions) => &expressions[..],
            NamePiece::Text(_) => &[],
        })
    }))
}

/// The number of functions of an image that work on objects by these rules, and what does not fit their types.
pub fn check_objects(
    rules: &[ObjectRule],
    image: &LoadedImage,
    file: &Image,
) -> (usize, Vec<ExpressionError>) {
    let mut problems = Vec::new();
    let found = sites(rules, image, file, &mut |problem| problems.push(problem));
    (found.len() + problems.len(), problems)
}
