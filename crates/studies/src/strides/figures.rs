//! The figures of the paper: the loop and array of each, and the paper's conclusion.

use super::{LOOPS, SWITCHES, Seen, Walk};

/// A figure.
pub struct PaperFigure {
    /// Its number in the paper.
    pub number: u32,
    /// Whether it shows the modified loop.
    pub is_modified: bool,
    /// The array.
    pub array: &'static str,
    /// Its stores, or else its loads.
    pub is_store: bool,
    /// The paper's conclusion.
    pub conclusion: &'static str,
    /// The numbers that it concludes it from.
    pub claims: &'static [Claim],
}

/// A share that the paper names.
pub struct Claim {
    /// Of which strides.
    what: &'static str,
    /// Strides to the reference this number of steps back.
    step: u32,
    /// Elements, both ends included.
    from: i64,
    to: Option<i64>,
    /// In percent.
    paper: f64,
}

/// Shares that differ by less, in points of percent, are the same.
const NEAR: f64 = 5.0;

const fn stride(what: &'static str, elements: i64, paper: f64) -> Claim {
    Claim { what, step: 1, from: elements, to: Some(elements), paper }
}

/// Strides of 4,096 elements and more, which are 32 KB of `real*8`.
const fn far(what: &'static str, step: u32) -> Claim {
    Claim { what, step, from: 4096, to: None, paper: 100.0 }
}

const ONE: &[Claim] = &[stride("stride one", 1, 100.0)];

const fn figure(
    number: u32,
    array: &'static str,
    is_store: bool,
    conclusion: &'static str,
    claims: &'static [Claim],
) -> PaperFigure {
    PaperFigure { number, is_modified: number > 10, array, is_store, conclusion, claims }
}

/// Figures 2 to 9 are of the original loop, 11 to 16 of the modified one.
pub const FIGURES: [PaperFigure; 14] = [
    figure(2, "q", false, "Q is read one element after another, as the source says.", ONE),
    figure(3, "q", true, "Q is written one element after another, as the source says.", ONE),
    figure(
        4,
        "colstr",
        false,
        "The compiler loads each element of COLSTR twice, as the end of a column and as the beginning of the next: half \
         of the strides are one, and the others zero, or two if it loads the end first.",
        &[stride("stride one", 1, 50.0)],
    ),
    figure(
        5,
        "ytemp",
        false,
        "The compiler has made two loops of the loop over k1 and unrolled the second one by four in this direction: \
         YTEMP is read along its rows.",
        &[far("32 KB and more, two back", 2), far("three back", 3), far("four back", 4)],
    ),
    figure(6, "ytemp", true, "The loop over j is not unrolled in the direction of k1.", ONE),
    figure(
        7,
        "aa",
        false,
        "AA is read in a controlled way, but less than half of it one element after another.",
        &[stride("stride one", 1, 39.0), stride("stride two", 2, 23.0)],
    ),
    figure(
        8,
        "rowidx",
        false,
        "ROWIDX is read as AA is, but for four loads more in each column.",
        &[stride("stride one", 1, 24.0), stride("stride two", 2, 34.0)],
    ),
    figure(9, "p", false, "P is read irregularly: the price of reading AA in order.", &[]),
    figure(
        11,
        "colstr",
        false,
        "With the end of a column kept for the next one, COLSTR is read one element after another.",
        ONE,
    ),
    figure(12, "q", false, "Q is read one element after another.", ONE),
    figure(13, "q", true, "Q is written one element after another.", ONE),
    figure(
        14,
        "aa",
        false,
        "Without the compiler's unrolling, more of AA is read one element after another.",
        &[stride("stride one", 1, 69.0)],
    ),
    figure(15, "rowidx", false, "So is ROWIDX.", &[stride("stride one", 1, 52.0)]),
    figure(16, "p", false, "P is read as before.", &[]),
];

/// Of a call: a 26th of the references and misses of 26 calls. The paper has no references of the modified loop.
pub const PAPER_MISSES: [(&str, &str, Option<u64>, u64); 2] = [
    ("the paper's original", "-fast -O5", Some(1_476_017_322 / 26), 77_638_624 / 26),
    ("the paper's modified", "-fast -O5 -unroll 1", None, 72_384_348 / 26),
];

impl PaperFigure {
    /// Whether this is the loop that the figure shows, compiled as the paper did: the original one unrolled by the
    /// compiler, the modified one not.
    pub fn shows(&self, seen: &Seen) -> bool {
        let index = usize::from(self.is_modified);
        seen.of == LOOPS[index] && seen.switches == SWITCHES[index]
    }

    /// Whether today's compiler behaves the same, in words.
    pub fn verdict(&self, walk: Option<&Walk>) -> String {
        let Some(walk) = walk else { return "Here it is not accessed at all.".into() };
        if self.claims.is_empty() {
            let far = walk.share(2, 0, None);
            return format!("Here {far:.0} % of the strides are 128 bytes and more.");
        }
        let found: Vec<f64> =
            self.claims.iter().map(|claim| walk.share(claim.step, claim.from, claim.to)).collect();
        let is_same = self.claims.iter().zip(&found).all(|(claim, found)| (claim.paper - found).abs() < NEAR);
        let list = |shares: Vec<f64>| {
            let shares =
                self.claims.iter().zip(shares).map(|(claim, share)| format!("{share:.0} % {}", claim.what));
            shares.collect::<Vec<_>>().join(", ")
        };
        let paper = list(self.claims.iter().map(|claim| claim.paper).collect());
        let here = list(found);
        match is_same {
            true => format!("**Today's compiler does the same**: {here}."),
            false => format!("**Today's compiler does otherwise**: {here}; in the paper {paper}."),
        }
    }
}
