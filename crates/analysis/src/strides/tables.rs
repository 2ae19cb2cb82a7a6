//! Access patterns as tables.

use super::{By, Count, Patterns, Range, Series};
use crate::table::{Column, Kind, Table, Value, separated};

/// How many strides of a step the short table has.
const MOST_FREQUENT: usize = 2;

/// Charts leave out strides that are less than this share of every series, in percent.
const RARE: f64 = 0.5;

/// How often strides occurred in a step of a series.
type Step = Vec<(Range, u64)>;

impl Patterns<'_> {
    /// A row for each series, the one with most references first: what its most frequent strides are.
    pub fn table(&self) -> Table {
        let mut table = self.empty("strides", self.title());
        let depth = self.options.depth;
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
                let share = 100.0 * count as f64 / series.references as f64;
                let more =
                    [u64::from(step).into(), near.into(), far.into(), count.into(), Value::from(share)];
                table.row(first.iter().cloned().chain(more).collect());
            }
        }
        table.notes.extend(self.notes());
        table
    }

    /// What charts show: a table for each of the first series, with the shares of the same strides as rows and the
    /// steps as columns. Strides that are rare in all of them are left out.
    pub fn charts(&self, most: usize) -> Vec<Table> {
        let all: Vec<Series> = self.sorted().into_iter().take(most).collect();
        let share = |series: &Series, count: u64| 100.0 * count as f64 / series.references as f64;
        let mut ranges: Vec<Range> = Vec::new();
        for series in &all {
            let frequent = series.strides().filter(|one| share(series, one.count) >= RARE);
            ranges.extend(frequent.map(|one| one.range));
        }
        ranges.sort_unstable();
        ranges.dedup();
        let depth = self.options.depth;
        let chart = |(number, series): (usize, &Series)| {
            let title =
                format!("{}, {} references", self.label(series), separated(&series.references.to_string()));
            let mut table = Table::new(&format!("series-{number}"), title, &[("stride", Kind::Text)]);
            table.columns.extend((1..=depth).map(|step| Column { name: back(step), kind: Kind::Percent(1) }));
            let steps = steps(series, depth);
            for range in &ranges {
                let of =
                    |step: &Step| step.iter().find(|(one, _)| one == range).map_or(0, |(_, count)| *count);
                let shares = steps.iter().map(|step| Value::from(share(series, of(step))));
                table.row(std::iter::once(range.to_string().into()).chain(shares).collect());
            }
            table
        };
        all.iter().enumerate().map(chart).collect()
    }

    /// All series, the one with most references first.
    pub fn sorted(&self) -> Vec<Series<'_>> {
        let mut all: Vec<Series> = self.strides.series().collect();
        all.sort_by_key(|series| std::cmp::Reverse(series.references));
        all
    }

    fn title(&self) -> String {
        let unit = if self.options.bins.in_elements { "elements" } else { "bytes" };
        format!("Strides between references of the same {}, in {unit}", self.by.noun())
    }

    fn notes(&self) -> Vec<String> {
        let threshold = self.options.threshold;
        let share = "Shares are of the references of the row.".to_string();
        let later = format!(
            "A reference whose stride is less than {threshold} bytes is not compared with earlier ones; \
             --all-references does."
        );
        std::iter::once(share).chain((threshold > 0 && self.options.depth > 1).then_some(later)).collect()
    }

    fn empty(&self, name: &str, title: String) -> Table {
        let headings = match self.by {
            By::Instruction => {
                &[("address", Kind::Address), ("instruction", Kind::Text), ("where", Kind::Text)][..]
            }
            By::Line => &[("line", Kind::Text), ("function", Kind::Text)],
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
        if let (By::Array, Some(memory)) = (self.by, &self.memory) {
            let array = &memory.arrays()[group as usize];
            return [&array.name, &array.shape, &array.place].map(|text| text.clone().into()).into();
        }
        let (id, index) = self.first[group as usize];
        let block = &self.dictionary.trace.blocks()[id as usize];
        let address = block.address.wrapping_add(4 * index as u64);
        let function = self.dictionary.names.name(block.image, address);
        match self.by {
            By::Instruction => {
                let text = isa::decode(block.words[index]).map(|one| one.disassemble(address).to_string());
                let place = self.dictionary.label(self.dictionary.facts(id).place, address);
                vec![address.into(), text.into(), place.into()]
            }
            By::Line => {
                let line = self.dictionary.names.location(block.image, address);
                let line = line.map(|at| match at.line {
                    Some(line) => format!("{}:{line}", at.file),
                    None => at.file,
                });
                vec![line.into(), function.function.clone().into()]
            }
            By::Function => vec![function.function.clone().into(), function.image.clone().into()],
            By::Array | By::All => vec!["all".into()],
        }
    }

    /// What a series is called, in a line.
    pub fn label(&self, series: &Series) -> String {
        let cells = self.cells(series.group);
        let name = match self.by {
            By::Instruction => &cells[1..],
            _ => &cells[..1],
        };
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            _ => "?".into(),
        };
        let name: Vec<String> = name.iter().map(text).collect();
        format!("{}, {}", name.join(" at "), if series.is_store { "stores" } else { "loads" })
    }
}

impl By {
    fn noun(self) -> &'static str {
        match self {
            By::Instruction => "instruction",
            By::Line => "line",
            By::Function => "function",
            By::Array => "array",
            By::All => "thread",
        }
    }
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
    let share = |count: u64| 100.0 * count as f64 / references as f64;
    let shown = step.iter().take(MOST_FREQUENT).filter(|(_, count)| share(*count) >= 0.5);
    let shown: Vec<String> = shown.map(|&(range, count)| format!("{range}: {:.0} %", share(count))).collect();
    shown.join(", ")
}
