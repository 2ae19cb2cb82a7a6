//! The units of work of a class, and the executions of blocks in them.

use std::collections::BTreeMap;

use events::{BlockId, Unit};
use serde::{Deserialize, Serialize};

/// The units of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UnitClass {
    /// Its name: the function whose calls these are.
    pub name: String,
    /// Instructions of each unit.
    lengths: Vec<u64>,
    /// Executions of blocks in all of them.
    executions: BTreeMap<BlockId, u64>,
}

impl UnitClass {
    /// Without units.
    pub fn new(name: &str) -> UnitClass {
        UnitClass { name: name.into(), ..UnitClass::default() }
    }

    /// With units of these lengths, in all of which blocks were executed so often.
    pub fn of(name: &str, lengths: Vec<u64>, executions: BTreeMap<BlockId, u64>) -> UnitClass {
        UnitClass { name: name.into(), lengths, executions }
    }

    /// Adds a unit.
    pub fn add(&mut self, unit: &Unit) {
        self.lengths.push(unit.instructions);
        for &(block, executions) in &unit.blocks {
            *self.executions.entry(block).or_default() += executions;
        }
    }

    /// How many units there were.
    pub fn units(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Instructions of each unit.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Executions of blocks in all of them.
    pub fn executions(&self) -> &BTreeMap<BlockId, u64> {
        &self.executions
    }

    /// Instructions of all units.
    pub fn instructions(&self) -> u64 {
        self.lengths.iter().sum()
    }
}
