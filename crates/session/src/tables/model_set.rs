//! Models of machines, one for all that is executed or one for each process, with the same results.

use std::collections::BTreeMap;

use analysis::models::{InstructionResults, SummedOverProcesses};
use anyhow::bail;
use machine::{MergeableModel, Model, PerProcess};

/// The error of a simulation without results.
pub const NOTHING_SIMULATED: &str = "no process executed anything that was to be simulated";

/// Models that observe an execution: of each machine one, or one for each process.
pub trait ModelSet: Model + 'static {
    /// The model of a machine.
    type Model: InstructionResults + MergeableModel;

    /// Whether each process has models of its own.
    const IS_PER_PROCESS: bool;

    /// The results on each machine. An error if nothing was simulated.
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, Self::Model>>>;

    /// The totals of each process by its number, those of all machines one after another; none if processes share models.
    fn process_totals(&self) -> BTreeMap<u32, Vec<u64>>;
}

impl<M: InstructionResults + MergeableModel + 'static> ModelSet for Vec<M> {
    type Model = M;
    const IS_PER_PROCESS: bool = false;

    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        Ok(self.iter().map(SummedOverProcesses::from).collect())
    }

    fn process_totals(&self) -> BTreeMap<u32, Vec<u64>> {
        BTreeMap::new()
    }
}

impl<M: InstructionResults + MergeableModel + 'static> ModelSet for PerProcess<Vec<M>> {
    type Model = M;
    const IS_PER_PROCESS: bool = true;

    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        let Some(first) = self.all_models().next() else { bail!(NOTHING_SIMULATED) };
        let sum =
            |machine: usize| SummedOverProcesses(self.all_models().map(|models| &models[machine]).collect());
        Ok((0..first.len()).map(sum).collect())
    }

    fn process_totals(&self) -> BTreeMap<u32, Vec<u64>> {
        self.totals()
    }
}
