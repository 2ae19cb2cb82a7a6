//! Tables of objects: what is executed for each, alone and with the objects below it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{CallCosts, NodeId, WithCallTree};
use crate::models::{InstructionResults, named};
use table::{Column, Kind, Table, Value};

/// The rows of a table of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectRows {
    /// Objects below those for which they were made, as databases lay out plans.
    Tree,
    /// Names, whatever they are below; the most expensive first.
    Name,
}

/// The most characters of a name in a table for people.
const LONGEST_NAME: usize = 80;

/// Who reads a table of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectReader {
    /// People: objects are indented below others, and long names are cut.
    Person,
    /// Programs: names are whole, and columns say how deep an object is, its number in the table, and its parent's.
    Program,
}

/// One table of objects of a kind for each model.
pub fn object_tables<M, R: InstructionResults>(
    (rows, reader): (ObjectRows, ObjectReader),
    kind: &str,
    execution: &WithCallTree<M>,
    models: &[(&str, &R)],
) -> Vec<Table> {
    let on_machine = if models.iter().all(|(model, _)| model.is_empty()) { "" } else { " on" };
    let title = format!("{} by {kind}{on_machine}", R::WHAT);
    named(models, "objects", &title, |name, title, results| {
        CallCosts::new(execution, results).objects((rows, reader), kind, name, title.trim_end())
    })
}

impl<R: InstructionResults> CallCosts<'_, R> {
    fn objects(
        &self,
        (rows, reader): (ObjectRows, ObjectReader),
        kind: &str,
        name: &str,
        title: &str,
    ) -> Table {
        let has_places = (rows, reader) == (ObjectRows::Tree, ObjectReader::Program);
        let mut columns = vec![(kind, Kind::Code)];
        if has_places {
            columns.extend(["depth", "node", "parent"].map(|name| (name, Kind::Count)));
        }
        columns.extend([
            ("calls", Kind::Count),
            ("share", Kind::Percent(1)),
            ("own share", Kind::Percent(1)),
        ]);
        let mut table = Table::new(name, title, &columns);
        let own = |column: &Column| Column { name: format!("own {}", column.name), kind: column.kind };
        table.columns.extend(self.columns.iter().flat_map(|column| [column.clone(), own(column)]));
        match rows {
            ObjectRows::Tree => self.object_tree(&mut table, reader),
            ObjectRows::Name => self.object_names(&mut table, reader),
        }
        let mut total = self.object_row("total".into(), Value::Missing, &self.total, &self.total);
        if has_places {
            total.splice(1..1, std::iter::repeat_n(Value::Missing, 3));
        }
        table.total_row(total);
        table
    }

    /// The objects in the order in which the program made them, below their parents.
    fn object_tree(&self, table: &mut Table, reader: ObjectReader) {
        let mut children: BTreeMap<Option<NodeId>, Vec<NodeId>> = BTreeMap::new();
        self.used().for_each(|(id, node)| children.entry(node.parent).or_default().push(id));
        let mut roots = children.remove(&None).unwrap_or_default();
        // What belongs to no object comes last.
        roots.sort_by_key(|id| self.tree.outside == Some(*id));
        let mut open: Vec<NodeId> = roots.into_iter().rev().collect();
        // By node, its number in the table.
        let mut numbers: BTreeMap<NodeId, u64> = BTreeMap::new();
        while let Some(id) = open.pop() {
            numbers.insert(id, numbers.len() as u64 + 1);
            open.extend(children.remove(&Some(id)).unwrap_or_default().into_iter().rev());
            let node = &self.tree.nodes()[id as usize];
            let name = self.tree.shown_name(node.function);
            let calls = if self.tree.outside == Some(id) { Value::Missing } else { self.calls(id).into() };
            let indent = match node.depth {
                0 => String::new(),
                depth => format!("{}->  ", " ".repeat(2 + 6 * (depth as usize - 1))),
            };
            let name = match reader {
                ObjectReader::Person => format!("{indent}{}", shortened(name)),
                ObjectReader::Program => name,
            };
            let mut row = self.object_row(name.into(), calls, self.inclusive(id), self.own(id));
            if reader == ObjectReader::Program {
                let parent = node.parent.and_then(|parent| numbers.get(&parent));
                let parent = parent.map_or(Value::Missing, |&parent| parent.into());
                row.splice(1..1, [u64::from(node.depth).into(), numbers[&id].into(), parent]);
            }
            table.row(row);
        }
    }

    fn object_names(&self, table: &mut Table, reader: ObjectReader) {
        let functions = self.by_function();
        let mut rows: Vec<_> = functions.into_iter().collect();
        let name = |function: u32| match reader {
            ObjectReader::Person => shortened(self.tree.shown_name(function)),
            ObjectReader::Program => self.tree.shown_name(function),
        };
        rows.sort_by_cached_key(|(function, (calls, _))| {
            (Reverse(self.weight(&calls.inclusive)), self.tree.shown_name(*function))
        });
        for (function, (calls, own)) in rows {
            let count = if calls.calls == 0 { Value::Missing } else { calls.calls.into() };
            table.row(self.object_row(name(function).into(), count, &calls.inclusive, &own));
        }
    }

    fn object_row(&self, name: Value, calls: Value, inclusive: &[u64], own: &[u64]) -> Vec<Value> {
        let percent = |row: &[u64]| 100.0 * self.weight(row) as f64 / self.weight(&self.total).max(1) as f64;
        let numbers = inclusive.iter().zip(own).flat_map(|(inclusive, own)| [*inclusive, *own]);
        let shares = [percent(inclusive), percent(own)].map(Value::from);
        [name, calls].into_iter().chain(shares).chain(numbers.map(Value::from)).collect()
    }
}

/// A name that is not too long.
fn shortened(name: String) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}
