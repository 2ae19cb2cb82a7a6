//! `pathlength sharing`: cache lines that move between processors.

use std::process::ExitCode;

use analysis::models::Rows;
use analysis::replay::ReplayOrder;
use analysis::sharing::{self, SharingAnalysis};
use analysis::table::Table;
use anyhow::bail;
use machine::CoherentMemory;
use trace::Trace;
use trace::interleave::Schedule;

use super::recorded::RecordedInput;
use super::selected_machines::SelectedMachines;
use super::simulate::{Simulated, replay_in_order};
use super::until;
use crate::arguments::{SharingOptions, SharingRows};

/// Cache lines in the short table.
const LINES: usize = 10;

/// Simulates the coherent caches of several processors on a trace or a program, and writes the tables.
pub fn run(options: &SharingOptions) -> anyhow::Result<ExitCode> {
    let (input, output) = (&options.input, &options.output);
    output.check(options.by.is_none())?;
    let names = std::slice::from_ref(&options.machine);
    let machines = SelectedMachines::find(names, &options.settings)?;
    let machine = &machines.machines[0];
    let Some(coherence) = &machine.coherence else {
        let name = &options.machine;
        bail!(
            "the machine {name} has one processor: add coherence.protocol = \"mesi\" to its file, or --set coherence.protocol=mesi"
        );
    };
    let RecordedInput { trace, selection, ending } = RecordedInput::new(input, output, &machines.machines)?;
    let most = CoherentMemory::MOST_PROCESSORS as u32;
    let threads = u32::try_from(trace.streams().len()).unwrap_or(most);
    let processors = options.processors.unwrap_or(threads.clamp(1, most));
    let objects = trace.mapped_objects().clone();
    let model = SharingAnalysis::new(machine, coherence, processors, objects);
    let SharingOptions { quantum, time_slice, .. } = *options;
    let schedule = Schedule { processors, quantum, assignment: options.assign.into(), time_slice };
    let order = ReplayOrder::Interleaved(schedule);
    let mut simulated = replay_in_order(input, trace, &selection, order, model)?;
    simulated.notes.extend(ending.as_ref().and_then(until));
    simulated.ending = ending;
    simulated.model.end();
    simulated.notes.extend(machines.note());
    write(options, &simulated)?;
    simulated.finish(input)
}

fn write(options: &SharingOptions, simulated: &Simulated<SharingAnalysis>) -> anyhow::Result<()> {
    let Some(by) = options.by else {
        let mut lines = [sharing::by_cache_line(&simulated.model, &simulated.trace)];
        let sorted = options.rows.sort(&mut lines);
        options.rows.shorten(&mut lines[0], Some(LINES), "--by cache-line shows all lines");
        let [lines] = lines;
        simulated.write(
            vec![sharing::summary(&simulated.model), lines],
            &Default::default(),
            &options.output,
        )?;
        return sorted;
    };
    simulated.write(vec![table(by, &simulated.model, &simulated.trace)], &options.rows, &options.output)
}

fn table(by: SharingRows, model: &SharingAnalysis, trace: &Trace) -> Table {
    match by {
        SharingRows::CacheLine => sharing::by_cache_line(model, trace),
        SharingRows::Data => sharing::by_data(model, trace),
        SharingRows::Thread => sharing::by_thread(model, trace),
        SharingRows::Function => sharing::by_code(model, Rows::Function, trace),
        SharingRows::Line => sharing::by_code(model, Rows::Line, trace),
        SharingRows::Instruction => sharing::by_code(model, Rows::Instruction, trace),
        SharingRows::State => sharing::state_changes(model),
    }
}
