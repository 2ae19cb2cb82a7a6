//! The plan of a recording.

use std::path::PathBuf;
use std::time::SystemTime;

use events::LoadedImage;
use serde::{Deserialize, Serialize};
use trace::Header;

use crate::objects::{ObjectRule, StructureRule};
use crate::platform::guest_of_program;
use crate::program_location::ProgramLocation;
use crate::unit_class::ClassRule;

/// The part of a program that is recorded; by default all of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// Recording begins when control first reaches this location; a number counts the instructions of a thread.
    pub from: Option<ProgramLocation>,
    /// Recording ends when control next reaches this location; a number counts the recorded instructions of a thread.
    pub until: Option<ProgramLocation>,
    /// Record only calls of a function.
    pub unit: Option<UnitPlan>,
    /// Report units of work with their classes, to a consumer or in the trace: those of `unit`, by these rules. Without `unit`,
    /// everything is recorded, and units are calls of the functions that are named here.
    pub classes: Option<ClassPlan>,
    /// Also record the values that instructions write, store and test. Recording then slows the program down some ten
    /// times.
    pub values: bool,
    /// Also record allocation and release of heap blocks, from the start of the program on.
    pub heap: bool,
    /// Also report, to a consumer, the objects that calls are for.
    pub objects: Vec<ObjectRule>,
    /// With `heap`, of a program that runs already: where to find the blocks that it has allocated before.
    pub structures: Vec<StructureRule>,
}

impl Plan {
    /// The header of a trace recorded by this process from now on, without the environment.
    pub fn header(&self, program: PathBuf, arguments: Vec<String>, model: isa::Processors) -> Header {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let guest = guest_of_program(&program, None);
        Header {
            program,
            arguments,
            instruction_set: guest.instruction_set().name().into(),
            cpu: guest.processor_name(model),
            has_values: self.values,
            has_heap: self.heap,
            palcode: None,
            unit: self.unit.as_ref().map(|unit| unit.function.clone()),
            environment: None,
            time: time.map_or(0, |time| time.as_secs()),
            process: std::process::id(),
        }
    }
}

/// A symbol of a plan that no image of the program has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The unit's function.
    Function(String),
    /// The symbol at which recording begins or ends.
    Location(ProgramLocation),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (kind, name): (_, &dyn std::fmt::Display) = match self {
            Missing::Function(name) => ("function", name),
            Missing::Location(location) => ("symbol", location),
        };
        write!(f, "no image of the program has a {kind} '{name}'")
    }
}

/// Units of work whose classes are wanted. One that is left by other means than its end is one, too, as where units are counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassPlan {
    /// The functions of units, unless the plan has a function: [`UnitOfWork::functions`](crate::UnitOfWork::functions).
    pub functions: Vec<String>,
    /// The rules that give a unit its class. A unit without one is of the class of its function.
    pub rules: Vec<ClassRule>,
}

/// The calls of a function to record, each with everything that it calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnitPlan {
    /// The function: `name` or `image!name`.
    pub function: String,
    /// Number of calls to skip first.
    pub skip: u64,
    /// Number of calls to record then; all if None.
    pub units: Option<u64>,
}

impl UnitPlan {
    /// Whether the unit with this number is to be recorded.
    pub fn wants(&self, number: u64) -> bool {
        number >= self.skip && !self.is_over(number)
    }

    /// Whether neither this unit nor a later one is to be recorded.
    pub fn is_over(&self, number: u64) -> bool {
        self.units.is_some_and(|units| number >= self.skip.saturating_add(units))
    }
}

/// The addresses of a plan's locations, as far as their images are mapped.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanAddresses {
    pub(super) from: Vec<u64>,
    pub(super) until: Vec<u64>,
    /// These, and all other addresses at which blocks must begin.
    pub(super) all: Vec<u64>,
}

impl PlanAddresses {
    pub(super) fn new(plan: &Plan) -> PlanAddresses {
        let mut addresses = PlanAddresses::default();
        addresses.add(plan, |location| location.address().into_iter().collect());
        addresses
    }

    /// An image was mapped.
    pub(super) fn mapped(&mut self, plan: &Plan, image: &LoadedImage, file: &image::Image) {
        self.add(plan, |location| location.addresses_in(image, file));
    }

    fn add(&mut self, plan: &Plan, find: impl Fn(&ProgramLocation) -> Vec<u64>) {
        let find = |location: &Option<ProgramLocation>| location.as_ref().map(&find).unwrap_or_default();
        let (from, until) = (find(&plan.from), find(&plan.until));
        self.all.extend(from.iter().chain(&until));
        self.from.extend(from);
        self.until.extend(until);
    }
}
