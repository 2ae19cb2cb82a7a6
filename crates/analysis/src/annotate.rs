//! Functions as source and disassembly, in the program's order, with the results of a model at each line and instruction.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use events::BlockId;
use image::{SourceLocation, SymbolPattern};
use trace::Trace;

use crate::models::InstructionResults;
use crate::names::{FunctionName, Names, NotExecuted, check_executed};
use crate::source::SourceFiles;
use table::{Column, Kind, Table, Value, separated};

/// Which functions are shown.
#[derive(Clone, Debug, Default)]
pub struct AnnotateRequest {
    /// Functions by name; if there are none, the most expensive ones.
    pub functions: Vec<String>,
    /// How many of the most expensive ones.
    pub top: usize,
    /// Folders in which source files are searched, after the paths that the compiler recorded.
    pub folders: Vec<PathBuf>,
}

/// The results of an execution's instructions.
struct AnnotatedCosts<'t> {
    trace: &'t Trace,
    /// By image and run-time address.
    instructions: HashMap<(Option<u32>, u64), SiteResults>,
    /// The functions that were executed, the most expensive first.
    functions: Vec<ExecutedFunction>,
    total: u64,
}

/// An instruction that was executed.
struct SiteResults {
    /// One of the blocks that it is in.
    block: BlockId,
    word: u32,
    results: Vec<u64>,
}

/// An instruction of a function, executed or not.
struct AnnotatedInstruction {
    address: u64,
    text: String,
    results: Vec<u64>,
}

/// A function that was executed.
struct ExecutedFunction {
    name: Arc<FunctionName>,
    image: Option<u32>,
    /// The address of one of its instructions that were executed.
    address: u64,
    weight: u64,
}

/// One table for each function.
pub fn annotate<R: InstructionResults>(
    results: &R,
    trace: &Trace,
    request: &AnnotateRequest,
) -> Result<Vec<Table>, NotExecuted> {
    let names = Names::of_trace(trace);
    let costs = AnnotatedCosts::new(results, trace, &names);
    let mut files = SourceFiles::new(&request.folders);
    let is_wanted = |function: &&ExecutedFunction| {
        let is_named = |given: &String| function.name.is_named(&SymbolPattern::new(given));
        request.functions.is_empty() || request.functions.iter().any(is_named)
    };
    check_executed(&request.functions, costs.functions.iter().map(|function| &*function.name))?;
    let wanted: Vec<&ExecutedFunction> = costs.functions.iter().filter(is_wanted).collect();
    let shown = if request.functions.is_empty() { request.top.min(wanted.len()) } else { wanted.len() };
    let functions = wanted.iter().take(shown);
    let mut tables: Vec<Table> =
        functions.map(|function| table(function, results, &names, &costs, &mut files)).collect();
    let others = wanted.len() - shown;
    if let (Some(last), 1..) = (tables.last_mut(), others) {
        let others = separated(&others.to_string());
        last.notes.push(format!("{others} more functions were executed: --function shows one, --top more."));
    }
    Ok(tables)
}

/// The most expensive lines of annotated functions, the first ones first; none if no function has lines.
pub fn expensive_lines(functions: &[Table], most: usize) -> Option<Table> {
    let first = functions.first()?;
    let named = [Column { name: "function".into(), kind: Kind::Text }];
    let of_lines = first.columns.iter().filter(|column| column.kind != Kind::Address).cloned();
    let mut table = Table::new("lines", "The most expensive lines", &[]);
    table.columns = named.into_iter().chain(of_lines).collect();
    let mut indexes: HashMap<(&str, &str), usize> = HashMap::new();
    for function in functions {
        let body = function.rows.len() - usize::from(function.total);
        for row in &function.rows[..body] {
            // The rows of instructions have no line.
            let Value::Text(line) = &row[0] else { continue };
            let cells = row.iter().zip(&function.columns);
            let cells =
                cells.filter(|(_, column)| column.kind != Kind::Address).map(|(value, _)| value.clone());
            let row: Vec<Value> = std::iter::once(function.name.as_str().into()).chain(cells).collect();
            match indexes.get(&(function.name.as_str(), line.as_str())) {
                Some(&index) => add_values(&mut table.rows[index], &row),
                None => {
                    indexes.insert((&function.name, line), table.rows.len());
                    table.rows.push(row);
                }
            }
        }
    }
    let share = |row: &Vec<Value>| match row[2] {
        Value::Real(share) => share,
        _ => 0.0,
    };
    table.rows.sort_by(|a, b| share(b).total_cmp(&share(a)));
    table.rows.truncate(most);
    (!table.rows.is_empty()).then_some(table)
}

/// Adds the numbers of a row to those of another one.
fn add_values(sum: &mut [Value], more: &[Value]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        match (sum, more) {
            (Value::Integer(sum), Value::Integer(more)) => *sum += more,
            (Value::Real(sum), Value::Real(more)) => *sum += more,
            _ => {}
        }
    }
}

impl<'t> AnnotatedCosts<'t> {
    fn new<R: InstructionResults>(results: &R, trace: &'t Trace, names: &Names) -> AnnotatedCosts<'t> {
        let mut instructions: HashMap<(Option<u32>, u64), SiteResults> = HashMap::new();
        let width = results.columns().len();
        for (id, block) in trace.blocks().iter().enumerate() {
            let rows = results.rows(id as BlockId).into_iter().flatten();
            for ((address, &word), row) in block.addresses().zip(&block.words).zip(rows) {
                let new = || SiteResults { block: id as BlockId, word, results: vec![0; width] };
                let instruction = instructions.entry((block.image, address)).or_insert_with(new);
                add(&mut instruction.results, &row);
            }
        }
        let mut functions: HashMap<Arc<FunctionName>, ExecutedFunction> = HashMap::new();
        let mut total = 0;
        for (&(image, address), instruction) in &instructions {
            let name = names.name(image, address);
            let weight = results.weight(&instruction.results);
            total += weight;
            let new = || ExecutedFunction { name: name.clone(), image, address, weight: 0 };
            let function = functions.entry(name.clone()).or_insert_with(new);
            function.weight += weight;
            // Of several mappings of an image, the first one is shown.
            (function.image, function.address) = (function.image, function.address).min((image, address));
        }
        let mut functions: Vec<ExecutedFunction> = functions.into_values().collect();
        functions.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
        AnnotatedCosts { trace, instructions, functions, total }
    }

    /// The instructions of a function, executed or not, with their results.
    fn of(&self, function: &ExecutedFunction, names: &Names, width: usize) -> Vec<AnnotatedInstruction> {
        let all = names.instructions(function.image, function.address).unwrap_or_else(|| {
            let executed = self.instructions.iter().filter(|((image, address), _)| {
                *image == function.image && names.name(*image, *address) == function.name
            });
            let mut executed: Vec<(u64, u32)> =
                executed.map(|(&(_, address), instruction)| (address, instruction.word)).collect();
            executed.sort_unstable();
            executed
        });
        let of = |(address, word)| {
            let executed = self.instructions.get(&(function.image, address));
            let text = match executed {
                Some(one) => self.trace.blocks()[one.block as usize].disassemble(one.word, address),
                None => self.trace.instruction_set().disassemble(word, address),
            };
            let text = text.unwrap_or_else(|| format!(".long {word:#010x}"));
            let results = executed.map_or_else(|| vec![0; width], |one| one.results.clone());
            AnnotatedInstruction { address, text, results }
        };
        all.into_iter().map(of).collect()
    }
}

/// The lines of a function and below each its instructions, in the order of addresses.
fn table<R: InstructionResults>(
    function: &ExecutedFunction,
    results: &R,
    names: &Names,
    costs: &AnnotatedCosts,
    files: &mut SourceFiles,
) -> Table {
    let columns = [("line", Kind::Text), ("address", Kind::Address), ("share", Kind::Percent(1))];
    let FunctionName { image, function: name } = &*function.name;
    let title = format!("{} of {name} in {image}", R::WHAT);
    let mut table = Table::new(name, title, &columns);
    table.columns.extend(results.columns());
    // Long lines do not move the numbers.
    table.columns.push(Column { name: "code".into(), kind: Kind::Code });
    let cells = |line: Option<String>, address: Option<u64>, row: &[u64], code: Option<String>| {
        let share = 100.0 * results.weight(row) as f64 / costs.total.max(1) as f64;
        let mut cells: Vec<Value> = vec![line.into(), address.into(), share.into()];
        cells.extend(row.iter().map(|&number| Value::from(number)));
        cells.push(code.into());
        cells
    };
    let width = results.columns().len();
    let instructions = costs.of(function, names, width);
    let location = |address| names.location(function.image, address);
    let mut total = vec![0; width];
    for run in instructions.chunk_by(|a, b| location(a.address) == location(b.address)) {
        let mut sum = vec![0; width];
        run.iter().for_each(|instruction| add(&mut sum, &instruction.results));
        add(&mut total, &sum);
        let first = run.first().and_then(|instruction| location(instruction.address));
        if let Some(SourceLocation { file, line: Some(line) }) = first {
            let location = format!("{}:{line}", file.rsplit('/').next().unwrap_or(&file));
            table.row(cells(Some(location), None, &sum, files.line(&file, line)));
        }
        for AnnotatedInstruction { address, text, results } in run {
            table.row(cells(None, Some(*address), results, Some(format!("    {text}"))));
        }
    }
    table.total_row(cells(Some("total".into()), None, &total, None));
    table.notes.extend(files.notes());
    table
}

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
