//! Locks: how long they are held and waited for, in instructions of the holder, and by which function.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use events::record::Mark;

use super::{NodeId, WithCallTree};
use crate::table::{Kind, Table, Value};

/// What the rows of a table of locks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRows {
    /// Locks.
    Lock,
    /// Locks, and the functions that acquire them.
    Holder,
}

/// The locks of a run, by their names.
#[derive(Default)]
pub(super) struct LockHolds {
    threads: HashMap<u32, LockThread>,
    /// By lock and function.
    costs: BTreeMap<(NodeId, u32), LockCosts>,
    /// How many threads wait for a lock.
    waiting: HashMap<NodeId, u64>,
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
    /// The instructions of its thread when somebody began to wait.
    contended_since: Option<u64>,
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
            self.costs.entry((lock, function)).or_default().waits += times;
        }
        let Some(lock) = ended.acquired else { return };
        self.costs.entry((lock, function)).or_default().acquired += 1;
        let contended_since = self.waiting.get(&lock).filter(|n| **n > 0).map(|_| now);
        let hold = Hold { lock, function, since: now, contended_since };
        self.threads.entry(thread).or_default().held.push(hold);
    }

    /// A mark of a thread. `node` finds the objects.
    pub(super) fn mark(&mut self, thread: u32, mark: Mark, node: impl Fn(u32) -> Option<NodeId>) {
        match mark {
            Mark::LockAwaited(lock) => node(lock).into_iter().for_each(|lock| self.awaited(thread, lock)),
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

    fn awaited(&mut self, thread: u32, lock: NodeId) {
        for other in self.threads.values_mut() {
            let now = other.executed;
            for hold in other.held.iter_mut().filter(|hold| hold.lock == lock) {
                hold.contended_since.get_or_insert(now);
            }
        }
        let awaited = &mut self.threads.entry(thread).or_default().awaited;
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
        let hold = state.held.remove(last);
        let held = state.executed - hold.since;
        let costs = self.costs.entry((lock, hold.function)).or_default();
        costs.held += held;
        costs.longest = costs.longest.max(held);
        costs.contended += hold.contended_since.map_or(0, |since| state.executed - since);
    }
}

impl LockCosts {
    fn add(&mut self, other: &LockCosts) {
        self.acquired += other.acquired;
        self.held += other.held;
        self.longest = self.longest.max(other.longest);
        self.contended += other.contended;
        self.waits += other.waits;
    }
}

/// How long locks are held, the longest in all first.
pub fn lock_table<M>(rows: LockRows, kind: &str, execution: &WithCallTree<M>) -> Table {
    let columns = [
        (kind, Kind::Code),
        ("acquired by", Kind::Code),
        ("acquired", Kind::Count),
        ("held", Kind::Count),
        ("mean", Kind::Real(1)),
        ("longest", Kind::Count),
        ("waits", Kind::Count),
        ("held while awaited", Kind::Count),
    ];
    let is_shown = |name: &str| rows == LockRows::Holder || name != "acquired by";
    let shown: Vec<_> = columns.into_iter().filter(|(name, _)| is_shown(name)).collect();
    let mut table = Table::new("locks", "Locks: instructions of their holders", &shown);
    let tree = execution.tree();
    let name = |function: u32| tree.functions()[function as usize].function.clone();
    let mut sums: BTreeMap<[String; 2], LockCosts> = BTreeMap::new();
    for (&(lock, function), costs) in execution.locks() {
        let by = if rows == LockRows::Holder { name(function) } else { String::new() };
        sums.entry([name(tree.nodes()[lock as usize].function), by]).or_default().add(costs);
    }
    let cells = |names: [Value; 2], costs: &LockCosts| {
        let mean = match costs.acquired {
            0 => Value::Missing,
            acquired => (costs.held as f64 / acquired as f64).into(),
        };
        let [lock, by] = names;
        let cells = [
            lock,
            by,
            costs.acquired.into(),
            costs.held.into(),
            mean,
            costs.longest.into(),
            costs.waits.into(),
            costs.contended.into(),
        ];
        let shown = columns.iter().zip(cells).filter(|((name, _), _)| is_shown(name));
        shown.map(|(_, cell)| cell).collect::<Vec<Value>>()
    };
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, costs)| Reverse((costs.contended, costs.held)));
    let mut total = LockCosts::default();
    for (names, costs) in &rows {
        total.add(costs);
        table.row(cells(names.clone().map(Value::from), costs));
    }
    table.total_row(cells(["total".into(), Value::Missing], &total));
    table.notes.push(
        "A lock is held from the return of the function that acquires it to the call of the one that releases it; what its holder \
         executes meanwhile counts. 'held while awaited' is the part of it after another thread began to wait."
            .into(),
    );
    table
}

impl<M> WithCallTree<M> {
    fn locks(&self) -> impl Iterator<Item = (&(NodeId, u32), &LockCosts)> {
        self.lock_holds().into_iter().flat_map(|holds| &holds.costs)
    }
}
