//! Systematic sampling, after SMARTS (Wunderlich, Wenisch, Falsafi and Hoe, ISCA 2003): short windows of the execution, at equal
//! distances, are simulated in detail and measured. Between them caches, TLBs and predictors are updated by every instruction
//! (functional warming), and no time passes. Before each window some instructions are simulated and not measured, which fill the
//! core's queues.

use std::collections::BTreeMap;

use events::Thread;

use super::sample_parts::{SampleOwner, SampleParts};

/// The quantile of the normal distribution for intervals of 99 %, of both sides.
const QUANTILE: f64 = 2.575_829;

/// Which parts of an execution are simulated in detail. Lengths are in instructions; parts end with blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingPlan {
    /// From the begin of one window to that of the next one.
    pub period: u64,
    /// Measured in each window.
    pub window: u64,
    /// Simulated in detail before each window.
    pub warm_up: u64,
}

/// Longer than any execution, and short enough to be multiplied by the number of processors.
const LONGEST_PERIOD: u64 = 1 << 56;

impl SamplingPlan {
    /// Windows of 1,000 instructions after 2,000 that fill the core's queues: what SMARTS found enough, as long as caches
    /// and predictors are warm. If the period has no room for both, all that it has is simulated in detail.
    pub fn with_period(period: u64) -> SamplingPlan {
        let period = period.clamp(1, LONGEST_PERIOD);
        let window = period.min(1000);
        SamplingPlan { period, window, warm_up: (period - window).min(2000) }
    }

    /// How much of its first period has passed when one of several processes begins that are one sample together. Each begins
    /// elsewhere, so that beginnings and ends, which are unlike the rest, are in windows as often as all else (Cochran, "Sampling
    /// Techniques", chapter 8: the start of a systematic sample is random). Multiples of the golden ratio's fraction are spread
    /// evenly, however many there are.
    fn start_of(&self, process: u32) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let share = u128::from(u64::from(process).wrapping_mul(GOLDEN));
        ((share * u128::from(self.period)) >> 64) as u64
    }

    fn length(&self, phase: SamplingPhase) -> u64 {
        match phase {
            SamplingPhase::FunctionalWarming => self.period.saturating_sub(self.window + self.warm_up),
            SamplingPhase::DetailedWarming => self.warm_up,
            SamplingPhase::Measured => self.window,
        }
    }
}

/// The treatment of the present instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SamplingPhase {
    FunctionalWarming,
    DetailedWarming,
    Measured,
}

/// An estimate, with half of the interval in which the exact value lies with a confidence of 99 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The estimate, in cycles per instruction.
    pub value: f64,
    /// The exact value is at most this far away, with a confidence of 99 %.
    pub error: f64,
}

/// The measurements in the windows of a sample, as sums of `N` counts: the first one is of everything, the others of its parts.
#[derive(Clone, Debug)]
pub struct WindowSums<const N: usize> {
    /// The number of windows.
    pub windows: u64,
    /// Instructions in windows.
    pub measured: u64,
    /// Instructions simulated in detail, in windows or before them.
    pub detailed: u64,
    /// All instructions executed.
    pub instructions: u64,
    /// The sums over the windows.
    sums: [u64; N],
    /// Their squares, and their products with the windows' instructions; the squares of those.
    squares: [f64; N],
    products: [f64; N],
    instruction_squares: f64,
}

impl<const N: usize> Default for WindowSums<N> {
    fn default() -> WindowSums<N> {
        WindowSums {
            windows: 0,
            measured: 0,
            detailed: 0,
            instructions: 0,
            sums: [0; N],
            squares: [0.0; N],
            products: [0.0; N],
            instruction_squares: 0.0,
        }
    }
}

impl<const N: usize> WindowSums<N> {
    /// Without windows, of an execution with so many instructions.
    pub(super) fn unmeasured(instructions: u64) -> WindowSums<N> {
        WindowSums { instructions, ..WindowSums::default() }
    }

    /// Of everything, per instruction.
    pub fn per_instruction(&self) -> Estimate {
        self.estimate(0)
    }

    /// The sum of a count over the windows.
    pub(crate) fn sum(&self, index: usize) -> u64 {
        self.sums[index]
    }

    /// How many windows would be needed for a relative error of what everything is per instruction, if they vary as these do.
    pub fn windows_for(&self, relative: f64) -> u64 {
        let Estimate { value, error } = self.infinite(0);
        (self.windows as f64 * (error / (value * relative)).powi(2)).ceil() as u64
    }

    /// Adds the windows of another execution.
    pub fn add(&mut self, other: &WindowSums<N>) {
        self.windows += other.windows;
        self.measured += other.measured;
        self.detailed += other.detailed;
        self.instructions += other.instructions;
        self.instruction_squares += other.instruction_squares;
        for index in 0..N {
            self.sums[index] += other.sums[index];
            self.squares[index] += other.squares[index];
            self.products[index] += other.products[index];
        }
    }

    /// Adds a window of so many instructions, before which there were these counts, and now there are those.
    fn close_window(&mut self, (instructions, before): (u64, [u64; N]), now: [u64; N]) {
        if instructions > 0 {
            self.add_window(instructions, &std::array::from_fn(|index| now[index] - before[index]));
        }
    }

    /// Adds a window.
    pub(super) fn add_window(&mut self, instructions: u64, counts: &[u64; N]) {
        let length = instructions as f64;
        self.windows += 1;
        self.measured += instructions;
        self.instruction_squares += length * length;
        for (index, &count) in counts.iter().enumerate() {
            self.sums[index] += count;
            self.squares[index] += (count as f64).powi(2);
            self.products[index] += count as f64 * length;
        }
    }

    /// The estimate; it has no error if everything was measured.
    pub(crate) fn estimate(&self, index: usize) -> Estimate {
        let Estimate { value, error } = self.infinite(index);
        let unmeasured = self.instructions.saturating_sub(self.measured) as f64 / self.instructions as f64;
        Estimate { value, error: error * unmeasured.max(0.0).sqrt() }
    }

    /// The ratio estimator of Cochran, "Sampling Techniques", section 2.11, of a sample from an execution without end.
    fn infinite(&self, index: usize) -> Estimate {
        let (windows, measured) = (self.windows as f64, self.measured as f64);
        let value = self.sums[index] as f64 / measured;
        let squares = self.squares[index] - 2.0 * value * self.products[index]
            + value * value * self.instruction_squares;
        let variance = squares.max(0.0) / (windows - 1.0);
        Estimate { value, error: student(windows - 1.0) * (variance * windows).sqrt() / measured }
    }
}

/// The quantile of Student's distribution for intervals of 99 %, by the expansion of Cornish and Fisher.
fn student(freedom: f64) -> f64 {
    let z = QUANTILE;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// Decides what is simulated in detail, and adds up what is measured.
#[derive(Debug)]
pub(crate) struct WindowSampler<const N: usize> {
    plan: SamplingPlan,
    phase: SamplingPhase,
    /// Instructions until the phase ends; less than 1 if it is over.
    left: i64,
    has_begun: bool,
    /// At the begin of the window: instructions in it so far, and the counts before it.
    window: (u64, [u64; N]),
    pub sampled: WindowSums<N>,
    /// The same, divided among processes and units of work, of the first count.
    parts: SampleParts,
}

impl<const N: usize> WindowSampler<N> {
    /// A sample by a plan. Windows come at the ends of periods.
    pub fn new(plan: SamplingPlan) -> WindowSampler<N> {
        let phase = SamplingPhase::FunctionalWarming;
        let left = plan.length(phase) as i64;
        let mut sampler = WindowSampler {
            plan,
            phase,
            left,
            has_begun: false,
            window: (0, [0; N]),
            sampled: WindowSums::default(),
            parts: SampleParts::default(),
        };
        sampler.next_phase(|| [0; N]);
        sampler
    }

    /// A thread executes from now on; the first one's process decides where windows lie ([`SamplingPlan::start_of`]).
    pub fn begin(&mut self, thread: Thread, counts: impl Fn() -> [u64; N]) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.parts.enter(thread);
            self.left -= self.plan.start_of(thread.process) as i64;
            self.next_phase(|| [0; N]);
        } else {
            self.runs(thread, counts);
        }
    }

    /// A thread executes from now on, on one of several processors that are one sample together.
    pub fn runs(&mut self, thread: Thread, counts: impl Fn() -> [u64; N]) {
        if self.parts.is_other(thread) {
            self.settle(counts());
            self.parts.enter(thread);
        }
    }

    /// The thread is in this unit of work from now on, or in none, when there are these counts.
    pub fn enter_unit(&mut self, unit: Option<u64>, counts: [u64; N]) {
        self.settle(counts);
        self.parts.enter_unit(unit);
    }

    fn settle(&mut self, counts: [u64; N]) {
        self.parts.settle((self.sampled.instructions, counts[0]), self.phase == SamplingPhase::Measured);
    }

    /// Whether the next block is simulated in detail.
    #[inline(always)]
    pub fn is_detailed(&self) -> bool {
        self.phase != SamplingPhase::FunctionalWarming
    }

    /// A block with this number of instructions was executed, after which there are these counts.
    #[inline(always)]
    pub fn executed(&mut self, instructions: u64, counts: impl Fn() -> [u64; N]) {
        self.sampled.instructions += instructions;
        if self.is_detailed() {
            self.sampled.detailed += instructions;
            self.window.0 += instructions;
        }
        self.left -= instructions as i64;
        if self.left <= 0 {
            self.next_phase(counts);
        }
    }

    /// Forgets what was measured; the windows go on.
    pub fn reset_counts(&mut self, counts: [u64; N]) {
        self.sampled = WindowSums::default();
        self.parts.reset((0, counts[0]));
        self.window = (0, counts);
    }

    /// Adds the windows of an execution that has ended with these counts, which are added to the others, too.
    pub fn merge(&mut self, ended: &WindowSampler<N>, counts: [u64; N]) {
        let sums = ended.ended(counts);
        self.parts.merge(ended.ended_parts(counts), (sums.instructions, counts[0]));
        self.sampled.add(&sums);
        self.window.1.iter_mut().zip(counts).for_each(|(before, added)| *before += added);
    }

    /// The measurements, if the execution ends with these counts.
    pub fn ended(&self, counts: [u64; N]) -> WindowSums<N> {
        let mut sampled = self.sampled.clone();
        if self.phase == SamplingPhase::Measured {
            sampled.close_window(self.window, counts);
        }
        sampled
    }

    /// The sums of the parts of processes and units of work with the same key, if the execution ends with these counts.
    pub fn sums_by<K: Ord>(
        &self,
        counts: [u64; N],
        key: impl Fn(SampleOwner) -> K,
    ) -> BTreeMap<K, WindowSums<1>> {
        self.ended_parts(counts).sums(key)
    }

    fn ended_parts(&self, counts: [u64; N]) -> SampleParts {
        let mut parts = self.parts.clone();
        let is_measured = self.phase == SamplingPhase::Measured;
        parts.settle((self.sampled.instructions, counts[0]), is_measured);
        parts
    }

    /// Goes on to the phase that follows, beyond those that a long block has skipped.
    #[inline(never)]
    fn next_phase(&mut self, counts: impl Fn() -> [u64; N]) {
        while self.left <= 0 {
            self.settle(counts());
            if self.phase == SamplingPhase::Measured {
                self.sampled.close_window(self.window, counts());
            }
            self.phase = match self.phase {
                SamplingPhase::FunctionalWarming => SamplingPhase::DetailedWarming,
                SamplingPhase::DetailedWarming => SamplingPhase::Measured,
                SamplingPhase::Measured => SamplingPhase::FunctionalWarming,
            };
            if self.phase == SamplingPhase::Measured {
                self.parts.begin_window();
            }
            self.left += self.plan.length(self.phase) as i64;
            self.window = (0, counts());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (freedom, quantile) in [(20.0, 2.845), (30.0, 2.750), (100.0, 2.626), (1e9, 2.576)] {
            assert!((student(freedom) - quantile).abs() < 1e-3, "{freedom}: {}", student(freedom));
        }
    }

    /// Windows of 10, 10 and 20 instructions with 20, 30 and 50 cycles: 2.5 an instruction, residuals -5, 5, 0.
    #[test]
    fn estimates_are_as_computed_by_hand() {
        let mut sampled = WindowSums { instructions: 160, ..WindowSums::default() };
        for (instructions, operands, issued) in [(10, 10, 10), (10, 20, 10), (20, 30, 20)] {
            sampled.add_window(instructions, &[operands + issued, issued]);
        }
        let error = student(2.0) * (25.0f64 * 3.0).sqrt() / 40.0;
        let Estimate { value, error: found } = sampled.per_instruction();
        assert_eq!(value, 2.5);
        assert!((found - error * 0.75f64.sqrt()).abs() < 1e-12);
        assert_eq!(sampled.estimate(1), Estimate { value: 1.0, error: 0.0 });
        let needed = 3.0 * (error / 0.25).powi(2);
        assert_eq!(sampled.windows_for(0.1), needed.ceil() as u64);
        let mut twice = sampled.clone();
        twice.add(&sampled);
        assert_eq!((twice.windows, twice.measured, twice.instructions), (6, 80, 320));
        assert_eq!(twice.per_instruction().value, 2.5);
    }

    /// The phases of a sampler with blocks of a length, and the windows that it has measured.
    fn phases(plan: SamplingPlan, block: u32, blocks: u32) -> (String, WindowSums<1>) {
        let mut sampler = WindowSampler::new(plan);
        let mut phases = String::new();
        let mut executed = 0;
        for _ in 0..blocks {
            phases.push(match sampler.phase {
                SamplingPhase::FunctionalWarming => '.',
                SamplingPhase::DetailedWarming => 'w',
                SamplingPhase::Measured => 'M',
            });
            executed += if sampler.is_detailed() { u64::from(block) } else { 0 };
            sampler.executed(block.into(), || [2 * executed]);
        }
        (phases, sampler.sampled)
    }

    #[test]
    fn windows_come_at_equal_distances() {
        let plan = SamplingPlan { period: 10, window: 2, warm_up: 3 };
        let (seen, sampled) = phases(plan, 1, 30);
        assert_eq!(seen, ".....wwwMM.....wwwMM.....wwwMM");
        assert_eq!((sampled.windows, sampled.measured, sampled.detailed), (3, 6, 15));
        assert_eq!(sampled.per_instruction(), Estimate { value: 2.0, error: 0.0 });
        // Blocks of four instructions end later than the phases, which stay where they are.
        assert_eq!(phases(plan, 4, 15).0, "..M.w..M.w..M.w");
        let whole = SamplingPlan { period: 5, window: 5, warm_up: 0 };
        assert_eq!(phases(whole, 1, 12).0, "MMMMMMMMMMMM");
    }

    /// Units and threads that alternate in windows have, altogether, what the windows have; and so have those of merged samples.
    #[test]
    fn parts_add_up_to_the_sample() {
        let plan = SamplingPlan { period: 50, window: 20, warm_up: 10 };
        let run = |process: u32| {
            let mut sampler = WindowSampler::<1>::new(plan);
            let mut cycles = 0;
            for step in 0..1000u64 {
                let thread = Thread { process, number: process * 2 + u32::from(step % 7 < 3) };
                sampler.begin(thread, || [cycles]);
                match step % 11 {
                    0 => sampler.enter_unit(Some(step), [cycles]),
                    6 => sampler.enter_unit(None, [cycles]),
                    _ => {}
                }
                cycles += if sampler.is_detailed() { 1 + step % 5 } else { 0 };
                sampler.executed(3, || [cycles]);
            }
            (sampler, cycles)
        };
        let ((mut first, cycles), (second, others)) = (run(0), run(1));
        first.merge(&second, [others]);
        let all = [cycles + others];
        let whole = first.ended(all);
        assert!(whole.windows > 50 && whole.sum(0) > 1000);
        for parts in
            [first.sums_by(all, |owner| owner.unit), first.sums_by(all, |one| Some(one.process.into()))]
        {
            let sum = |of: fn(&WindowSums<1>) -> u64| parts.values().map(of).sum::<u64>();
            assert_eq!(sum(|part| part.instructions), whole.instructions);
            assert_eq!(sum(|part| part.measured), whole.measured);
            assert_eq!(sum(|part| part.sum(0)), whole.sum(0));
            assert!(parts.len() > 1 && parts.values().all(|part| part.instructions < whole.instructions));
        }
        // All parts together are the sample, with its error.
        let one = &first.sums_by(all, |_| ())[&()];
        assert_eq!((one.windows, one.per_instruction()), (whole.windows, whole.per_instruction()));
    }

    #[test]
    fn a_period_longer_than_the_execution_has_no_windows() {
        let (seen, sampled) = phases(SamplingPlan::with_period(u64::MAX), 4, 20);
        assert_eq!((seen.as_str(), sampled.windows), (&*".".repeat(20), 0));
    }

    #[test]
    fn short_periods_are_simulated_in_detail() {
        let plan = SamplingPlan::with_period;
        assert_eq!(plan(100_000), SamplingPlan { period: 100_000, window: 1000, warm_up: 2000 });
        assert_eq!(plan(1500), SamplingPlan { period: 1500, window: 1000, warm_up: 500 });
        assert_eq!(plan(0), SamplingPlan { period: 1, window: 1, warm_up: 0 });
    }
}
