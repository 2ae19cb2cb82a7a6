//! The machines that the options name, with their settings.

use analysis::models::SummedOverProcesses;
use anyhow::Context;
use machine::{Machine, MachineSetting, SamplingPlan, TimingModel, TimingModelError};

/// Machines, with their names or files.
#[derive(Clone, Debug, Default)]
pub struct SelectedMachines {
    /// As the options name them.
    pub names: Vec<String>,
    /// In the same order.
    pub machines: Vec<Machine>,
    /// The fields that were changed.
    settings: Vec<MachineSetting>,
}

impl SelectedMachines {
    /// The machines with these names, or in these files, with changes.
    pub fn find<'n>(
        names: impl IntoIterator<Item = &'n (impl AsRef<str> + 'n)>,
        settings: &[MachineSetting],
    ) -> anyhow::Result<SelectedMachines> {
        let names: Vec<String> = names.into_iter().map(|name| name.as_ref().into()).collect();
        let find =
            |name: &String| Machine::find_with(name, settings).with_context(|| format!("the machine {name}"));
        let machines = names.iter().map(find).collect::<anyhow::Result<_>>()?;
        Ok(SelectedMachines { names, machines, settings: settings.to_vec() })
    }

    /// The processor of the newest of the machines.
    pub fn cpu(&self) -> Option<isa::CpuModel> {
        self.machines.iter().filter_map(|machine| machine.processor.cpu.as_deref()?.parse().ok()).max()
    }

    /// Results on the machines, with the machines' names. Results on no machine have empty names.
    pub fn named<'a, R>(&'a self, results: &'a [R]) -> Vec<(&'a str, &'a R)> {
        self.names.iter().map(String::as_str).chain(std::iter::repeat("")).zip(results).collect()
    }

    /// The same with results that are summed up.
    pub fn named_sums<'a, M>(
        &'a self,
        sums: Vec<SummedOverProcesses<'a, M>>,
    ) -> Vec<(&'a str, SummedOverProcesses<'a, M>)> {
        self.names.iter().map(String::as_str).chain(std::iter::repeat("")).zip(sums).collect()
    }

    /// The note on the changes.
    pub fn note(&self) -> Option<String> {
        let settings: Vec<String> = self.settings.iter().map(MachineSetting::to_string).collect();
        let changed = !settings.is_empty() && !self.names.is_empty();
        changed.then(|| format!("{} with {}.", self.names.join(", "), settings.join(", ")))
    }

    /// The same names and changes with other machines.
    pub fn with_machines(&self, machines: Vec<Machine>) -> SelectedMachines {
        SelectedMachines { machines, ..self.clone() }
    }
}

/// A timing model of a machine, of a sample with windows of this period if one is given.
pub fn timing_model(machine: &Machine, period: Option<u64>) -> Result<TimingModel, TimingModelError> {
    let model = TimingModel::new(machine)?;
    Ok(match period {
        Some(period) => model.with_sampling(SamplingPlan::with_period(period)),
        None => model,
    })
}

/// Makes timing models of machines, of a sample with windows of this period if one is given. Machines without a pipeline are
/// reported at once.
pub fn timing_models(
    machines: &[Machine],
    period: Option<u64>,
) -> Result<impl Fn() -> Vec<TimingModel> + Clone + Send + 'static, TimingModelError> {
    let machines = machines.to_vec();
    machines.iter().try_for_each(|machine| timing_model(machine, period).map(drop))?;
    let make = move |machine: &Machine| timing_model(machine, period).expect("it was possible before");
    Ok(move || machines.iter().map(make).collect())
}
