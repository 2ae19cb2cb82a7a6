//! Processors with coherent caches in time.

use std::process::ExitCode;

use analysis::models::{UnitClasses, swept_rows};
use analysis::multiprocessor;
use anyhow::bail;
use machine::{Bus, BusProcessor, Coherence, Machine, Multiprocessor, SamplingPlan};
use table::Table;
use trace::interleave::Schedule;

use super::{SharingRequest, SharingRows};
use crate::simulation::RecordedInput;

/// A bus and its processors.
pub(super) type TimedBus<'m> = (&'m Bus, &'m BusProcessor);

impl SharingRequest<'_> {
    /// The bus and the processor of a machine, for a simulation in time. An error if the machine or the options do not allow one.
    pub(super) fn timed_bus<'m>(&self, coherence: &'m Coherence) -> anyhow::Result<TimedBus<'m>> {
        if self.rows.is_some_and(|rows| !rows.is_of_time() && rows != SharingRows::Class) {
            bail!(
                "in time, rows are processors, transactions, requests and classes: leave out --time, --scaling and --sample, or --by"
            );
        }
        if self.sample.is_some() && self.rows.is_some_and(|rows| rows != SharingRows::Class) {
            bail!("--sample estimates the cycles of everything and of classes: --by class, or no --by");
        }
        let without_time = [
            (self.is_checked, "--check"),
            (!self.device_reads.is_empty(), "--device-reads"),
            (!self.device_writes.is_empty(), "--device-writes"),
        ];
        if let Some((_, option)) = without_time.iter().find(|(is_given, _)| *is_given) {
            bail!(
                "{option} is for caches without time: leave out --time, --scaling, --sample, and rows of time"
            );
        }
        match (&coherence.bus, &coherence.processor) {
            (Some(bus), Some(processor)) => Ok((bus, processor)),
            _ => bail!(
                "the machine {} has no timed bus: add [coherence.bus] and [coherence.processor] to its file, or use pentium-pro",
                self.simulation.machines.names[0]
            ),
        }
    }

    /// Simulates the processors of a machine in time, as often as there are numbers of processors, and writes the tables.
    pub(super) fn write_timed(
        &self,
        recorded: RecordedInput,
        schedule: Schedule,
        has_classes: bool,
        (machine, coherence, (bus, processor)): (&Machine, &Coherence, TimedBus),
    ) -> anyhow::Result<ExitCode> {
        let simulation = self.simulation;
        let model = |processors: u32| {
            let model = Multiprocessor::new(machine, coherence, bus, processor, processors as usize);
            match self.sample {
                Some(period) => model.with_sampling(SamplingPlan::with_period(period)),
                None => model,
            }
        };
        let one = [schedule.processors];
        let counts = if self.scaling.is_empty() { &one } else { self.scaling };
        let (simulated, models) = simulation.replay_in_time(recorded, schedule, counts, model)?;
        let classes = UnitClasses::of_trace(&simulated.trace);
        if has_classes {
            simulated.check_classes(simulation, &classes)?;
        }
        let rows = |rows: SharingRows| {
            self.of_each(&models, |model| match rows {
                SharingRows::Processor => multiprocessor::by_processor(model),
                SharingRows::Class => multiprocessor::by_class(model, &classes),
                SharingRows::Request => multiprocessor::requests(model),
                _ => multiprocessor::transactions(model),
            })
        };
        let mut tables = match self.rows {
            Some(of) => vec![rows(of)],
            None if self.sample.is_some() => {
                vec![self.of_each(&models, |model| multiprocessor::sampled(model).expect("it is a sample"))]
            }
            None if !self.scaling.is_empty() => vec![multiprocessor::scaling(&models)],
            None => [multiprocessor::summary, multiprocessor::by_processor, multiprocessor::transactions]
                .map(|table| table(&models[0]))
                .into(),
        };
        if has_classes && self.rows.is_none() {
            tables.push(rows(SharingRows::Class));
        }
        simulated.write(simulation, tables)
    }

    /// A table of the processors; of several numbers of them, the rows of each behind it.
    fn of_each(&self, models: &[Multiprocessor], table: impl Fn(&Multiprocessor) -> Table) -> Table {
        if self.scaling.is_empty() {
            return table(&models[0]);
        }
        let tables = models.iter().map(|model| (vec![model.processors().len().to_string()], table(model)));
        swept_rows(&["processors".into()], tables.collect())
    }
}
