//! The processors that programs of all guests run on.

use std::fmt;
use std::str::FromStr;

use crate::{CpuModel, RiscvExtensions, UnknownCpu, UnknownExtensions};

/// A processor for programs of each guest: which instructions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// For programs of Alpha.
    pub alpha: CpuModel,
    /// For programs of RISC-V.
    pub riscv: RiscvExtensions,
}

/// Every instruction that is implemented.
impl Default for Processors {
    fn default() -> Processors {
        Processors { alpha: CpuModel::Ev67, riscv: RiscvExtensions::ALL }
    }
}

impl From<CpuModel> for Processors {
    fn from(alpha: CpuModel) -> Processors {
        Processors { alpha, ..Processors::default() }
    }
}

/// A text that names no processor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownProcessor {
    /// Of Alpha.
    #[error(transparent)]
    Alpha(#[from] UnknownCpu),
    /// Of RISC-V.
    #[error(transparent)]
    Riscv(#[from] UnknownExtensions),
}

/// The name of one processor, for programs of its guest; those of the other have every instruction.
impl FromStr for Processors {
    type Err = UnknownProcessor;

    fn from_str(text: &str) -> Result<Processors, UnknownProcessor> {
        let all = Processors::default();
        if text.starts_with("rv") {
            Ok(Processors { riscv: text.parse()?, ..all })
        } else {
            Ok(Processors { alpha: text.parse()?, ..all })
        }
    }
}

/// The name from which it is parsed.
impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.riscv == RiscvExtensions::ALL { self.alpha.fmt(f) } else { self.riscv.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_one_guest() {
        for name in ["ev5", "ev67", "rv64gc", "rv64gc_zba"] {
            assert_eq!(name.parse::<Processors>().unwrap().to_string(), name);
        }
        let alpha = "ev56".parse::<Processors>().unwrap();
        assert_eq!((alpha.alpha, alpha.riscv), (CpuModel::Ev56, RiscvExtensions::ALL));
        assert!(matches!("ev7".parse::<Processors>(), Err(UnknownProcessor::Alpha(_))));
        assert!(matches!("rv64gc_zxy".parse::<Processors>(), Err(UnknownProcessor::Riscv(_))));
    }
}
