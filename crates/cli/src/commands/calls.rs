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
use machine::{InstructionCounts, Model};
use report::{FlameGraph, Format};

use super::count::SUMMARY_FUNCTIONS;
use super::selected_machines::SelectedMachines;
use super::simulate::{self, Simulated};
use crate::arguments::{CallOptions, CallsOptions, OutputOptions, ResultRows, RowOptions, SimulationOptions};

/// Counts calls in the trace or the program, and writes the tables.
pub fn run(options: &CallsOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    output.check(options.by.is_none())?;
    let rows = options.by.map(|by| by.results(true));
    let counts = InstructionCounts::new();
    let none = SelectedMachines::default();
    let form = chain_form(
        &counts.columns(),
        &options.calls,
        output,
        rows.or(Some(ResultRows::Calls(CallRows::Tree))),
    )?;
    if rows == Some(ResultRows::Process) {
        bail!("calls are of the first process: --by process is for count, caches and time with --children");
    }
    if let Some(ResultRows::Own(own)) = rows {
        let simulated = simulate::simulate(&options.input, output, rows, &[], &none, counts)?;
        let tables = models::by(own, &[("", &simulated.model)], &simulated.trace);
        simulated.write(tables, &options.rows, output)?;
        return simulated.finish(&options.input);
    }
    let model = WithCallTree::new(counts);
    let functions = &options.calls.functions;
    let simulated = simulate::simulate(&options.input, output, rows, functions, &none, model)?;
    if let Some((form, path)) = form {
        write_chains(&simulated, &simulated.model.model, &options.calls, form, path)?;
        return simulated.finish(&options.input);
    }
    let selection = options.calls.selection();
    let tables = |rows| call_tables(rows, &selection, &simulated.model, &[("", &simulated.model.model)]);
    if let Some(ResultRows::Calls(rows)) = rows {
        simulated.write(tables(rows), &options.rows, output)?;
        return simulated.finish(&options.input);
    }
    let mut functions = tables(CallRows::Function);
    let sorted = options.rows.sort(&mut functions);
    for table in &mut functions {
        options.rows.shorten(table, Some(SUMMARY_FUNCTIONS), "--by function shows all functions");
    }
    let tables = functions.into_iter().chain(tables(CallRows::Tree)).collect();
    simulated.write(tables, &RowOptions::default(), output)?;
    sorted?;
    simulated.finish(&options.input)
}

/// Simulates models of machines with the call tree, and writes one table for each machine.
pub fn simulate<M: InstructionResults + Model + 'static>(
    input: &SimulationOptions,
    rows: CallRows,
    options: &CallOptions,
    rows_shown: &RowOptions,
    output: &OutputOptions,
    selected: &SelectedMachines,
    models: Vec<M>,
) -> anyhow::Result<ExitCode> {
    let columns = models.first().map_or(Vec::new(), InstructionResults::columns);
    let form = chain_form(&columns, options, output, Some(ResultRows::Calls(rows)))?;
    if form.is_some() && selected.names.len() > 1 {
        bail!("a flame graph shows one machine: give a single --machine");
    }
    let model = WithCallTree::new(models);
    let result_rows = Some(ResultRows::Calls(rows));
    let simulated = simulate::simulate(input, output, result_rows, &options.functions, selected, model)?;
    if let (Some((form, path)), [results]) = (form, &simulated.model.model[..]) {
        write_chains(&simulated, results, options, form, path)?;
        return simulated.finish(input);
    }
    let named = selected.named(&simulated.model.model);
    let tables = call_tables(rows, &options.selection(), &simulated.model, &named);
    simulated.write(tables, rows_shown, output)?;
    simulated.finish(input)
}

/// What call chains are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChainForm {
    Svg,
    Html,
    Collapsed,
    Pprof,
    Callgrind,
}

/// The form that the name of the output asks for, if it is one of call chains.
fn chain_form<'o>(
    columns: &[Column],
    options: &CallOptions,
    output: &'o OutputOptions,
    rows: Option<ResultRows>,
) -> anyhow::Result<Option<(ChainForm, &'o Path)>> {
    let path = output.path.as_deref();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let form = path.and_then(|path| match path.extension()?.to_str()? {
        "gz" if name(path).ends_with(".pb.gz") => Some((ChainForm::Pprof, path)),
        "svg" => Some((ChainForm::Svg, path)),
        "html" => Some((ChainForm::Html, path)),
        "folded" => Some((ChainForm::Collapsed, path)),
        "callgrind" => Some((ChainForm::Callgrind, path)),
        _ => None,
    });
    let is_picture = matches!(form, Some((ChainForm::Svg | ChainForm::Html, _)));
    if form.is_some() && rows != Some(ResultRows::Calls(CallRows::Tree)) {
        bail!("{} shows the call tree: give --by call-tree", path.unwrap_or(Path::new("")).display());
    }
    if form.is_some() && output.format() != Format::Table {
        bail!("the name of the file decides its form: leave out --format {}", output.format());
    }
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
fn write_chains<M, R: InstructionResults>(
    simulated: &Simulated<WithCallTree<M>>,
    results: &R,
    options: &CallOptions,
    form: ChainForm,
    path: &Path,
) -> anyhow::Result<()> {
    simulated.protect();
    let event = find_event(&results.columns(), options.event.as_deref())?;
    let profile = || CallProfile::new(&simulated.model, results, event);
    let trace = &simulated.trace;
    match form {
        ChainForm::Pprof => report::write_file(path, |out| {
            let mut out = GzEncoder::new(out, Compression::default());
            pprof::write(profile(), trace, &mut out)?;
            Ok(out.finish().map(drop)?)
        })?,
        ChainForm::Callgrind => report::write_file(path, |out| Ok(write_callgrind(profile(), trace, out)?))?,
        ChainForm::Svg | ChainForm::Html | ChainForm::Collapsed => {
            let mut chains = CallCosts::new(&simulated.model, results).chains(options.event.as_deref())?;
            if let Some(earlier) = &options.against {
                chains.compare(&read_chains(earlier)?);
            }
            let program = trace.header().program.file_name().unwrap_or_default().to_string_lossy();
            let title = format!("{} of {program}, by chain of calls", R::WHAT);
            let graph = FlameGraph { title: &title, chains: &chains };
            report::write_file(path, |out| match form {
                ChainForm::Svg => Ok(graph.write_svg(out)?),
                ChainForm::Html => Ok(graph.write_html(out)?),
                _ => Ok(collapsed::write(&chains, out)?),
            })?;
        }
    }
    Ok(())
}
