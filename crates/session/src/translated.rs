//! Programs of the host's own instruction set, which the translator runs.

use engine::Configuration;
use events::ProcessEnd;
use translator::{TranslatedProgram, is_translatable};

use crate::measure::{Counted, Ending, Error};

/// Whether the translator runs a program, and not the engine.
pub fn is_translated(configuration: &Configuration) -> bool {
    is_translatable(&configuration.program)
}

/// Runs a program on the translator, and counts what it executes.
pub fn count(configuration: &Configuration) -> Result<Counted, Error> {
    let run = translator::count(&TranslatedProgram {
        path: configuration.program.clone(),
        arguments: configuration.arguments.clone(),
        environment: configuration.environment.clone(),
    })?;
    let ending = match run.end {
        ProcessEnd::Exited(status) => Ending::Exited(status),
        ProcessEnd::Killed(signal) => Ending::of_host_signal(signal),
    };
    Ok(Counted { counts: run.counts, measurement: None, ending, unaligned: 0, forked: run.forked })
}

/// The processor of a run, on which its counts depend.
pub fn processor(configuration: &Configuration) -> String {
    match is_translated(configuration) {
        true => translator::processor_level().into(),
        false => configuration.model.to_string(),
    }
}
