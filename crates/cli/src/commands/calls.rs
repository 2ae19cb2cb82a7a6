//! `pathlength calls`: instructions, loads and stores of calls. The costs of calls for other models.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use analysis::call_tree::{
    CallChains, CallCosts, CallProfile, CallRows, WithCallTree, call_tables, find_event,
};
use analysis::export::{collapsed, pprof, write_callgrind};
use analysis::models::{self, InstructionResults};
use analysis::table::Column;
use anyhow::{Context, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use machine::{InstructionCounts, MergeableModel, Model, PerProcess};
use report::{FileForm, FlameGraph};
use trace::Trace;

use super::by_class::ClassRequest;
use super::count::SUMMARY_FUNCTIONS;
use super::entries::{self, EntriesRequest};
use super::selected_machines::SelectedMachines;
use super::simulate::{self, Simulated};
use super::{by_class, processes};
use crate::arguments::{CallOptions, CallsOptions, OutputOptions, ResultRows, RowOptions, SimulationOptions};

/// Counts calls in the trace or the program, and writes the tables.
pub fn run(options: &CallsOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    let rows = options.by.map(|by| by.results(true));
    let has_classes = options.classes.are_wanted(rows, &options.input.plan.unit);
    check_output(
        output,
        options.by.is_none() && !has_classes,
        rows.or(Some(ResultRows::Calls(CallRows::Tree))),
    )?;
    if options.by.is_some() || has_classes {
        check_functions(&options.calls, rows)?;
    }
    let counts = InstructionCounts::new();
    let form = chain_form(
        &counts.columns(),
        &options.calls,
        output,
        rows.or(Some(ResultRows::Calls(CallRows::Tree))),
    )?;
    if rows == Some(ResultRows::Process) {
        bail!("--by process is for count, caches and time with --children");
    }
    if let Some(ResultRows::Entries(rows)) = rows {
        let (input, rows_shown, children) = (&options.input, &options.rows, options.children);
        let selected = &SelectedMachines::default();
        let request = EntriesRequest { input, rows, rows_shown, output, selected, children };
        return entries::simulate(&request, vec![counts]);
    }
    if has_classes {
        let request = ClassRequest {
            input: &options.input,
            classes: &options.classes,
            rows_shown: &options.rows,
            output,
            selected: &SelectedMachines::default(),
            children: options.children,
        };
        let rows = (rows.or(Some(ResultRows::Calls(CallRows::Tree))), &options.calls);
        return by_class::run(&request, rows, || vec![InstructionCounts::new()], |_| Vec::new());
    }
    if let Some(ResultRows::Own(own)) = rows {
        let simulated = simulate_counts(options, rows, &[], counts)?;
        let tables = models::by(own, &[("", &simulated.model)], &simulated.trace);
        simulated.write(tables, &options.rows, output)?;
        return simulated.finish(&options.input);
    }
    let model = WithCallTree::new(counts);
    let functions = &options.calls.functions;
    let simulated = simulate_counts(options, rows, functions, model)?;
    if let Some((form, path)) = form {
        write_chains(&simulated, &simulated.model.model, &options.calls, form, path)?;
        return simulated.finish(&options.input);
    }
    let selection = options.calls.selection();
    selection.check(simulated.model.tree())?;
    let tables = |rows| call_tables(rows, &selection, &simulated.model, &[("", &simulated.model.model)]);
    if let Some(ResultRows::Calls(rows)) = rows {
        simulated.write(tables(rows), &options.rows, output)?;
        return simulated.finish(&options.input);
    }
    let mut functions = tables(CallRows::Function);
    let sorted = options.rows.sort(&mut functions);
    for table in &mut functions {
        let usual = output.summary_rows(SUMMARY_FUNCTIONS);
        options.rows.shorten(table, usual, "--by function shows all functions");
    }
    let tables = functions.into_iter().chain(tables(CallRows::Tree)).collect();
    simulated.write(tables, &RowOptions::default(), output)?;
    sorted?;
    simulated.finish(&options.input)
}

/// Simulates a model on the first process, or on all.
pub fn simulate_these<M: Model + 'static>(
    children: bool,
    (input, output): (&SimulationOptions, &OutputOptions),
    rows: Option<ResultRows>,
    functions: &[String],
    selected: &SelectedMachines,
    model: M,
) -> anyhow::Result<Simulated<M>> {
    match children {
        true => Ok(processes::simulate_all(input, output, rows, functions, selected, model)?.0),
        false => simulate::simulate(input, output, rows, functions, selected, model),
    }
}

/// Counts instructions, of all processes if the options say so.
fn simulate_counts<M: Model + 'static>(
    options: &CallsOptions,
    rows: Option<ResultRows>,
    functions: &[String],
    model: M,
) -> anyhow::Result<Simulated<M>> {
    let none = SelectedMachines::default();
    simulate_these(options.children, (&options.input, &options.output), rows, functions, &none, model)
}

/// The costs of calls that are asked for.
pub struct CallsRequest<'o> {
    /// What is simulated.
    pub input: &'o SimulationOptions,
    /// The rows.
    pub rows: CallRows,
    /// Which calls.
    pub options: &'o CallOptions,
    /// Which of the rows.
    pub rows_shown: &'o RowOptions,
    /// Where the tables go.
    pub output: &'o OutputOptions,
    /// The machines.
    pub selected: &'o SelectedMachines,
    /// Whether all processes are simulated.
    pub children: bool,
}

/// Simulates models of machines with the call tree, and writes one table for each machine.
pub fn simulate<M: InstructionResults + Model + 'static>(
    request: &CallsRequest,
    models: Vec<M>,
) -> anyhow::Result<ExitCode> {
    let &CallsRequest { input, rows, options, output, selected, .. } = request;
    let form = request.form(&models)?;
    let (rows, model) = (Some(ResultRows::Calls(rows)), WithCallTree::new(models));
    let functions = &options.functions;
    let simulated = simulate_these(request.children, (input, output), rows, functions, selected, model)?;
    request.write(&simulated, &selected.named(&simulated.model.model), form)
}

/// The same of all processes, for each of which `make` makes models.
pub fn simulate_processes<M: InstructionResults + MergeableModel + 'static>(
    request: &CallsRequest,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let &CallsRequest { input, rows, options, output, selected, .. } = request;
    let form = request.form(&make())?;
    let (rows, model) = (Some(ResultRows::Calls(rows)), WithCallTree::new(PerProcess::merging(make)));
    let (mut simulated, _) =
        processes::simulate_all(input, output, rows, &options.functions, selected, model)?;
    simulated.notes.push(processes::OWN_PROCESSORS.into());
    if simulated.model.model.all_models().next().is_none() {
        bail!(processes::NOTHING_SIMULATED);
    }
    let together: Vec<_> = processes::together(&simulated.model.model, selected).collect();
    let named: Vec<_> = together.iter().map(|(name, models)| (*name, models)).collect();
    request.write(&simulated, &named, form)
}

impl<'o> CallsRequest<'o> {
    /// The form that the name of the output asks for.
    fn form<M: InstructionResults>(&self, models: &[M]) -> anyhow::Result<Option<(ChainForm, &'o Path)>> {
        let columns = models.first().map_or(Vec::new(), InstructionResults::columns);
        let form = chain_form(&columns, self.options, self.output, Some(ResultRows::Calls(self.rows)))?;
        if form.is_some() && self.selected.names.len() > 1 {
            bail!("a flame graph shows one machine: give a single --machine");
        }
        Ok(form)
    }

    /// Writes a table for each machine, or what is drawn of the only one.
    fn write<M, R: InstructionResults>(
        &self,
        simulated: &Simulated<WithCallTree<M>>,
        results: &[(&str, &R)],
        form: Option<(ChainForm, &Path)>,
    ) -> anyhow::Result<ExitCode> {
        if let (Some((form, path)), [(_, results)]) = (form, results) {
            write_chains(simulated, *results, self.options, form, path)?;
        } else {
            let selection = self.options.selection();
            selection.check(simulated.model.tree())?;
            let tables = call_tables(self.rows, &selection, &simulated.model, results);
            simulated.write(tables, self.rows_shown, self.output)?;
        }
        simulated.finish(self.input)
    }
}

/// Whether --function can select from these rows.
pub fn check_functions(options: &CallOptions, rows: Option<ResultRows>) -> anyhow::Result<()> {
    let selects =
        matches!(rows, Some(ResultRows::Calls(CallRows::Function | CallRows::Caller | CallRows::Callee)));
    if !options.functions.is_empty() && !selects {
        bail!("--function selects rows of --by caller, --by callee, and --by function --inclusive");
    }
    Ok(())
}

/// The forms that only call chains have.
const CHAIN_FORMS: [FileForm; 4] = [FileForm::Svg, FileForm::Collapsed, FileForm::Pprof, FileForm::Callgrind];

/// What call chains are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainForm {
    /// A flame graph.
    Svg,
    /// A flame graph that can be searched.
    Html,
    /// Collapsed stacks.
    Collapsed,
    /// For pprof.
    Pprof,
    /// For KCachegrind.
    Callgrind,
}

impl ChainForm {
    /// The form of a file; none if it is not one of call chains.
    fn of(form: FileForm) -> Option<ChainForm> {
        Some(match form {
            FileForm::Svg => ChainForm::Svg,
            FileForm::Page => ChainForm::Html,
            FileForm::Collapsed => ChainForm::Collapsed,
            FileForm::Pprof => ChainForm::Pprof,
            FileForm::Callgrind => ChainForm::Callgrind,
            FileForm::Tables(_) | FileForm::SavedCounts | FileForm::Foreign => return None,
        })
    }
}

/// Checks the output of a command that writes tables, or else the call tree in the forms of call chains.
pub fn check_output(output: &OutputOptions, several: bool, rows: Option<ResultRows>) -> anyhow::Result<()> {
    check_form(output, rows)?;
    Ok(output.check_or(several, &CHAIN_FORMS)?)
}

/// Whether the rows are those of the form, if it is one of call chains alone.
fn check_form(output: &OutputOptions, rows: Option<ResultRows>) -> anyhow::Result<()> {
    match output.form() {
        Some((form, path))
            if CHAIN_FORMS.contains(&form) && rows != Some(ResultRows::Calls(CallRows::Tree)) =>
        {
            bail!("{} shows the call tree: give --by call-tree", path.display())
        }
        _ => Ok(()),
    }
}

/// The form that the name of the output asks for, if it is one of call chains.
pub fn chain_form<'o>(
    columns: &[Column],
    options: &CallOptions,
    output: &'o OutputOptions,
    rows: Option<ResultRows>,
) -> anyhow::Result<Option<(ChainForm, &'o Path)>> {
    check_form(output, rows)?;
    let is_tree = rows == Some(ResultRows::Calls(CallRows::Tree));
    let form = output.form().filter(|_| is_tree).and_then(|(form, path)| Some((ChainForm::of(form)?, path)));
    let is_picture = matches!(form, Some((ChainForm::Svg | ChainForm::Html, _)));
    if form.is_none() && options.event.is_some() {
        bail!(
            "--event is for flame graphs, collapsed stacks and pprof: give -o NAME.svg, NAME.html, NAME.folded or NAME.pb.gz"
        );
    }
    if !is_picture && options.against.is_some() {
        bail!("--against is for flame graphs: give -o NAME.svg or NAME.html");
    }
    find_event(columns, options.event.as_deref())?;
    options.against.as_deref().map_or(Ok(()), |earlier| read_chains(earlier).map(drop))?;
    Ok(form)
}

/// Reads an earlier run's collapsed stacks.
fn read_chains(path: &Path) -> anyhow::Result<CallChains> {
    let read = || -> anyhow::Result<CallChains> {
        report::protect(path);
        Ok(collapsed::read(&mut BufReader::new(File::open(path)?))?)
    };
    read().with_context(|| path.display().to_string())
}

/// Writes what the name of the output asks for.
pub fn write_chains<M, R: InstructionResults>(
    simulated: &Simulated<WithCallTree<M>>,
    results: &R,
    options: &CallOptions,
    form: ChainForm,
    path: &Path,
) -> anyhow::Result<()> {
    simulated.protect();
    let trace = &simulated.trace;
    if matches!(form, ChainForm::Pprof | ChainForm::Callgrind) {
        let event = find_event(&results.columns(), options.event.as_deref())?;
        return write_profile(trace, CallProfile::new(&simulated.model, results, event), (form, path));
    }
    let chains = CallCosts::new(&simulated.model, results).chains(options.event.as_deref())?;
    draw_chains(trace, R::WHAT, chains, options, (form, path))
}

/// Writes what was counted for KCachegrind or, otherwise, for pprof.
pub fn write_profile(
    trace: &Trace,
    profile: CallProfile,
    (form, path): (ChainForm, &Path),
) -> anyhow::Result<()> {
    report::write_file(path, |out| match form {
        ChainForm::Callgrind => Ok(write_callgrind(profile, trace, out)?),
        _ => {
            let mut out = GzEncoder::new(out, Compression::default());
            pprof::write(profile, trace, &mut out)?;
            Ok(out.finish().map(drop)?)
        }
    })?;
    Ok(())
}

/// Writes chains of what was counted as a flame graph or as collapsed stacks.
pub fn draw_chains(
    trace: &Trace,
    what: &str,
    mut chains: CallChains,
    options: &CallOptions,
    (form, path): (ChainForm, &Path),
) -> anyhow::Result<()> {
    if let Some(earlier) = &options.against {
        chains.compare(&read_chains(earlier)?);
    }
    let program = trace.header().program.file_name().unwrap_or_default().to_string_lossy();
    let title = format!("{what} of {program}, by chain of calls");
    let graph = FlameGraph { title: &title, chains: &chains };
    report::write_file(path, |out| match form {
        ChainForm::Svg => Ok(graph.write_svg(out)?),
        ChainForm::Html => Ok(graph.write_html(out)?),
        _ => Ok(collapsed::write(&chains, out)?),
    })?;
    Ok(())
}
