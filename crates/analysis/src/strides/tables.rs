//! Access patterns as tables.

use events::BlockId;

use super::classes::ClassStrides;
use super::{Count, Patterns, Series, StrideRange, StrideRows};
use crate::models::ExecutionPart;
use table::{Column, Kind, Table, Value, separated};

/// Strides of a step in the short table.
const MOST_FREQUENT: usize = 2;

/// A short stride has a bin of its own in charts from this share of a step of a series on, in percent.
const FREQUENT: f64 = 5.0;
/// A series is rare below this share of all references, in percent.
const RARE: f64 = 0.1;

/// The strides of a step of a series.
type StepStrides = Vec<(StrideRange, u64)>;

impl Patterns<'_> {
    /// One row for each series of a part of the execution, sorted by references, with its most frequent strides.
    pub fn table(&self, part: ExecutionPart) -> Table {
        let mut table = self.empty("strides", self.title());
        let depth = self.strides().options().depth;
        table.columns.extend((1..=depth).map(|step| Column { name: back(step), kind: Kind::Text }));
        for series in self.sorted(part) {
            let mut row = self.row(&series);
            let steps = steps(&series, depth);
            row.extend(steps.into_iter().map(|step| most_frequent(step, series.references).into()));
            table.row(row);
        }
        table.notes.extend(self.notes());
        table
    }

    /// One row for each stride of each series of a part of the execution.
    pub fn histograms(&self, part: ExecutionPart) -> Table {
        let mut table = self.empty("histograms", self.title());
        let more = [
            ("steps back", Kind::Count),
            ("from", Kind::Delta),
            ("to", Kind::Delta),
            ("count", Kind::Count),
            ("share", Kind::Percent(2)),
        ];
        table.columns.extend(more.map(|(name, kind)| Column { name: name.into(), kind }));
        for series in self.sorted(part) {
            let first = self.row(&series);
            for Count { step, range: StrideRange { near, far }, count } in series.strides() {
                let share = share(count, series.references);
                let more =
                    [u64::from(step).into(), near.into(), far.into(), count.into(), Value::from(share)];
                table.row(first.iter().cloned().chain(more).collect());
            }
        }
        table.notes.extend(self.notes());
        table
    }

    /// The series with most references, in whatever class of units of work, but for the rare ones.
    pub fn frequent(&self, most: usize) -> Vec<Series<'_>> {
        let parts = self.parts().into_iter().map(|(_, part)| part);
        let mut all: Vec<Series> = parts.flat_map(|part| self.sorted(part)).collect();
        all.sort_by_key(|series| std::cmp::Reverse(series.references));
        let references: u64 = all.iter().map(|series| series.references).sum();
        all.truncate(most);
        all.retain(|series| share(series.references, references) >= RARE);
        all
    }

    /// One table for the chart of each series: rows are the shares of strides, the same in all tables, and columns are the
    /// steps. Short strides that are rare in all series share a row.
    pub fn charts(&self, all: &[Series]) -> Vec<Table> {
        let bins = bins(all);
        let depth = self.strides().options().depth;
        let chart = |(number, series): (usize, &Series)| {
            let count = separated(&series.references.to_string());
            let title = format!("{}: {count} references", self.label(series));
            let mut table = Table::new(&format!("series-{number}"), title, &[("stride", Kind::Text)]);
            table.columns.extend((1..=depth).map(|step| Column { name: back(step), kind: Kind::Percent(1) }));
            let steps = steps(series, depth);
            for bin in &bins {
                let of = |step: &StepStrides| -> u64 {
                    let here = step.iter().filter(|(range, _)| bin.has(*range, &bins));
                    here.map(|(_, count)| count).sum()
                };
                let shares = steps.iter().map(|step| Value::from(share(of(step), series.references)));
                table.row(std::iter::once(bin.to_string().into()).chain(shares).collect());
            }
            table
        };
        all.iter().enumerate().map(chart).collect()
    }

    /// The classes of units of work, the one with most references first, and what is outside of units, with their names. Without
    /// classes, the whole execution.
    pub fn parts(&self) -> Vec<(String, ExecutionPart)> {
        self.classes().map_or_else(|| vec![(String::new(), ExecutionPart::Whole)], ClassStrides::parts)
    }

    /// All series of a part of the execution, the one with most references first.
    pub fn sorted(&self, part: ExecutionPart) -> Vec<Series<'_>> {
        let mut all: Vec<Series> = match self.classes() {
            Some(classes) => classes.series(part).collect(),
            None => self.strides().series().collect(),
        };
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
             --minimum-stride 0 does."
        );
        let heap = "Blocks of the heap are not distinguished, because the trace was recorded without --heap."
            .to_string();
        let is_counted_once = threshold > 0 && self.strides().options().depth > 1;
        let notes = [Some(share), is_counted_once.then_some(later), self.lacks_heap().then_some(heap)];
        notes.into_iter().flatten().collect()
    }

    fn empty(&self, name: &str, title: String) -> Table {
        let headings = match self.by() {
            StrideRows::Instruction => {
                &[("address", Kind::Address), ("instruction", Kind::Text), ("where", Kind::Text)][..]
            }
            StrideRows::Line | StrideRows::Walk => &[("line", Kind::Text), ("function", Kind::Text)],
            StrideRows::Function => &[("function", Kind::Text), ("image", Kind::Text)],
            StrideRows::Array => &[("array", Kind::Text), ("type", Kind::Text), ("where", Kind::Text)],
            StrideRows::Process => &[("process", Kind::Text)],
            // The class alone is shown.
            StrideRows::All if self.classes().is_some() => &[],
            StrideRows::All => &[("of", Kind::Text)],
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

    /// The noun for a group.
    fn cells(&self, group: u32) -> Vec<Value> {
        if let (StrideRows::Array, Some(memory)) = (self.by(), self.memory()) {
            let array = &memory.arrays()[group as usize];
            return [&array.name, &array.shape, &array.location].map(|text| text.clone().into()).into();
        }
        if self.by() == StrideRows::Process {
            return vec![self.process_name(group).into()];
        }
        if self.by() == StrideRows::All {
            return self.classes().map_or_else(|| vec!["all".into()], |_| Vec::new());
        }
        let (id, index) = self.site(group);
        let block = &self.dictionary.trace.blocks()[id as usize];
        let address = block.address_of(index);
        let function = self.dictionary.names.name(block.image, address);
        match self.by() {
            StrideRows::Instruction => {
                let text = block.disassemble(block.words[index], address);
                let label = self.dictionary.label(self.dictionary.facts(id).region, address);
                vec![address.into(), text.into(), label.into()]
            }
            StrideRows::Line | StrideRows::Walk => {
                vec![self.line(id, index), function.function.clone().into()]
            }
            StrideRows::Function => vec![function.function.clone().into(), function.image.clone().into()],
            StrideRows::Array | StrideRows::Process | StrideRows::All => vec!["all".into()],
        }
    }

    /// The line of an instruction.
    pub(super) fn line(&self, id: BlockId, index: usize) -> Value {
        let block = &self.dictionary.trace.blocks()[id as usize];
        let line = self.dictionary.names.location(block.image, block.address_of(index));
        let text = line.map(|at| match at.line {
            Some(line) => format!("{}:{line}", at.file),
            None => at.file,
        });
        text.into()
    }

    /// The name of a series, in one line.
    pub fn label(&self, series: &Series) -> String {
        let class = self.classes().map(|classes| classes.name(series.part).to_string());
        let kind = if series.is_store { "stores" } else { "loads" }.to_string();
        let names = [class, Some(self.name(series)).filter(|name| !name.is_empty()), Some(kind)];
        names.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The name of its group. With classes of units of work, all references of a thread have none.
    pub fn name(&self, series: &Series) -> String {
        let cells = self.cells(series.group);
        let name = match self.by() {
            StrideRows::Instruction => &cells[1..],
            _ => &cells[..cells.len().min(1)],
        };
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            _ => "?".into(),
        };
        let name: Vec<String> = name.iter().map(text).collect();
        name.join(" at ")
    }
}

impl StrideRows {
    fn noun(self) -> &'static str {
        match self {
            StrideRows::Instruction => "instruction",
            StrideRows::Line => "line",
            StrideRows::Walk => "line and array",
            StrideRows::Function => "function",
            StrideRows::Array => "array",
            StrideRows::Process => "process",
            StrideRows::All => "thread",
        }
    }
}

/// A bin of a chart's axis, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChartBin {
    /// Long strides down.
    Down(std::cmp::Reverse<u64>),
    /// A short stride.
    Short(i64),
    /// The other short strides.
    Rest,
    /// Long strides up.
    Up(u64),
}

impl ChartBin {
    /// The chart's bin for a range that has one of its own.
    fn of(range: StrideRange) -> ChartBin {
        match range.near {
            near if range.far == Some(near) => ChartBin::Short(near),
            near if near < 0 => ChartBin::Down(std::cmp::Reverse(near.unsigned_abs())),
            near => ChartBin::Up(near.unsigned_abs()),
        }
    }

    /// Whether a range is shown in this bin.
    fn has(self, range: StrideRange, bins: &[ChartBin]) -> bool {
        let own = ChartBin::of(range);
        if bins.contains(&own) { self == own } else { self == ChartBin::Rest }
    }
}

impl std::fmt::Display for ChartBin {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let short = |distance: u64| match distance {
            1024.. => format!("{}K", distance / 1024),
            _ => distance.to_string(),
        };
        match self {
            ChartBin::Down(std::cmp::Reverse(distance)) => write!(f, "\u{2264} −{}", short(*distance)),
            ChartBin::Short(stride) => write!(f, "{}", stride.to_string().replace('-', "−")),
            ChartBin::Rest => f.write_str("other"),
            ChartBin::Up(distance) => write!(f, "\u{2265} {}", short(*distance)),
        }
    }
}

/// The bins that charts of these series need.
fn bins(all: &[Series]) -> Vec<ChartBin> {
    let mut bins = Vec::new();
    for series in all {
        for Count { range, count, .. } in series.strides() {
            let bin = ChartBin::of(range);
            let is_short = matches!(bin, ChartBin::Short(_));
            let is_rare = is_short && share(count, series.references) < FREQUENT;
            bins.push(if is_rare { ChartBin::Rest } else { bin });
        }
    }
    bins.sort_unstable();
    bins.dedup();
    bins
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
fn steps(series: &Series, depth: u32) -> Vec<StepStrides> {
    let mut steps = vec![StepStrides::new(); depth as usize];
    for Count { step, range, count } in series.strides() {
        steps[step as usize - 1].push((range, count));
    }
    steps
}

/// The most frequent strides, and their shares of all references.
fn most_frequent(mut step: StepStrides, references: u64) -> String {
    step.sort_by_key(|&(range, count)| (std::cmp::Reverse(count), range));
    let shares = step.iter().map(|&(range, count)| (range, share(count, references)));
    let shown = shares.take(MOST_FREQUENT).filter(|(_, share)| *share >= 0.5);
    let shown: Vec<String> = shown.map(|(range, share)| format!("{range}: {share:.0} %")).collect();
    shown.join(", ")
}
