//! Locks: how long they are held and waited for, in instructions of the holder, and by which function.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use events::record::Mark;

use super::{NodeId, WithCallTree};
use crate::models::{Addable, ClassSums, UnitClasses};
use crate::run_counts::OUTSIDE_UNITS;
use table::{Kind, Table, Value};

/// What the rows of a table of locks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRows {
    /// Locks.
    Lock,
    /// Locks, and the functions that acquire them.
    Holder,
    /// Locks, and the classes of units of work that hold them and wait for them.
    Waiter,
}

/// The locks of a run, by their names.
#[derive(Default)]
pub(super) struct LockHolds {
    threads: HashMap<u32, LockThread>,
    /// By lock and function.
    costs: ClassSums<(NodeId, u32), LockCosts>,
    /// How many threads wait for a lock.
    waiting: HashMap<NodeId, u64>,
    awaited: HashMap<AwaitedKey, AwaitedHolds>,
}

/// Whose waiting is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AwaitedKey {
    lock: NodeId,
    /// The object for which the lock is acquired by the one that waits, such as a row.
    purpose: Option<NodeId>,
    /// The unit that holds the lock and the one that waits for it; none outside of units.
    holder: Option<u64>,
    waiter: Option<u64>,
}

/// A thread that waits for a hold.
#[derive(Clone, Copy, Debug)]
struct LockWaiter {
    thread: u32,
    unit: Option<u64>,
    purpose: Option<NodeId>,
    /// The instructions of the holder's thread when it began.
    since: u64,
}

/// What one unit executes while another one waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AwaitedHolds {
    waits: u64,
    /// Instructions of the holder.
    held: u64,
}

/// What holding a lock costs others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LockCosts {
    acquired: u64,
    /// Instructions of holders, of all holds and of the longest one.
    held: u64,
    longest: u64,
    /// Those of them while others waited.
    contended: u64,
    waits: u64,
}

/// A thread, and the locks that it holds.
#[derive(Default)]
struct LockThread {
    /// Instructions so far.
    executed: u64,
    held: Vec<Hold>,
    /// The lock whose call is open, and how often it was waited for in it.
    awaited: Option<(NodeId, u64)>,
    /// The object for which it is.
    purpose: Option<NodeId>,
    /// Calls that have ended: the function that is executed next made them.
    ended: Option<EndedCall>,
}

#[derive(Clone, Copy, Default)]
struct EndedCall {
    acquired: Option<NodeId>,
    awaited: Option<(NodeId, u64)>,
}

/// A lock that is held.
struct Hold {
    lock: NodeId,
    /// The function that acquired it, and the instructions of its thread then.
    function: u32,
    since: u64,
    /// If the unit of work in which it was acquired has ended, its class; none outside of units.
    ended: Option<Option<u32>>,
    /// The unit of work in which it was acquired.
    unit: Option<u64>,
    /// The instructions of its thread when somebody began to wait.
    contended_since: Option<u64>,
    waiters: Vec<LockWaiter>,
}

impl Hold {
    /// A thread waits for the lock.
    fn await_by(&mut self, waiter: LockWaiter) {
        self.contended_since.get_or_insert(waiter.since);
        if self.waiters.iter().all(|other| other.thread != waiter.thread) {
            self.waiters.push(waiter);
        }
    }
}

impl LockHolds {
    /// A thread executes so many instructions of a function.
    #[inline]
    pub(super) fn executed(&mut self, thread: u32, function: u32, instructions: u64) {
        let state = self.threads.entry(thread).or_default();
        let now = state.executed;
        state.executed += instructions;
        if let Some(ended) = state.ended.take() {
            self.call_ended(thread, function, now, ended);
        }
    }

    #[cold]
    fn call_ended(&mut self, thread: u32, function: u32, now: u64, ended: EndedCall) {
        if let Some((lock, times)) = ended.awaited {
            self.costs.now(thread, (lock, function)).waits += times;
        }
        let Some(lock) = ended.acquired else { return };
        self.costs.now(thread, (lock, function)).acquired += 1;
        let unit = self.costs.unit(thread);
        let ended = unit.is_none().then_some(None);
        let (contended_since, waiters) = Default::default();
        let mut hold = Hold { lock, function, since: now, ended, unit, contended_since, waiters };
        if self.waiting.get(&lock).is_some_and(|waiting| *waiting > 0) {
            let waits = |state: &LockThread| state.awaited.is_some_and(|(awaited, _)| awaited == lock);
            for (&thread, state) in self.threads.iter().filter(|(_, state)| waits(state)) {
                let (unit, purpose) = (self.costs.unit(thread), state.purpose);
                hold.await_by(LockWaiter { thread, unit, purpose, since: now });
            }
        }
        self.threads.entry(thread).or_default().held.push(hold);
    }

    /// A mark of a thread. `node` finds the objects, and `purpose` that for which a lock is acquired.
    pub(super) fn mark(
        &mut self,
        thread: u32,
        mark: Mark,
        node: impl Fn(u32) -> Option<NodeId>,
        purpose: impl Fn() -> Option<NodeId>,
    ) {
        match mark {
            Mark::LockAwaited(lock) => {
                node(lock).into_iter().for_each(|lock| self.awaited(thread, lock, purpose()));
            }
            Mark::LockAcquired(lock) => {
                let Some(lock) = node(lock) else { return };
                let awaited = self.stop_waiting(thread, lock);
                self.threads.entry(thread).or_default().ended =
                    Some(EndedCall { acquired: Some(lock), awaited });
            }
            Mark::LockReleased(lock) => node(lock).into_iter().for_each(|lock| self.released(thread, lock)),
            _ => {}
        }
    }

    /// A mark of a thread, which may begin or end a unit of work.
    pub(super) fn unit_mark(&mut self, thread: u32, mark: Mark, classes: &UnitClasses) {
        if let Some(class) = self.costs.mark(thread, mark, classes) {
            let held = self.threads.get_mut(&thread).into_iter().flat_map(|state| &mut state.held);
            held.for_each(|hold| hold.ended = hold.ended.or(Some(class)));
        }
    }

    fn awaited(&mut self, thread: u32, lock: NodeId, purpose: Option<NodeId>) {
        let unit = self.costs.unit(thread);
        for other in self.threads.values_mut() {
            let since = other.executed;
            let holds = other.held.iter_mut().filter(|hold| hold.lock == lock);
            holds.for_each(|hold| hold.await_by(LockWaiter { thread, unit, purpose, since }));
        }
        let state = self.threads.entry(thread).or_default();
        state.purpose = purpose;
        let awaited = &mut state.awaited;
        match awaited {
            Some((_, times)) => *times += 1,
            None => {
                *awaited = Some((lock, 1));
                *self.waiting.entry(lock).or_default() += 1;
            }
        }
    }

    fn stop_waiting(&mut self, thread: u32, lock: NodeId) -> Option<(NodeId, u64)> {
        let awaited = &mut self.threads.entry(thread).or_default().awaited;
        let awaited = awaited.take_if(|(awaited, _)| *awaited == lock)?;
        if let Some(waiting) = self.waiting.get_mut(&lock) {
            *waiting = waiting.saturating_sub(1);
        }
        for other in self.threads.values_mut() {
            let now = other.executed;
            for hold in other.held.iter_mut().filter(|hold| hold.lock == lock) {
                let ended = hold.waiters.extract_if(.., |waiter| waiter.thread == thread);
                add_awaited(&mut self.awaited, (lock, hold.unit), now, ended);
            }
        }
        Some(awaited)
    }

    /// Of several locks of one name, the last one is released: the sums are the same whichever it is.
    fn released(&mut self, thread: u32, lock: NodeId) {
        if let Some(awaited) = self.stop_waiting(thread, lock) {
            // It was waited for in vain.
            let ended = EndedCall { acquired: None, awaited: Some(awaited) };
            self.threads.entry(thread).or_default().ended = Some(ended);
            return;
        }
        let state = self.threads.entry(thread).or_default();
        let Some(last) = state.held.iter().rposition(|hold| hold.lock == lock) else { return };
        let mut hold = state.held.remove(last);
        add_awaited(&mut self.awaited, (lock, hold.unit), state.executed, hold.waiters.drain(..));
        let held = state.executed - hold.since;
        let key = (lock, hold.function);
        let costs = match hold.ended {
            Some(class) => self.costs.of(class, key),
            None => self.costs.now(thread, key),
        };
        costs.held += held;
        costs.longest = costs.longest.max(held);
        costs.contended += hold.contended_since.map_or(0, |since| state.executed - since);
    }
}

/// Waiting for a hold ends, when the holder's thread has executed so many instructions.
fn add_awaited(
    all: &mut HashMap<AwaitedKey, AwaitedHolds>,
    (lock, holder): (NodeId, Option<u64>),
    now: u64,
    waiters: impl Iterator<Item = LockWaiter>,
) {
    for LockWaiter { unit: waiter, purpose, since, .. } in waiters {
        let awaited = all.entry(AwaitedKey { lock, purpose, holder, waiter }).or_default();
        awaited.waits += 1;
        awaited.held += now - since;
    }
}

impl Addable for LockCosts {
    fn add(&mut self, other: &LockCosts) {
        self.acquired += other.acquired;
        self.held += other.held;
        self.longest = self.longest.max(other.longest);
        self.contended += other.contended;
        self.waits += other.waits;
    }
}

/// By class of units of work; none outside of units.
type CostsOfClasses = BTreeMap<Option<u32>, LockCosts>;

/// How long locks are held, the longest in all first; with a row for each class of units of work, if a unit ended.
pub fn lock_table<M>(rows: LockRows, kind: &str, execution: &WithCallTree<M>) -> Table {
    if rows == LockRows::Waiter {
        return waiter_table(kind, execution);
    }
    let classes = execution.classes().names();
    let columns = [
        (kind, Kind::Code, true),
        ("acquired by", Kind::Code, rows == LockRows::Holder),
        ("class", Kind::Text, !classes.is_empty()),
        ("acquired", Kind::Count, true),
        ("held", Kind::Count, true),
        ("mean", Kind::Real(1), true),
        ("longest", Kind::Count, true),
        ("waits", Kind::Count, true),
        ("held while awaited", Kind::Count, true),
    ];
    let shown: Vec<_> =
        columns.iter().filter(|(.., is_shown)| *is_shown).map(|&(name, kind, _)| (name, kind)).collect();
    let mut table = Table::new("locks", "Locks: instructions of their holders", &shown);
    let cells = |[lock, by, class]: [Value; 3], costs: &LockCosts| {
        let mean = match costs.acquired {
            0 => Value::Missing,
            acquired => (costs.held as f64 / acquired as f64).into(),
        };
        let numbers = [costs.longest, costs.waits, costs.contended].map(Value::from);
        let cells =
            [lock, by, class, costs.acquired.into(), costs.held.into(), mean].into_iter().chain(numbers);
        let shown = columns.iter().zip(cells).filter(|((.., is_shown), _)| *is_shown);
        shown.map(|(_, cell)| cell).collect::<Vec<Value>>()
    };
    let tree = execution.tree();
    let name = |function: u32| tree.shown_name(function);
    let mut locks: BTreeMap<[String; 2], (LockCosts, CostsOfClasses)> = BTreeMap::new();
    let mut total = LockCosts::default();
    for (class, (lock, function), costs) in
        execution.lock_holds().into_iter().flat_map(|holds| holds.costs.all())
    {
        let by = if rows == LockRows::Holder { name(function) } else { String::new() };
        let lock = name(tree.nodes()[lock as usize].function);
        let (all, of_classes) = locks.entry([lock, by]).or_default();
        for sum in [all, of_classes.entry(class).or_default(), &mut total] {
            sum.add(costs);
        }
    }
    let order = |costs: &LockCosts| Reverse((costs.contended, costs.held));
    let mut locks: Vec<_> = locks.into_iter().collect();
    locks.sort_by_key(|(_, (costs, _))| order(costs));
    for ([lock, by], (_, of_classes)) in locks {
        let mut of_classes: Vec<_> = of_classes.into_iter().collect();
        of_classes.sort_by_key(|(_, costs)| order(costs));
        for (class, costs) in of_classes {
            let class = class.map_or(OUTSIDE_UNITS, |class| &classes[class as usize]);
            table.row(cells([lock.as_str().into(), by.as_str().into(), class.into()], &costs));
        }
    }
    table.total_row(cells(["total".into(), Value::Missing, Value::Missing], &total));
    table.notes.push(
        "A lock is held from the return of the function that acquires it to the call of the one that releases it; what its holder \
         executes meanwhile counts. 'held while awaited' is the part of it after another thread began to wait."
            .into(),
    );
    if !classes.is_empty() {
        table.notes.push(
            "Holding is of the class of the unit in which the lock was acquired, and waits are of the class of the unit that waits."
                .into(),
        );
    }
    table
}

/// Which classes of units of work wait for which others, those who wait longest first.
fn waiter_table<M>(kind: &str, execution: &WithCallTree<M>) -> Table {
    let classes = execution.classes();
    let class = |unit: Option<u64>| {
        let number = unit.and_then(|unit| classes.of(unit));
        number.map_or(OUTSIDE_UNITS, |number| &classes.names()[number as usize])
    };
    let tree = execution.tree();
    let name = |node: NodeId| tree.shown_name(tree.nodes()[node as usize].function);
    let mut sums: BTreeMap<(String, Option<String>, &str, &str), AwaitedHolds> = BTreeMap::new();
    let mut total = AwaitedHolds::default();
    for (key, awaited) in execution.lock_holds().into_iter().flat_map(|holds| &holds.awaited) {
        let (holder, waiter) = (class(key.holder), class(key.waiter));
        let key = (name(key.lock), key.purpose.map(name), holder, waiter);
        for sum in [sums.entry(key).or_default(), &mut total] {
            sum.waits += awaited.waits;
            sum.held += awaited.held;
        }
    }
    let has_purposes = sums.keys().any(|(_, purpose, ..)| purpose.is_some());
    let columns = [
        (kind, Kind::Code, true),
        ("for", Kind::Code, has_purposes),
        ("held by", Kind::Text, true),
        ("awaited by", Kind::Text, true),
        ("waits", Kind::Count, true),
        ("held while awaited", Kind::Count, true),
        ("mean", Kind::Real(1), true),
    ];
    let shown: Vec<_> =
        columns.iter().filter(|(.., is_shown)| *is_shown).map(|&(name, kind, _)| (name, kind)).collect();
    let mut table = Table::new("waiters", "Locks: who waits for whom, in instructions of holders", &shown);
    let cells = |names: [Value; 4], sum: &AwaitedHolds| {
        let mean = match sum.waits {
            0 => Value::Missing,
            waits => (sum.held as f64 / waits as f64).into(),
        };
        let cells = names.into_iter().chain([sum.waits.into(), sum.held.into(), mean]);
        columns.iter().zip(cells).filter(|((.., is_shown), _)| *is_shown).map(|(_, cell)| cell).collect()
    };
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| Reverse((sum.held, sum.waits)));
    for ((lock, purpose, holder, waiter), sum) in rows {
        let purpose = purpose.map_or(Value::Missing, Value::from);
        table.row(cells([lock.into(), purpose, holder.into(), waiter.into()], &sum));
    }
    table.total_row(cells(["total".into(), Value::Missing, Value::Missing, Value::Missing], &total));
    if has_purposes {
        table
            .notes
            .push("'for' is the object on behalf of which the one that waits acquires the lock.".into());
    }
    table.notes.push(
        "Each hold that a unit waits for is a wait. 'held while awaited' is what the holder executes from the beginning of the wait, or of \
         the hold if it begins later, to the end of either. Several that wait for one hold are counted each."
            .into(),
    );
    table
}
