//! Tables of calls: functions with everything that they call, callers, callees, and the tree.

use std::cmp::Reverse;

use image::SymbolPattern;

use super::costs::{CallCosts, FunctionCalls};
use super::{CallTree, NodeId, WithCallTree};
use crate::models::{InstructionResults, named};
use crate::names::{NotExecuted, check_executed};
use table::{Kind, Table, Value, separated};

/// The rows of a table of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRows {
    /// Functions, with everything that they call.
    Function,
    /// Functions and their callers.
    Caller,
    /// Functions and their callees.
    Callee,
    /// The nodes of the call tree.
    Tree,
}

/// Which rows of a table of calls are shown.
#[derive(Clone, Debug, Default)]
pub struct CallSelection {
    /// Only functions with these names; all if there are none.
    pub functions: Vec<String>,
    /// Only calls of at least this share of the total cost, in percent; otherwise of at least 1 %.
    pub threshold: Option<f64>,
}

/// The share of the total cost, in percent, of calls that are shown.
const DEFAULT_THRESHOLD: f64 = 1.0;

impl CallSelection {
    /// Whether functions of all names were executed.
    pub fn check(&self, tree: &CallTree) -> Result<(), NotExecuted> {
        check_executed(&self.functions, tree.functions().iter().map(|name| &**name))
    }
}

/// One table of calls for each model.
pub fn call_tables<M, R: InstructionResults>(
    rows: CallRows,
    selection: &CallSelection,
    execution: &WithCallTree<M>,
    models: &[(&str, &R)],
) -> Vec<Table> {
    let (name, what) = match rows {
        CallRows::Function => ("functions", "functions with all that they call"),
        CallRows::Caller => ("callers", "functions by caller"),
        CallRows::Callee => ("callees", "functions by callee"),
        CallRows::Tree => ("call-tree", "the call tree"),
    };
    let on_machine = if models.iter().all(|(model, _)| model.is_empty()) { "" } else { " on" };
    let title = format!("{} of {what}{on_machine}", R::WHAT);
    named(models, name, &title, |name, title, results| {
        CallCosts::new(execution, results).table(rows, selection, name, title.trim_end())
    })
}

impl<R: InstructionResults> CallCosts<'_, R> {
    /// The table with these rows, the largest costs first.
    fn table(&self, rows: CallRows, selection: &CallSelection, name: &str, title: &str) -> Table {
        let mut table = match rows {
            CallRows::Function => self.functions(name, title, selection),
            CallRows::Caller => self.neighbours(name, title, selection, true),
            CallRows::Callee => self.neighbours(name, title, selection, false),
            CallRows::Tree => self.call_tree(name, title, selection),
        };
        let merged = self.tree.merged();
        if merged > 0 {
            table.notes.push(format!(
                "{} calls were too deep for the tree and are merged with an open call of the same function, or have no caller.",
                separated(&merged.to_string())
            ));
        }
        table
    }

    fn functions(&self, name: &str, title: &str, selection: &CallSelection) -> Table {
        let columns = [
            ("function", Kind::Text),
            ("image", Kind::Text),
            ("calls", Kind::Count),
            ("share", Kind::Percent(1)),
        ];
        let mut table = self.new_table(name, title, &columns);
        let functions = self.by_function();
        let mut rows: Vec<(u32, &FunctionCalls)> =
            functions.iter().map(|(&id, (calls, _))| (id, calls)).collect();
        rows.retain(|&(id, _)| self.is_selected(id, selection));
        self.sort(&mut rows);
        for (function, calls) in rows {
            let mut row = self.name(function).to_vec();
            row.extend([calls.calls.into(), self.share(&calls.inclusive)]);
            row.extend(numbers(&calls.inclusive));
            table.row(row);
        }
        table
    }

    /// The callers of each function, or its callees.
    fn neighbours(&self, name: &str, title: &str, selection: &CallSelection, are_callers: bool) -> Table {
        let neighbour = if are_callers { "caller" } else { "callee" };
        let columns = [
            ("function", Kind::Text),
            (neighbour, Kind::Text),
            ("image", Kind::Text),
            ("calls", Kind::Count),
            ("share", Kind::Percent(1)),
        ];
        let mut table = self.new_table(name, title, &columns);
        let edges = self.by_caller();
        let functions = self.by_function();
        let mut order: Vec<(u32, &FunctionCalls)> =
            functions.iter().map(|(&id, (calls, _))| (id, calls)).collect();
        order.retain(|&(id, _)| self.is_selected(id, selection));
        self.sort(&mut order);
        for (function, _) in order {
            let of_function = edges.iter().filter_map(|(&(caller, callee), calls)| match are_callers {
                true => (callee == function).then_some((caller, calls)),
                false => (caller == function).then_some((callee, calls)),
            });
            let mut rows: Vec<(u32, &FunctionCalls)> = of_function.collect();
            self.sort(&mut rows);
            for (neighbour, calls) in rows {
                let [function, _] = self.name(function);
                let [neighbour, image] = self.name(neighbour);
                let mut row =
                    vec![function, neighbour, image, calls.calls.into(), self.share(&calls.inclusive)];
                row.extend(numbers(&calls.inclusive));
                table.row(row);
            }
        }
        table
    }

    /// The nodes in the order of calls, callees indented below their caller, the most expensive first.
    fn call_tree(&self, name: &str, title: &str, selection: &CallSelection) -> Table {
        let columns = [
            ("call", Kind::Code),
            ("depth", Kind::Count),
            ("calls", Kind::Count),
            ("share", Kind::Percent(1)),
            ("own share", Kind::Percent(1)),
        ];
        let mut table = self.new_table(name, title, &columns);
        let mut callees: Vec<Vec<NodeId>> = vec![Vec::new(); self.tree.nodes().len()];
        let mut roots = Vec::new();
        for (id, node) in self.used() {
            match node.parent {
                Some(parent) => callees[parent as usize].push(id),
                None => roots.push(id),
            }
        }
        let order =
            |nodes: &mut Vec<NodeId>| nodes.sort_by_key(|&id| Reverse(self.weight(self.inclusive(id))));
        order(&mut roots);
        let mut open: Vec<NodeId> = roots.into_iter().rev().collect();
        let mut left_out = 0;
        let threshold = selection.threshold.unwrap_or(DEFAULT_THRESHOLD);
        while let Some(id) = open.pop() {
            let below = &mut callees[id as usize];
            order(below);
            open.extend(below.iter().rev());
            let node = &self.tree.nodes()[id as usize];
            if self.percent(self.inclusive(id)) < threshold {
                left_out += 1;
                continue;
            }
            let function = &self.tree.functions()[node.function as usize];
            let indented = format!("{}{}", "  ".repeat(node.depth as usize), function.function);
            let mut row: Vec<Value> =
                vec![indented.into(), u64::from(node.depth).into(), self.calls(id).into()];
            row.extend([self.share(self.inclusive(id)), self.share(self.own(id))]);
            row.extend(numbers(self.inclusive(id)));
            table.row(row);
        }
        if left_out > 0 {
            let left_out = separated(&left_out.to_string());
            table.notes.push(format!(
                "{left_out} calls cost less than {threshold} % and are left out; --threshold 0 shows them."
            ));
        }
        table
    }

    fn new_table(&self, name: &str, title: &str, columns: &[(&str, Kind)]) -> Table {
        let mut table = Table::new(name, title, columns);
        table.columns.extend(self.columns.iter().cloned());
        table
    }

    /// Whether a function is one of the selected ones.
    fn is_selected(&self, function: u32, selection: &CallSelection) -> bool {
        let name = &self.tree.functions()[function as usize];
        let is_named = |given: &String| name.is_named(&SymbolPattern::new(given));
        selection.functions.is_empty() || selection.functions.iter().any(is_named)
    }

    fn name(&self, function: u32) -> [Value; 2] {
        let name = &self.tree.functions()[function as usize];
        [name.function.clone().into(), name.image.clone().into()]
    }

    pub(super) fn weight(&self, row: &[u64]) -> u64 {
        self.results.weight(row)
    }

    fn percent(&self, row: &[u64]) -> f64 {
        100.0 * self.weight(row) as f64 / self.weight(&self.total).max(1) as f64
    }

    fn share(&self, row: &[u64]) -> Value {
        self.percent(row).into()
    }

    /// The most expensive first; functions of the same cost in the order of their names.
    fn sort(&self, rows: &mut [(u32, &FunctionCalls)]) {
        let functions = CallTree::functions(self.tree);
        rows.sort_by(|(a, of_a), (b, of_b)| {
            let weights = self.weight(&of_b.inclusive).cmp(&self.weight(&of_a.inclusive));
            weights.then_with(|| functions[*a as usize].cmp(&functions[*b as usize]))
        });
    }
}

fn numbers(row: &[u64]) -> impl Iterator<Item = Value> + '_ {
    row.iter().map(|&number| number.into())
}
