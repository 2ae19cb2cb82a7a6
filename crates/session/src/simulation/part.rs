//! The part of an execution that is recorded or simulated.

use analysis::replay::Selection;
use anyhow::bail;
use engine::{ClassPlan, ClassRule, Plan, ProgramLocation, UnitPlan};
use machine::UnitWindow;
use trace::{ExecutionMode, Trace};

use super::{Needs, Simulation};

/// The error of classes without units of work.
const NO_FUNCTION: &str = "classes are those of units of work: name their function with --unit FUNCTION";

/// The part of a program's run, as users name it.
#[derive(Clone, Debug, Default)]
pub struct PlannedPart {
    /// Where it begins.
    pub from: Option<ProgramLocation>,
    /// Where it ends.
    pub until: Option<ProgramLocation>,
    /// The function of the units of work; several are classes of units.
    pub unit: Vec<String>,
    /// Units to skip first.
    pub skip: u64,
    /// The number of units after those.
    pub units: Option<u64>,
}

impl PlannedPart {
    /// The plan of a recording, without values.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        let unit = match &self.unit[..] {
            [] if self.counts_units() => {
                bail!("--skip and --units count calls of a function: name it with --unit FUNCTION")
            }
            [] => None,
            [function] => Some(UnitPlan { function: function.clone(), skip: self.skip, units: self.units }),
            _ => {
                bail!(
                    "several functions are classes of units, which are in traces and tables of count, caches, time, calls, mrc, faults, \
                     strides, sharing and objects: here, name one"
                )
            }
        };
        Ok(Plan { from: self.from.clone(), until: self.until.clone(), unit, ..Plan::default() })
    }

    /// The plan of a recording whose units of work have classes, by these rules or by their functions; that of [`PlannedPart::plan`] if
    /// there are neither several functions nor rules.
    pub fn plan_with_classes(&self, rules: &[ClassRule]) -> anyhow::Result<Plan> {
        if rules.is_empty() && self.unit.len() < 2 {
            return self.plan();
        }
        if self.unit.is_empty() {
            bail!(NO_FUNCTION);
        }
        if self.counts_units() {
            bail!("with classes, all of the program is recorded: leave out --skip and --units");
        }
        self.plan_of_classes(rules)
    }

    /// The plan of a recording of everything, whose units have classes.
    pub(super) fn plan_of_classes(&self, rules: &[ClassRule]) -> anyhow::Result<Plan> {
        let whole = PlannedPart { unit: Vec::new(), skip: 0, units: None, ..self.clone() };
        let classes = ClassPlan { functions: self.unit.clone(), rules: rules.to_vec() };
        Ok(Plan { classes: Some(classes), ..whole.plan()? })
    }

    /// Whether units of work are selected by their number.
    pub fn counts_units(&self) -> bool {
        self.skip > 0 || self.units.is_some()
    }
}

/// The part that is simulated, of a program's run or of a trace.
#[derive(Clone, Debug, Default)]
pub struct SimulatedPart {
    /// The part of a run, and the units of a trace.
    pub planned: PlannedPart,
    /// Units that warm the machine up, and are not counted.
    pub warm_up: u64,
    /// Of a trace, the process and thread of each stream.
    pub threads: Vec<(u32, Option<u32>)>,
    /// Of a trace of a whole system, the modes.
    pub modes: Vec<ExecutionMode>,
}

impl SimulatedPart {
    /// The part as a window of everything that is executed.
    pub(super) fn window(&self) -> UnitWindow {
        UnitWindow { skipped: self.planned.skip, warm_up: self.warm_up, units: self.planned.units }
    }

    /// The number of units to simulate: warm-up units and counted ones.
    fn simulated_units(&self) -> Option<u64> {
        self.planned.units.map(|units| units.saturating_add(self.warm_up))
    }

    /// The plan of the run of a program, with warm-up units.
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
        let mut plan = self.planned.plan()?;
        if let Some(unit) = &mut plan.unit {
            unit.units = self.simulated_units();
        }
        Ok(plan)
    }
}

impl Simulation<'_> {
    /// Whether options that need units of work have them; and rows, if they are units.
    pub(super) fn check_units(&self, needs_units: bool) -> anyhow::Result<()> {
        if self.part.planned.unit.is_empty() {
            if needs_units {
                bail!("--by unit needs a unit of work: name its function with --unit FUNCTION");
            }
            if self.part.warm_up > 0 {
                bail!("--warm-up counts calls of a function: name it with --unit FUNCTION");
            }
        }
        Ok(())
    }

    /// Whether the options give units of work classes: by rules, or by several functions.
    pub fn asks_for_classes(&self) -> bool {
        !self.class_rules.is_empty() || self.part.planned.unit.len() > 1
    }

    /// Whether units of work have classes: by the options, or as a trace was recorded.
    pub fn has_classes(&self) -> bool {
        self.asks_for_classes() || self.is_recorded_with_classes
    }

    /// Whether the options of classes fit together, and the input has some.
    pub fn check_classes(&self) -> anyhow::Result<()> {
        let (planned, file) = (&self.part.planned, &self.input);
        if file.is_trace() {
            if !planned.unit.is_empty() || !self.class_rules.is_empty() {
                bail!(
                    "{file} is a trace, whose classes are those of its recording: leave out --unit and --class"
                );
            }
            if !self.is_recorded_with_classes {
                bail!(
                    "{file} is a trace without classes of units: record it with several --unit, or with --class"
                );
            }
        } else if planned.unit.is_empty() {
            bail!(NO_FUNCTION);
        }
        Ok(())
    }

    /// The part of a trace to simulate. The options have the same meaning as for programs.
    pub(super) fn selection(&self, trace: &Trace, needs: Needs) -> anyhow::Result<Selection> {
        let needs_units = needs.units && !needs.classes;
        let (part, plan, file) = (&self.part, &self.part.planned, &self.input);
        let unit = trace.header().unit.as_ref();
        if let Some(function) = plan.unit.iter().find(|function| Some(*function) != unit) {
            match unit {
                Some(unit) => bail!("the units of work in {file} are calls of '{unit}', not of '{function}'"),
                None => bail!("{file} has no units of work: record it with --unit {function}"),
            }
        }
        // The function of a trace's units is named in the trace.
        let chooses_units = !plan.unit.is_empty() || plan.counts_units() || part.warm_up > 0;
        let has_classes = !trace.unit_classes().is_empty();
        if needs_units && has_classes {
            bail!(
                "the units of work in {file} have classes: see those of each by count, or by caches, time or calls --by unit"
            );
        }
        if unit.is_none() && !has_classes && (chooses_units || needs_units) {
            bail!("{file} has no units of work: record it with --unit FUNCTION");
        }
        // Of a trace with classes everything is read, and the model observes a window of it.
        let chooses_units = chooses_units && !has_classes;
        let first = trace.first_unit().unwrap_or(0);
        let first = first.saturating_add(plan.skip);
        if chooses_units && matches!(trace.unit(first), Ok(None)) {
            bail!("{file} has no unit of work {first}: leave out fewer than {} with --skip", plan.skip);
        }
        let last =
            part.simulated_units().map_or(u64::MAX, |units| first.saturating_add(units).saturating_sub(1));
        Ok(Selection {
            threads: part.threads.clone(),
            modes: part.modes.clone(),
            units: chooses_units.then_some(first..=last),
            ..Selection::default()
        })
    }
}
