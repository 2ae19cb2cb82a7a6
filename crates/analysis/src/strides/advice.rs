//! Advice on how a program accesses its arrays.

use std::collections::BTreeMap;

use image::Variable;
use machine::{Cache, Holds, Machine};

use super::{Count, Patterns, Series, StrideRows};
use crate::models::ExecutionPart;
use table::{Kind, Table, Value, separated};

/// The options of counting that advice needs: all references, in bytes.
pub const ADVICE: super::StrideSettings = super::StrideSettings {
    depth: 5,
    threshold: 0,
    bins: super::Bins { is_signed: false, in_elements: false },
};

/// The share of equal strides, in percent, from which on a walk is regular.
const REGULAR: f64 = 60.0;
/// The share of strides, in percent, that must be the pitch of a dimension for a walk along it.
const WALK: f64 = 80.0;
/// The share of loads, in percent, from which on loading elements again is reported.
const AGAIN: f64 = 25.0;
/// The stride from which on little of each cache line is used.
const LONG: i64 = 128;
/// The least number of references for advice.
const WORTH: u64 = 1000;

/// The loads or the stores of an array, on a line or everywhere.
struct ArrayWalk<'a> {
    line: Option<String>,
    variable: &'a Variable,
    is_store: bool,
    references: u64,
    strides: Vec<Count>,
}

/// Advice on the walks of lines through arrays (by [`StrideRows::ArrayWalk`]) and on arrays (by
/// [`StrideRows::Array`]), both counted with [`ADVICE`]; with a machine, on its caches.
pub fn advice(lines: &Patterns, arrays: &Patterns, machine: Option<&Machine>) -> Table {
    let columns =
        [("line", Kind::Text), ("array", Kind::Text), ("references", Kind::Count), ("advice", Kind::Text)];
    let mut table = Table::new("advice", "Advice: changes that may be worthwhile", &columns);
    let mut add = |walk: &ArrayWalk, text: String| {
        let array = walk.variable.name.clone();
        table.row(vec![walk.line.clone().into(), array.into(), walk.references.into(), text.into()]);
    };
    let walks: Vec<ArrayWalk> = walks(lines);
    for walk in &walks {
        if let Some(pitch) = walk.pitch() {
            add(walk, walk.across(pitch));
            let caches = machine.iter().flat_map(|machine| &machine.caches);
            for cache in
                caches.filter(|cache| cache.holds != Holds::Instructions && walk.collides(pitch, cache))
            {
                add(walk, walk.collision(pitch, cache));
            }
        }
    }
    for array in self::walks(arrays) {
        if let Some((step, share)) = array.again() {
            let of = |walk: &&ArrayWalk| walk.variable == array.variable && !walk.is_store;
            let lines = walks.iter().filter(of).filter_map(|walk| walk.line.clone());
            let line = Some(lines.collect::<Vec<_>>().join(" ")).filter(|line| !line.is_empty());
            let text = format!(
                "{share:.0} % of the loads are of the element loaded {step} before: keep it in a variable (scalar replacement)"
            );
            add(&ArrayWalk { line, ..array }, text);
        }
    }
    let mut by_line: BTreeMap<&str, Vec<&ArrayWalk>> = BTreeMap::new();
    for walk in walks.iter().filter(|walk| !walk.is_store) {
        if let Some(line) = &walk.line {
            by_line.entry(line).or_default().push(walk);
        }
    }
    for walks in by_line.values() {
        let Some(indices) = walks.iter().find(|walk| walk.has_indices()) else { continue };
        for walk in walks.iter().filter(|walk| walk.variable != indices.variable && walk.is_irregular()) {
            let indices = &indices.variable.name;
            add(
                walk,
                format!("is accessed irregularly, by way of {indices}: sort {indices}, or what it refers to"),
            );
        }
    }
    table
}

/// The walks through variables that have elements.
fn walks<'a>(patterns: &'a Patterns) -> Vec<ArrayWalk<'a>> {
    let walk = |series: Series<'a>| {
        let (line, variable) = patterns.walk(&series)?;
        let is_array = variable.shape.iter().product::<u64>() > 1 && !variable.shape.is_empty();
        (is_array && series.references >= WORTH).then(|| ArrayWalk {
            line,
            variable,
            is_store: series.is_store,
            references: series.references,
            strides: series.strides().collect(),
        })
    };
    patterns.sorted(ExecutionPart::Whole).into_iter().filter_map(walk).collect()
}

impl ArrayWalk<'_> {
    fn share(&self, step: u32, is_meant: impl Fn(&Count) -> bool) -> f64 {
        let counts = self.strides.iter().filter(|one| one.step == step && is_meant(one));
        100.0 * counts.map(|one| one.count).sum::<u64>() as f64 / self.references as f64
    }

    /// The share of the strides of a step that are in the bin of this one.
    fn like(&self, step: u32, stride: u64) -> f64 {
        let stride = stride.cast_signed();
        self.share(step, |one| one.range.near <= stride && one.range.far.is_none_or(|far| stride <= far))
    }

    fn element(&self) -> u64 {
        self.variable.element.as_ref().map_or(0, |element| element.size)
    }

    /// The pitch of the dimension along which the walk goes, unless that is the dimension of adjacent elements.
    fn pitch(&self) -> Option<u64> {
        let Variable { shape, is_column_major, .. } = self.variable;
        let mut counts = shape.clone();
        if !is_column_major {
            counts.reverse();
        }
        let pitches = counts[..counts.len() - 1].iter().scan(self.element(), |pitch, &count| {
            *pitch = pitch.saturating_mul(count);
            Some(*pitch)
        });
        let is_walked = |pitch: u64| {
            pitch >= LONG.cast_unsigned()
                && self.like(1, pitch) >= WALK
                && self.like(2, pitch.saturating_mul(2)) >= WALK
        };
        { pitches }.find(|&pitch| is_walked(pitch))
    }

    fn across(&self, pitch: u64) -> String {
        let index = if self.variable.is_column_major { "first" } else { "last" };
        let pitch = separated(&pitch.to_string());
        format!(
            "is traversed with a stride of {pitch} bytes, not along its adjacent elements: interchange the loops, so that the {index} index is the innermost"
        )
    }

    /// Whether the elements of a walk with this pitch map to fewer sets of a cache than there are elements.
    fn collides(&self, pitch: u64, cache: &Cache) -> bool {
        let way = cache.size / u64::from(cache.ways.max(1));
        let steps = self.variable.size / pitch.max(1);
        self.sets(pitch, cache) * u64::from(cache.ways) < steps.min(way / cache.line.max(1))
    }

    /// The number of sets of a cache that a walk with this pitch uses.
    fn sets(&self, pitch: u64, cache: &Cache) -> u64 {
        let way = cache.size / u64::from(cache.ways.max(1));
        way / divisor(pitch, way).max(cache.line).max(1)
    }

    fn collision(&self, pitch: u64, cache: &Cache) -> String {
        let (sets, name) = (self.sets(pitch, cache), &cache.name);
        let sets = if sets == 1 { "one set".into() } else { format!("{sets} sets") };
        let rows = if self.variable.is_column_major { "columns" } else { "rows" };
        format!(
            "is traversed with a stride that maps to {sets} of the {name}: make its {rows} one cache line longer"
        )
    }

    /// The number of loads after which the same element is loaded again, and the share of such loads, while the walk
    /// advances from element to element.
    fn again(&self) -> Option<(u32, f64)> {
        let near = 2 * self.element().cast_signed();
        let is_walk = !self.is_store && self.share(1, |one| one.range.near <= near) >= WALK;
        let shares = (1..=ADVICE.depth).map(|step| (step, self.share(step, |one| one.range.near == 0)));
        // If every step loads the same element, the walk does not advance.
        let goes_on = self.share(ADVICE.depth, |one| one.range.near > 0) >= WALK;
        shares.into_iter().find(|(_, share)| *share >= AGAIN).filter(|_| is_walk && goes_on)
    }

    fn most_frequent(&self) -> Option<&Count> {
        self.strides.iter().filter(|one| one.step == 1).max_by_key(|one| one.count)
    }

    /// Whether it reads integers in order.
    fn has_indices(&self) -> bool {
        let name = self.variable.element.as_ref().map_or("", |element| element.name.as_str());
        let is_whole = ["int", "long", "short"].iter().any(|kind| name.contains(kind));
        let is_in_order = |one: &Count| {
            one.range.near > 0
                && one.range.near < LONG
                && self.like(1, one.range.near.cast_unsigned()) >= REGULAR
        };
        is_whole && self.most_frequent().is_some_and(is_in_order)
    }

    fn is_irregular(&self) -> bool {
        let most = self.most_frequent().map_or(0.0, |one| self.like(1, one.range.near.cast_unsigned()));
        most < REGULAR && self.share(1, |one| one.range.near >= LONG) >= REGULAR
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Patterns<'_> {
    /// Of the loads or stores of a variable: the line, if it is of one, and the variable.
    fn walk(&self, series: &Series) -> Option<(Option<String>, &Variable)> {
        let array = self.array_of(series)?;
        let variable = self.memory()?.arrays()[array as usize].variable.as_ref()?;
        let line = (self.by() == StrideRows::Walk).then(|| self.site(series.group));
        let line = line.and_then(|(block, index)| match self.line(block, index) {
            Value::Text(line) => Some(line),
            _ => None,
        });
        Some((line, variable))
    }
}
