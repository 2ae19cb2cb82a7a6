//! Models observe all processes of a program.

use std::collections::HashMap;

use engine::ProcessState;
use machine::{Model, WarmUp};

use super::{PlannedRun, Simulated, Simulation, is_parallel};
use crate::attached_program::AttachedProgram;
use crate::process_tree::{self, ObservedProcess};
use crate::program::until;

/// The programs and ends of observed processes, by the numbers of their models.
pub type KnownProcesses = HashMap<u32, ObservedProcess>;

/// The note on models of processes.
pub const OWN_PROCESSORS: &str =
    "Each process has caches and predictors of its own, as if it had a processor to itself.";

impl Simulation<'_> {
    pub(super) fn observe_processes<M: Model>(
        &self,
        (configuration, plan): PlannedRun,
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let model = self.with_warm_up(model, &plan);
        let begin = |warm_up: &mut WarmUp<M>| {
            if is_parallel(self.host_processors) {
                // Without threads the model works on this one.
                let _ = warm_up.model.use_worker_thread();
            }
        };
        let attached = self.input.attached();
        let observed = match attached {
            Some(attached) => process_tree::observe_running(attached, &plan, model, begin)?,
            None => {
                let _progress = self.console.begin_run(false);
                process_tree::observe(&configuration, &plan, model, begin)?
            }
        };
        let part = self.note(&observed.trace);
        let mut notes: Vec<String> = observed.ending.as_ref().and_then(until).into_iter().collect();
        notes.extend(process_notes(attached, &observed.processes, observed.left_out));
        let model = self.without_warm_up(observed.model)?;
        let (trace, ending) = (observed.trace, observed.ending);
        let processes = observed.processes.into_iter().map(|process| (process.process, process)).collect();
        Ok(Simulated { model, trace, part, notes, processes, ending, is_whole: true })
    }
}

/// The notes on the processes for readers: of a program that ran already, on processes that still run, and on those that are missing.
pub fn process_notes(
    attached: Option<&AttachedProgram>,
    processes: &[ObservedProcess],
    left_out: u64,
) -> impl Iterator<Item = String> {
    let ran = attached.map(|attached| format!("Process {} was observed while it ran.", attached.process));
    let still_run = processes.iter().any(|process| process.state == ProcessState::Running);
    let until = still_run.then(|| "Processes that still run were observed until then.".to_string());
    let left_out = (left_out > 0)
        .then(|| format!("{left_out} processes are missing, as too many were observed at the same time."));
    ran.into_iter().chain(until).chain(left_out)
}
