//! Profiles of executed instructions: by instruction, group, function and image. Over a whole run or
//! as the mean of units of work; two profiles can be compared.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use events::{Block, BlockId, Counts, Unit};

use crate::mix::{self, Mix};
pub use crate::names::FunctionName;
use crate::names::Names;
use table::{Kind, Table, Value};

/// Instructions executed, split in each way.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// By name of instruction ([`mix::name`]).
    pub instructions: BTreeMap<&'static str, f64>,
    /// By function.
    pub functions: BTreeMap<FunctionName, f64>,
    /// The files of source in which functions are defined, as far as debug information says so.
    pub sources: Arc<BTreeMap<FunctionName, String>>,
    /// By image.
    pub images: BTreeMap<String, f64>,
    /// All together.
    pub total: f64,
}

impl Profile {
    /// The instruction mix, rounded to whole instructions.
    pub fn mix(&self) -> Mix {
        self.instructions.iter().map(|(name, n)| (*name, n.round() as u64)).collect()
    }
}

/// The contents of each block of a dictionary, computed once.
pub struct Attribution {
    blocks: Vec<Parts>,
    /// The files in which functions are defined.
    sources: Arc<BTreeMap<FunctionName, String>>,
}

/// The instructions of one block.
struct Parts {
    names: Vec<&'static str>,
    /// How many instructions lie in each function: nearly always one function.
    functions: Vec<(Arc<FunctionName>, u32)>,
    image: Rc<str>,
}

/// Of several functions with a name in an image, the one at the lowest address decides, in whatever order they were executed first:
/// in a server this differs between runs.
fn keep_lowest<I: Copy>(
    lowest: &mut HashMap<Arc<FunctionName>, (u64, I)>,
    function: &Arc<FunctionName>,
    start: (u64, I),
) {
    let kept = lowest.entry(function.clone()).or_insert(start);
    if start.0 < kept.0 {
        *kept = start;
    }
}

impl Attribution {
    /// Works out the dictionary of `counts`; opens its images for their symbols.
    pub fn new(counts: &Counts) -> Attribution {
        Attribution::of(&counts.blocks, &Names::of_counts(counts))
    }

    /// Works out a dictionary of blocks, in images that these names are of.
    pub fn of(blocks: &[Block], names: &Names) -> Attribution {
        let mut lowest = HashMap::new();
        let blocks = blocks.iter().map(|block| {
            let mut functions: Vec<(Arc<FunctionName>, u32)> = Vec::new();
            for at in block.addresses() {
                let function = names.name(block.image, at);
                match functions.last_mut() {
                    Some((last, n)) if *last == function => *n += 1,
                    _ => {
                        keep_lowest(&mut lowest, &function, (at, block.image));
                        functions.push((function, 1));
                    }
                }
            }
            Parts {
                names: block.words.iter().map(|&word| mix::name(block.instruction_set, word)).collect(),
                functions,
                image: names.image(block.image).into(),
            }
        });
        let blocks = blocks.collect();
        let source = |(function, (at, image)): (Arc<FunctionName>, (u64, _))| {
            Some(((*function).clone(), names.source(image, at)?))
        };
        Attribution { blocks, sources: Arc::new(lowest.into_iter().filter_map(source).collect()) }
    }

    /// The number of blocks.
    pub(crate) fn block_count(&self) -> BlockId {
        self.blocks.len() as BlockId
    }

    /// The functions in which the instructions of a block lie.
    pub fn functions(&self, block: BlockId) -> impl Iterator<Item = &FunctionName> {
        self.blocks[block as usize].functions.iter().map(|(name, _)| &**name)
    }

    /// The profile of block executions, each with its weight.
    pub fn profile(&self, executions: impl IntoIterator<Item = (BlockId, f64)>) -> Profile {
        let mut profile = Profile { sources: self.sources.clone(), ..Profile::default() };
        for (id, times) in executions {
            let parts = &self.blocks[id as usize];
            for name in &parts.names {
                *profile.instructions.entry(name).or_default() += times;
            }
            for (function, n) in &parts.functions {
                let instructions = times * f64::from(*n);
                match profile.functions.get_mut(&**function) {
                    Some(sum) => *sum += instructions,
                    None => drop(profile.functions.insert((**function).clone(), instructions)),
                }
            }
            let length = times * parts.names.len() as f64;
            match profile.images.get_mut(&*parts.image) {
                Some(sum) => *sum += length,
                None => drop(profile.images.insert(parts.image.to_string(), length)),
            }
            profile.total += length;
        }
        profile
    }

    /// The profile of a whole run.
    pub fn whole(&self, counts: &Counts) -> Profile {
        let executions = counts.executions.iter().enumerate().filter(|(_, n)| **n != 0);
        self.profile(executions.map(|(id, n)| (id as BlockId, *n as f64)))
    }

    /// The mean profile of units of work: what one of them did on average.
    pub fn mean(&self, units: &[Unit]) -> Profile {
        let mut sums: BTreeMap<BlockId, u64> = BTreeMap::new();
        for &(id, n) in units.iter().flat_map(|unit| &unit.blocks) {
            *sums.entry(id).or_default() += n;
        }
        self.profile(sums.into_iter().map(|(id, n)| (id, n as f64 / units.len() as f64)))
    }
}

/// Instructions by function: the functions of largest share first.
pub fn functions(name: &str, title: &str, profile: &Profile) -> Table {
    let columns = [
        ("function", Kind::Text),
        ("image", Kind::Text),
        ("instructions", Kind::Count),
        ("share", Kind::Percent(1)),
    ];
    let mut table = Table::new(name, title, &columns);
    let mut rows: Vec<_> = profile.functions.iter().collect();
    rows.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (function, n) in rows {
        table.row(vec![
            function.function.clone().into(),
            function.image.clone().into(),
            whole(*n),
            (100.0 * n / profile.total).into(),
        ]);
    }
    let total = vec!["total".into(), Value::Missing, whole(profile.total), 100.0.into()];
    table.total_row(total);
    table
}

/// The share of each image in several profiles (Figure 1).
pub fn image_shares(name: &str, title: &str, profiles: &[(&str, &Profile)]) -> Table {
    let headings: Vec<[String; 2]> =
        profiles.iter().map(|(label, _)| [label.to_string(), format!("{label} share")]).collect();
    let mut columns = vec![("image", Kind::Text)];
    for [instructions, share] in &headings {
        columns.extend([(instructions.as_str(), Kind::Count), (share.as_str(), Kind::Percent(1))]);
    }
    let mut table = Table::new(name, title, &columns);
    let of = |profile: &Profile, image: &str| profile.images.get(image).copied().unwrap_or(0.0);
    let mut images: Vec<&String> = profiles.iter().flat_map(|(_, profile)| profile.images.keys()).collect();
    images.sort_by(|a, b| of(profiles[0].1, b).total_cmp(&of(profiles[0].1, a)).then_with(|| a.cmp(b)));
    images.dedup();
    for image in images {
        let mut row = vec![image.clone().into()];
        for (_, profile) in profiles {
            let n = of(profile, image);
            row.extend([whole(n), (100.0 * n / profile.total).into()]);
        }
        table.row(row);
    }
    let totals = profiles.iter().flat_map(|(_, profile)| [whole(profile.total), 100.0.into()]);
    table.total_row(std::iter::once("total".into()).chain(totals).collect());
    table
}

/// Every function in two profiles side by side, the one that changed most first.
pub fn function_differences(name: &str, title: &str, labels: [&str; 2], a: &Profile, b: &Profile) -> Table {
    let columns = [
        ("function", Kind::Text),
        ("image", Kind::Text),
        (labels[0], Kind::Count),
        (labels[1], Kind::Count),
        ("delta", Kind::Delta),
        ("% delta", Kind::Change(1)),
    ];
    let mut table = Table::new(name, title, &columns);
    let of = |profile: &Profile, function: &FunctionName| {
        profile.functions.get(function).copied().unwrap_or(0.0).round()
    };
    let mut names: Vec<&FunctionName> = a.functions.keys().chain(b.functions.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| std::cmp::Reverse((of(b, name) - of(a, name)).abs() as u64));
    for name in names {
        let (before, after) = (of(a, name), of(b, name));
        table.row(vec![
            name.function.clone().into(),
            name.image.clone().into(),
            whole(before),
            whole(after),
            Value::Integer((after - before) as i64),
            mix::change(before, after),
        ]);
    }
    let delta = Value::Integer(b.total.round() as i64 - a.total.round() as i64);
    table.total_row(vec![
        "total".into(),
        Value::Missing,
        whole(a.total),
        whole(b.total),
        delta,
        mix::change(a.total, b.total),
    ]);
    table
}

/// A mean count, rounded.
fn whole(count: f64) -> Value {
    Value::Integer(count.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_name_are_those_of_the_lowest_address_in_any_order() {
        let name = |function: &str| Arc::new(FunctionName { image: "a".into(), function: function.into() });
        let starts = [("f", (8, 'x')), ("f", (4, 'y')), ("f", (12, 'z')), ("g", (2, 'x'))];
        for first in 0..starts.len() {
            let mut lowest = HashMap::new();
            for number in 0..starts.len() {
                let (function, start) = starts[(first + number) % starts.len()];
                keep_lowest(&mut lowest, &name(function), start);
            }
            assert_eq!(lowest, HashMap::from([(name("f"), (4, 'y')), (name("g"), (2, 'x'))]), "{first}");
        }
    }
}
