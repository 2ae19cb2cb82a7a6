//! Instruction sets in serialized data: by their names. For `#[serde(with = "isa::by_name")]`.

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::{INSTRUCTION_SETS, InstructionSet};

/// Writes the name.
pub fn serialize<S: Serializer>(set: &&'static dyn InstructionSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(set.name())
}

/// Reads the name of one of [`INSTRUCTION_SETS`].
pub fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<&'static dyn InstructionSet, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = INSTRUCTION_SETS.into_iter().find(|set| set.name() == name);
    found.ok_or_else(|| de::Error::custom(format!("an instruction set '{name}', which is not known")))
}
