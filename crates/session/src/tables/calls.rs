//! The costs of calls: as tables, as flame graphs, and in other tools' formats.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use analysis::call_tree::{
    CallChains, CallCosts, CallProfile, CallRows, CallSelection, WithCallTree, find_event,
};
use analysis::export::{collapsed, pprof, write_callgrind};
use analysis::models::InstructionResults;
use anyhow::{Context, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use report::{FileForm, FlameGraph};
use table::Column;
use trace::Trace;

use super::result_rows::ResultRows;
use crate::console::{Console, check_output_or};
use crate::simulation::Simulated;

/// The calls whose costs are shown.
#[derive(Clone, Debug)]
pub struct CallsRequest {
    /// Which of them.
    pub selection: CallSelection,
    /// The heading of the column that a flame graph or collapsed stacks show.
    pub chart: Option<String>,
    /// The collapsed stacks of an earlier run, with which a flame graph compares.
    pub against: Option<PathBuf>,
}

/// The form of an output of call chains, and its file.
pub type CallTreeOutput<'o> = (ChainForm, &'o Path);

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

/// The forms that only call chains have.
const CHAIN_FORMS: [FileForm; 4] = [FileForm::Svg, FileForm::Collapsed, FileForm::Pprof, FileForm::Callgrind];

/// Checks the output of a command that writes tables, or else the call tree in the forms of call chains.
pub fn check_chain_output(console: &dyn Console, several: bool, is_call_tree: bool) -> anyhow::Result<()> {
    match console.form() {
        Some((form, path)) if CHAIN_FORMS.contains(&form) && !is_call_tree => {
            bail!("{} shows the call tree: give --by call-tree", path.display())
        }
        _ => Ok(check_output_or(console, several, &CHAIN_FORMS)?),
    }
}

impl CallsRequest {
    /// Whether --function and --threshold can select from these rows.
    pub fn check_rows(&self, rows: Option<ResultRows>) -> anyhow::Result<()> {
        let selects =
            matches!(rows, Some(ResultRows::Calls(CallRows::Function | CallRows::Caller | CallRows::Callee)));
        if !self.selection.functions.is_empty() && !selects {
            bail!("--function selects rows of --by caller, --by callee, and --by function --inclusive");
        }
        if self.selection.threshold.is_some() && rows != Some(ResultRows::Calls(CallRows::Tree)) {
            bail!("--threshold leaves out rows of --by call-tree");
        }
        Ok(())
    }

    /// The form that the name of the output asks for, if it is one of call chains. [`check_chain_output`] has checked it.
    pub fn chain_form<'o>(
        &self,
        console: &'o dyn Console,
        columns: &[Column],
        is_call_tree: bool,
    ) -> anyhow::Result<Option<CallTreeOutput<'o>>> {
        let form = console.form().filter(|_| is_call_tree);
        let form = form.and_then(|(form, path)| Some((ChainForm::of(form)?, path)));
        let is_picture = matches!(form, Some((ChainForm::Svg | ChainForm::Html, _)));
        if form.is_none() && self.chart.is_some() {
            bail!(
                "--chart is for flame graphs, collapsed stacks and pprof: give -o NAME.svg, NAME.html, NAME.folded or NAME.pb.gz"
            );
        }
        if !is_picture && self.against.is_some() {
            bail!("--against is for flame graphs: give -o NAME.svg or NAME.html");
        }
        if form.is_some() && (!self.selection.functions.is_empty() || self.selection.threshold.is_some()) {
            bail!(
                "--function and --threshold select rows of tables: leave them out, as flame graphs, collapsed stacks and profiles have all calls"
            );
        }
        self.event(columns)?;
        self.against.as_deref().map_or(Ok(()), |earlier| read_chains(earlier).map(drop))?;
        Ok(form)
    }

    /// The index of the event among columns, if one is chosen.
    pub(super) fn event(&self, columns: &[Column]) -> anyhow::Result<Option<usize>> {
        Ok(find_event(columns, self.chart.as_deref())?)
    }

    /// Writes what the name of the output asks for.
    pub fn write_chains<S, M, R: InstructionResults>(
        &self,
        simulated: &Simulated<S>,
        tree: &WithCallTree<M>,
        results: &R,
        (form, path): CallTreeOutput,
    ) -> anyhow::Result<()> {
        simulated.protect();
        if form.is_profile() {
            let event = self.event(&results.columns())?;
            let profile = CallProfile::new(tree, results, event);
            return form.write_profile(&simulated.trace, profile, path);
        }
        let chains = CallCosts::new(tree, results).chains(self.chart.as_deref())?;
        self.draw(simulated, R::WHAT, chains, (form, path))
    }

    /// Writes chains of what was counted as a flame graph or as collapsed stacks.
    pub(super) fn draw<M>(
        &self,
        simulated: &Simulated<M>,
        what: &str,
        mut chains: CallChains,
        (form, path): CallTreeOutput,
    ) -> anyhow::Result<()> {
        if let Some(earlier) = &self.against {
            chains.compare(&read_chains(earlier)?);
        }
        let title = format!("{what} of {}, by chain of calls", simulated.program());
        let graph = FlameGraph { title: &title, chains: &chains };
        report::write_file(path, |out| match form {
            ChainForm::Svg => Ok(graph.write_svg(out)?),
            ChainForm::Html => Ok(graph.write_html(out)?),
            _ => Ok(collapsed::write(&chains, out)?),
        })?;
        Ok(())
    }
}

/// Reads an earlier run's collapsed stacks.
fn read_chains(path: &Path) -> anyhow::Result<CallChains> {
    let read = || -> anyhow::Result<CallChains> {
        output_files::protect(path);
        Ok(collapsed::read(&mut BufReader::new(File::open(path)?))?)
    };
    read().with_context(|| path.display().to_string())
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

    /// Whether it has the costs of single instructions.
    pub(super) fn is_profile(self) -> bool {
        matches!(self, ChainForm::Pprof | ChainForm::Callgrind)
    }

    /// Writes what was counted for KCachegrind or, otherwise, for pprof.
    pub(super) fn write_profile(
        self,
        trace: &Trace,
        profile: CallProfile,
        path: &Path,
    ) -> anyhow::Result<()> {
        report::write_file(path, |out| match self {
            ChainForm::Callgrind => Ok(write_callgrind(profile, trace, out)?),
            _ => {
                let mut out = GzEncoder::new(out, Compression::default());
                pprof::write(profile, trace, &mut out)?;
                Ok(out.finish().map(drop)?)
            }
        })?;
        Ok(())
    }
}
