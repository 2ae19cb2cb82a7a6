//! Access patterns as tables.

use events::BlockId;

use super::{By, Count, Patterns, Range, Series};
use crate::table::{Column, Kind, Table, Value, separated};

/// How many strides of a step the short table has.
const MOST_FREQUENT: usize = 2;

/// A short stride has a place of its own in charts if it is this share of a step of a series, in percent.
const FREQUENT: f64 = 5.0;
/// A series is rare if it has less than this share of all references, in percent.
const RARE: f64 = 0.1;

/// How often strides occurred in a step of a series.
type Step = Vec<(Range, u64)>;

impl Patterns<'_> {
    /// A row for each series, the one with most references first: what its most frequent strides are.
    pub fn table(&self) -> Table {
        let mut table = self.empty("strides", self.title());
        let depth = self.strides().options().depth;
        table.columns.extend((1..=depth).map(|step| Column { name: back(step), kind: Kind::Text }));
        for series in self.sorted() {
            let mut row = self.row(&series);
            let steps = steps(&series, depth);
            row.extend(steps.into_iter().map(|step| most_frequent(step, series.references).into()));
            table.row(row);
        }
        table.notes.extend(self.notes());
        table
    }

    /// A row for each stride of each series.
    pub fn histograms(&self) -> Table {
        let mut table = self.empty("histograms", self.title());
        let more = [
            ("steps back", Kind::Count),
            ("from", Kind::Delta),
            ("to", Kind::Delta),
            ("count", Kind::Count),
            ("share", Kind::Percent(2)),
        ];
        table.columns.extend(more.map(|(name, kind)| Column { name: name.into(), kind }));
        for series in self.sorted() {
            let first = self.row(&series);
            for Count { step, range: Range { near, far }, count } in series.strides() {
                let share = share(count, series.references);
                let more =
                    [u64::from(step).into(), near.into(), far.into(), count.into(), Value::from(share)];
                table.row(first.iter().cloned().chain(more).collect());
            }
        }
        table.notes.extend(self.notes());
        table
    }

    /// The series with most references, but for the rare ones.
    pub fn frequent(&self, most: usize) -> Vec<Series<'_>> {
        let mut all = self.sorted();
        let references: u64 = all.iter().map(|series| series.references).sum();
        all.truncate(most);
        all.retain(|series| share(series.references, references) >= RARE);
        all
    }

    /// What charts of these series show: a table for each, with the shares of the same strides as rows and the
    /// steps as columns. Short strides that are rare in all of them are shown together.
    pub fn charts(&self, all: &[Series]) -> Vec<Table> {
        let places = places(all);
        let depth = self.strides().options().depth;
        let chart = |(number, series): (usize, &Series)| {
            let count = separated(&series.references.to_string());
            let title = format!("{}: {count} references", self.label(series));
            let mut table = Table::new(&format!("series-{number}"), title, &[("stride", Kind::Text)]);
            table.columns.extend((1..=depth).map(|step| Column { name: back(step), kind: Kind::Percent(1) }));
            let steps = steps(series, depth);
            for place in &places {
                let of = |step: &Step| -> u64 {
                    let here = step.iter().filter(|(range, _)| place.has(*range, &places));
                    here.map(|(_, count)| count).sum()
                };
                let shares = steps.iter().map(|step| Value::from(share(of(step), series.references)));
                table.row(std::iter::once(place.to_string().into()).chain(shares).collect());
            }
            table
        };
        all.iter().enumerate().map(chart).collect()
    }

    /// All series, the one with most references first.
    pub fn sorted(&self) -> Vec<Series<'_>> {
        let mut all: Vec<Series> = self.strides().series().collect();
        all.sort_by_key(|series| std::cmp::Reverse(series.references));
        all
    }

    fn title(&self) -> String {
        let unit = if self.strides().options().bins.in_elements { "elements" } else { "bytes" };
        format!("Strides between references of the same {}, in {unit}", self.by().noun())
    }

    fn notes(&self) -> Vec<String> {
        let threshold = self.strides().options().threshold;
        let share = "Shares are of the references of the row.".to_string();
        let later = format!(
            "A reference whose stride is less than {threshold} bytes is not compared with earlier ones; \
             --all-references does."
        );
        let heap =
            "Blocks of the heap are not told apart, as the trace was recorded without --heap.".to_string();
        let is_counted_once = threshold > 0 && self.strides().options().depth > 1;
        let notes = [Some(share), is_counted_once.then_some(later), self.lacks_heap().then_some(heap)];
        notes.into_iter().flatten().collect()
    }

    fn empty(&self, name: &str, title: String) -> Table {
        let headings = match self.by() {
            By::Instruction => {
                &[("address", Kind::Address), ("instruction", Kind::Text), ("where", Kind::Text)][..]
            }
            By::Line | By::Walk => &[("line", Kind::Text), ("function", Kind::Text)],
            By::Function => &[("function", Kind::Text), ("image", Kind::Text)],
            By::Array => &[("array", Kind::Text), ("type", Kind::Text), ("where", Kind::Text)],
            By::All => &[("of", Kind::Text)],
        };
        let mut table = Table::new(name, title, headings);
        let more = [("kind", Kind::Text), ("references", Kind::Count)];
        table.columns.extend(more.map(|(name, kind)| Column { name: name.into(), kind }));
        table
    }

    fn row(&self, series: &Series) -> Vec<Value> {
        let mut row = self.cells(series.group);
        row.push(if series.is_store { "stores" } else { "loads" }.into());
        row.push(series.references.into());
        row
    }

    /// What a group is.
    fn cells(&self, group: u32) -> Vec<Value> {
        if let (By::Array, Some(memory)) = (self.by(), self.memory()) {
            let array = &memory.arrays()[group as usize];
            return [&array.name, &array.shape, &array.place].map(|text| text.clone().into()).into();
        }
        let (id, index) = self.site(group);
        let block = &self.dictionary.trace.blocks()[id as usize];
        let address = block.address.wrapping_add(4 * index as u64);
        let function = self.dictionary.names.name(block.image, address);
        match self.by() {
            By::Instruction => {
                let text = isa::decode(block.words[index]).map(|one| one.disassemble(address).to_string());
                let place = self.dictionary.label(self.dictionary.facts(id).place, address);
                vec![address.into(), text.into(), place.into()]
            }
            By::Line | By::Walk => vec![self.line(id, index), function.function.clone().into()],
            By::Function => vec![function.function.clone().into(), function.image.clone().into()],
            By::Array | By::All => vec!["all".into()],
        }
    }

    /// The line of an instruction.
    pub(super) fn line(&self, id: BlockId, index: usize) -> Value {
        let block = &self.dictionary.trace.blocks()[id as usize];
        let line = self.dictionary.names.location(block.image, block.address.wrapping_add(4 * index as u64));
        let text = line.map(|at| match at.line {
            Some(line) => format!("{}:{line}", at.file),
            None => at.file,
        });
        text.into()
    }

    /// What a series is called, in a line.
    pub fn label(&self, series: &Series) -> String {
        format!("{}, {}", self.name(series), if series.is_store { "stores" } else { "loads" })
    }

    /// What its references are of.
    pub fn name(&self, series: &Series) -> String {
        let cells = self.cells(series.group);
        let name = match self.by() {
            By::Instruction => &cells[1..],
            _ => &cells[..1],
        };
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            _ => "?".into(),
        };
        let name: Vec<String> = name.iter().map(text).collect();
        name.join(" at ")
    }
}

impl By {
    fn noun(self) -> &'static str {
        match self {
            By::Instruction => "instruction",
            By::Line => "line",
            By::Walk => "line and array",
            By::Function => "function",
            By::Array => "array",
            By::All => "thread",
        }
    }
}

/// A place of a chart's axis, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Long strides down.
    Down(std::cmp::Reverse<u64>),
    /// A short stride.
    Short(i64),
    /// The other short strides.
    Rest,
    /// Long strides up.
    Up(u64),
}

impl Place {
    /// The place of a bin that has one of its own.
    fn of(range: Range) -> Place {
        match range.near {
            near if range.far == Some(near) => Place::Short(near),
            near if near < 0 => Place::Down(std::cmp::Reverse(near.unsigned_abs())),
            near => Place::Up(near.unsigned_abs()),
        }
    }

    /// Whether a bin is shown here.
    fn has(self, range: Range, places: &[Place]) -> bool {
        let own = Place::of(range);
        if places.contains(&own) { self == own } else { self == Place::Rest }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let short = |distance: u64| match distance {
            1024.. => format!("{}K", distance / 1024),
            _ => distance.to_string(),
        };
        match self {
            Place::Down(std::cmp::Reverse(distance)) => write!(f, "\u{2264} −{}", short(*distance)),
            Place::Short(stride) => write!(f, "{}", stride.to_string().replace('-', "−")),
            Place::Rest => f.write_str("other"),
            Place::Up(distance) => write!(f, "\u{2265} {}", short(*distance)),
        }
    }
}

/// The places that charts of these series need.
fn places(all: &[Series]) -> Vec<Place> {
    let mut places = Vec::new();
    for series in all {
        for Count { range, count, .. } in series.strides() {
            let place = Place::of(range);
            let is_short = matches!(place, Place::Short(_));
            let is_rare = is_short && share(count, series.references) < FREQUENT;
            places.push(if is_rare { Place::Rest } else { place });
        }
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// In percent.
fn share(count: u64, references: u64) -> f64 {
    100.0 * count as f64 / references as f64
}

/// The heading of a step.
fn back(step: u32) -> String {
    format!("{step} back")
}

/// A series' strides by step.
fn steps(series: &Series, depth: u32) -> Vec<Step> {
    let mut steps = vec![Step::new(); depth as usize];
    for Count { step, range, count } in series.strides() {
        steps[step as usize - 1].push((range, count));
    }
    steps
}

/// The most frequent strides, and their shares of all references.
fn most_frequent(mut step: Step, references: u64) -> String {
    step.sort_by_key(|&(range, count)| (std::cmp::Reverse(count), range));
    let shares = step.iter().map(|&(range, count)| (range, share(count, references)));
    let shown = shares.take(MOST_FREQUENT).filter(|(_, share)| *share >= 0.5);
    let shown: Vec<String> = shown.map(|(range, share)| format!("{range}: {share:.0} %")).collect();
    shown.join(", ")
}
