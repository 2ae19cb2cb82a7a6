//! The schemes by which the directions of conditional branches are predicted, and their names in machines' files.

use serde::{Deserialize, Deserializer};

use crate::description::choice::{Choice, by_name};

/// How the direction of conditional branches is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictorScheme {
    /// Backward branches are taken, forward ones are not.
    Static,
    /// Saturating counters, found by the branch's address but for the two lowest bits (bimodal).
    Counters,
    /// Saturating counters, found by the address and the directions of the last branches.
    Gshare,
    /// Saturating counters, found by the last directions of all branches (GAs) or of the branch (PAs), and by its address.
    TwoLevel,
    /// One predictor by the branch's own history, one by that of all branches, and a choice between them.
    Tournament,
    /// Tables with tags for histories of several lengths.
    Tage,
}

impl Choice for PredictorScheme {
    const KIND: &'static str = "predictor scheme";
    const NAMES: &'static [(&'static str, PredictorScheme)] = &[
        ("static", PredictorScheme::Static),
        ("bimodal", PredictorScheme::Counters),
        ("counters", PredictorScheme::Counters),
        ("gshare", PredictorScheme::Gshare),
        ("two-level", PredictorScheme::TwoLevel),
        ("tournament", PredictorScheme::Tournament),
        ("tage", PredictorScheme::Tage),
    ];
}

impl<'de> Deserialize<'de> for PredictorScheme {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PredictorScheme, D::Error> {
        by_name(from)
    }
}
