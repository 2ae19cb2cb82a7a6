//! The summary as tables.

use events::BlockId;

use super::{
    EventKind, Kinds, LineUse, Summary, SummaryTotals, SummaryUnit, ThreadSummary, TimeWindow, pages_of,
};
use crate::environment::describe_environment;
use crate::mix::{self, Mix};
use crate::profile::{self, Attribution, Profile};
use crate::replay::text::{describe, host_process, thread};
use crate::units::sorted_by_number;
use table::{Kind as Column, Table, Value, separated};
use trace::ExecutionMode;

/// The upper bounds of the rows of a histogram; one more row has all larger sizes.
const SIZES: [usize; 19] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256, 1024];

impl Summary<'_> {
    /// All tables. `system_call` maps the numbers of system calls to names.
    pub fn tables(mut self, system_call: &dyn Fn(u32) -> String) -> Vec<Table> {
        self.end();
        let profile = self.profile();
        let mix = self.mix();
        let mut tables = vec![
            self.recording(),
            self.threads(),
            profile::image_shares("images", "Images", &[("instructions", &profile)]),
            mix::group_shares("groups", "Instruction groups", &[("share", &mix)]),
            self.kinds_table(),
            self.block_sizes(),
            self.line_use(),
            self.line_shares(),
            self.page_use(),
            self.working_set(),
            self.unaligned(),
            self.system_calls(system_call),
            mix::single("instructions", "Instructions", &mix),
            profile::functions("functions", "Functions", &profile),
            self.units(),
        ];
        if let Some(modes) = &self.modes {
            // After the threads.
            let of_system = [self.by_mode(), modes.entries(), modes.system_calls(system_call)];
            tables.splice(2..2, of_system);
        }
        if self.processes.iter().any(|process| process.code.is_full() || process.data.is_full()) {
            let note =
                "More than 4 GiB of memory was touched by a process; the rest of it is not counted here.";
            let memory = ["line-use", "line-shares", "page-use", "working-set"];
            let partial = tables.iter_mut().filter(|table| memory.contains(&table.name.as_str()));
            partial.for_each(|table| table.notes.push(note.into()));
        }
        tables
    }

    /// The totals from which results other than the tables are made.
    pub fn totals(mut self) -> SummaryTotals {
        self.end();
        let blocks = self.dictionary.trace.blocks();
        let whole = self.counts.whole.iter().enumerate().flat_map(|(block, &times)| {
            (0..blocks[block].words.len()).map(move |index| (block as BlockId, index, times))
        });
        let parts = self.counts.parts.iter();
        let parts = parts.flat_map(|(&block, counts)| {
            counts.iter().enumerate().map(move |(at, &times)| (block, at, times))
        });
        SummaryTotals {
            mean_block: self.basic_blocks.mean(),
            executions: whole.chain(parts).filter(|(_, _, times)| *times > 0).collect(),
        }
    }

    /// Executions of whole blocks and of their parts, by block.
    fn profile(&self) -> Profile {
        let blocks = self.dictionary.trace.blocks();
        let attribution = Attribution::of(blocks, self.dictionary.names);
        let whole = self.counts.whole.iter().enumerate().filter(|(_, n)| **n != 0);
        let mut profile = attribution.profile(whole.map(|(id, n)| (id as BlockId, *n as f64)));
        for (&id, counts) in &self.counts.parts {
            let block = &blocks[id as usize];
            let image = self.dictionary.names.image(block.image);
            for (index, &count) in counts.iter().enumerate().filter(|(_, count)| **count != 0) {
                let address = block.address_of(index);
                let function = self.dictionary.names.name(block.image, address);
                let times = count as f64;
                *profile
                    .instructions
                    .entry(mix::name(block.instruction_set, block.words[index]))
                    .or_default() += times;
                *profile.functions.entry((*function).clone()).or_default() += times;
                *profile.images.entry(image.clone()).or_default() += times;
                profile.total += times;
            }
        }
        profile
    }

    /// The instruction mix, exact.
    fn mix(&self) -> Mix {
        let mut mix = Mix::new();
        let (set, blocks) = (self.dictionary.trace.instruction_set(), self.dictionary.trace.blocks());
        let whole = blocks.iter().zip(&self.counts.whole).filter(|(_, times)| **times != 0);
        let whole = whole.flat_map(|(block, &times)| block.words.iter().map(move |&word| (word, times)));
        let parts = self.counts.parts.iter();
        let parts = parts
            .flat_map(|(&id, counts)| blocks[id as usize].words.iter().copied().zip(counts.iter().copied()));
        for (word, times) in whole.chain(parts).filter(|(_, times)| *times != 0) {
            *mix.entry(mix::name(set, word)).or_default() += times;
        }
        mix
    }

    fn total(&self) -> Kinds {
        let mut total = Kinds::default();
        self.streams.iter().for_each(|stream| total.add_times(&stream.kinds, 1));
        total
    }

    fn recording(&self) -> Table {
        let trace = self.dictionary.trace;
        let header = trace.header();
        let program = header.program.display().to_string();
        let command = std::iter::once(program).chain(header.arguments.iter().cloned());
        let values = if header.has_values { "recorded" } else { "not recorded" };
        let mut table = Table::new("trace", "The trace", &[("what", Column::Text), ("value", Column::Text)]);
        let mut row = |what: &str, value: String| table.row(vec![what.into(), value.into()]);
        row("program", command.collect::<Vec<_>>().join(" "));
        row("processor", header.cpu.clone());
        row("values", values.into());
        row("environment", header.environment.as_ref().map_or("not recorded".into(), describe_environment));
        row("unit of work", header.unit.clone().unwrap_or_else(|| "none".into()));
        row("blocks", trace.blocks().len().to_string());
        row("chunks", trace.chunks().len().to_string());
        table
    }

    fn threads(&self) -> Table {
        const COUNTED: [(EventKind, &str); 6] = [
            (EventKind::Instruction, "instructions"),
            (EventKind::Load, "loads"),
            (EventKind::Store, "stores"),
            (EventKind::Conditional, "branches"),
            (EventKind::Call, "calls"),
            (EventKind::System, "system calls"),
        ];
        let mut columns = vec![("thread", Column::Text), ("process number", Column::Text)];
        columns.extend(COUNTED.map(|(_, name)| (name, Column::Count)));
        let mut table = Table::new("threads", "Threads, by process and thread", &columns);
        let trace = self.dictionary.trace;
        let counts = |kinds: &Kinds| COUNTED.map(|(kind, _)| Value::from(kinds.get(kind)));
        let ran = |counted: &ThreadSummary| counted.kinds.get(EventKind::Instruction) > 0;
        let mut threads: Vec<_> =
            trace.streams().iter().zip(&self.streams).filter(|(_, one)| ran(one)).collect();
        threads.sort_by_key(|(stream, _)| (stream.process, stream.thread));
        for (stream, counted) in threads {
            let host = host_process(trace, stream).to_string();
            let mut row = vec![thread(stream).into(), host.into()];
            row.extend(counts(&counted.kinds));
            table.row(row);
        }
        let mut row = vec!["total".into(), Value::Missing];
        row.extend(counts(&self.total()));
        table.total_row(row);
        table
    }

    /// Instructions and what they do, by the mode in which they are executed.
    fn by_mode(&self) -> Table {
        const COUNTED: [(EventKind, &str); 4] = [
            (EventKind::Load, "loads"),
            (EventKind::Store, "stores"),
            (EventKind::Conditional, "branches"),
            (EventKind::Call, "calls"),
        ];
        let mut columns =
            vec![("mode", Column::Text), ("instructions", Column::Count), ("share", Column::Percent(1))];
        columns.extend(COUNTED.map(|(_, name)| (name, Column::Percent(1))));
        let mut table = Table::new("modes", "Modes", &columns);
        let header = self.dictionary.trace.header();
        let mut sums = [Kinds::default(); ExecutionMode::ALL.len()];
        for (facts, (kinds, &times)) in
            self.dictionary.blocks.iter().zip(self.kinds.iter().zip(&self.counts.whole))
        {
            sums[header.mode(facts.address) as usize].add_times(kinds, times);
        }
        for (&id, counts) in &self.counts.parts {
            let block = &self.dictionary.trace.blocks()[id as usize];
            let of_mode = &mut sums[header.mode(block.address) as usize];
            for (&word, &times) in block.words.iter().zip(counts) {
                of_mode.add_times(&Kinds::of_word(block.instruction_set, word), times);
            }
        }
        let mut total = Kinds::default();
        sums.iter().for_each(|kinds| total.add_times(kinds, 1));
        let instructions = |kinds: &Kinds| kinds.get(EventKind::Instruction);
        let row = |name: &str, kinds: &Kinds| {
            let mut row = vec![
                name.into(),
                instructions(kinds).into(),
                share(instructions(kinds), instructions(&total)),
            ];
            row.extend(COUNTED.map(|(kind, _)| share(kinds.get(kind), instructions(kinds))));
            row
        };
        for (mode, kinds) in ExecutionMode::ALL.into_iter().zip(&sums) {
            table.row(row(mode.name(), kinds));
        }
        table.total_row(row("total", &total));
        table.notes.push("Loads and so on: of the mode's instructions.".into());
        table
    }

    fn kinds_table(&self) -> Table {
        let columns =
            [("kind", Column::Text), ("count", Column::Count), ("of instructions", Column::Percent(2))];
        let mut table = Table::new("kinds", "Accesses and transfers of control", &columns);
        let total = self.total();
        for (kind, name) in EventKind::ALL {
            let count = total.get(kind);
            table.row(vec![name.into(), count.into(), share(count, total.get(EventKind::Instruction))]);
        }
        table
    }

    fn block_sizes(&self) -> Table {
        let columns = [
            ("instructions", Column::Text),
            ("basic blocks", Column::Count),
            ("share", Column::Percent(1)),
            ("runs", Column::Count),
            ("share of runs", Column::Percent(1)),
        ];
        let title = "Sizes of basic blocks, and of runs between transfers that were taken";
        let mut table = Table::new("block-sizes", title, &columns);
        let both = [&self.basic_blocks, &self.runs];
        let mut first = 1;
        for last in SIZES.into_iter().chain([usize::MAX]) {
            let heading = match last {
                usize::MAX => format!("{first} and more"),
                _ if last == first => last.to_string(),
                _ => format!("{first} to {last}"),
            };
            let mut row = vec![heading.into()];
            for sizes in both {
                let count = sizes.of(first..=last);
                row.extend([count.into(), share(count, sizes.count())]);
            }
            table.row(row);
            first = last.saturating_add(1);
        }
        let mut row = vec!["total".into()];
        both.into_iter()
            .for_each(|sizes| row.extend([sizes.count().into(), share(sizes.count(), sizes.count())]));
        table.total_row(row);
        for (name, sizes) in [("Basic blocks", &self.basic_blocks), ("Runs", &self.runs)] {
            if let Some(mean) = sizes.mean() {
                let largest = sizes.largest();
                table.notes.push(format!("{name}: {mean:.2} instructions in the mean, {largest} at most."));
            }
        }
        table.notes.push(
            "A basic block ends with an instruction that may transfer control or that calls the system, a run \
             with a transfer of control that was taken. What is not shown, signals and gaps cut both short."
                .into(),
        );
        table
    }

    fn unaligned(&self) -> Table {
        let columns = [
            ("function", Column::Text),
            ("image", Column::Text),
            ("source", Column::Text),
            ("address", Column::Address),
            ("instruction", Column::Text),
            ("accesses", Column::Count),
        ];
        let mut table = Table::new("unaligned", "Unaligned accesses", &columns);
        let mut sites: Vec<_> = self.counts.unaligned.iter().map(|(site, count)| (*count, *site)).collect();
        sites.sort_unstable_by_key(|&(count, site)| (std::cmp::Reverse(count), site));
        let names = self.dictionary.names;
        for (count, (id, index)) in sites {
            let block = &self.dictionary.trace.blocks()[id as usize];
            let address = block.address_of(index as usize);
            let name = names.name(block.image, address);
            let text = block.disassemble(block.words[index as usize], address);
            table.row(vec![
                name.function.clone().into(),
                name.image.clone().into(),
                names.location(block.image, address).map(|source| describe(&source)).into(),
                Value::Integer(address.cast_signed()),
                text.into(),
                count.into(),
            ]);
        }
        let total = self.counts.unaligned.values().sum::<u64>();
        let mut row = vec![Value::from("total")];
        row.extend([Value::Missing, Value::Missing, Value::Missing, Value::Missing, total.into()]);
        table.total_row(row);
        table
    }

    /// The uses of cache lines: what, over which time, and how much.
    fn line_uses(&self) -> Vec<(&'static str, &'static str, LineUse)> {
        let mut whole = [&self.code_lines, &self.data_lines]
            .map(|lines| lines.iter().map(|one| LineUse::new(one.line)).collect::<Vec<_>>());
        for process in &self.processes {
            process.code.whole(&mut whole[0]);
            process.data.whole(&mut whole[1]);
        }
        let [code, data] = whole;
        let of = |what, time, uses: Vec<LineUse>| uses.into_iter().map(move |one| (what, time, one));
        of("instructions", "a window", self.code_lines.clone())
            .chain(of("instructions", "all", code))
            .chain(of("data", "a window", self.data_lines.clone()))
            .chain(of("data", "all", data))
            .collect()
    }

    fn line_use(&self) -> Table {
        let columns = [
            ("lines of", Column::Text),
            ("line size", Column::Count),
            ("touched in", Column::Text),
            ("lines", Column::Count),
            ("bytes used", Column::Count),
            ("used of a line", Column::Real(1)),
            ("share used", Column::Percent(1)),
        ];
        let mut table =
            Table::new("line-use", "Cache lines: how many are touched, and how much of each", &columns);
        for (what, time, one) in self.line_uses() {
            table.row(vec![
                what.into(),
                one.line.into(),
                time.into(),
                one.lines.into(),
                one.bytes.into(),
                (one.bytes as f64 / one.lines as f64).into(),
                share(one.bytes, one.lines * one.line),
            ]);
        }
        table.notes.push(format!(
            "A line is counted once in a window of {} instructions however often it is touched there, and its \
             bytes that are touched there are its used ones; the windows are added up. All: one window, as \
             long as everything shown.",
            separated(&self.options.window.to_string())
        ));
        table
    }

    fn line_shares(&self) -> Table {
        let mut columns =
            vec![("lines of", Column::Text), ("line size", Column::Count), ("touched in", Column::Text)];
        let names: Vec<String> = (1..=8).map(|eighth| format!("{eighth}/8")).collect();
        columns.extend(names.iter().map(|name| (name.as_str(), Column::Percent(1))));
        let title = "Cache lines by the part of them that is used, rounded up to eighths";
        let mut table = Table::new("line-shares", title, &columns);
        for (what, time, one) in self.line_uses() {
            let mut row = vec![what.into(), one.line.into(), time.into()];
            row.extend(one.eighths.iter().map(|&lines| share(lines, one.lines)));
            table.row(row);
        }
        table
    }

    fn page_use(&self) -> Table {
        let columns = [
            ("page size", Column::Count),
            ("pages of", Column::Text),
            ("in all", Column::Count),
            ("a window, mean", Column::Real(1)),
            ("a window, largest", Column::Count),
        ];
        let mut table = Table::new("page-use", "Pages touched", &columns);
        let granules: Vec<_> =
            self.processes.iter().map(|process| (process.code.granules(), process.data.granules())).collect();
        for (index, &size) in self.options.page_sizes.iter().enumerate() {
            let all = granules.iter().map(|(code, data)| pages_of(code, data, size));
            let all = all.fold([0; 3], |sum, one| [0, 1, 2].map(|kind: usize| sum[kind] + one[kind]));
            for (kind, what) in ["instructions", "data", "either"].into_iter().enumerate() {
                let windows = || self.windows.iter().map(|window| window.pages[index][kind]);
                let mean = windows().sum::<u64>() as f64 / self.windows.len() as f64;
                let largest = windows().max().unwrap_or(0);
                table.row(vec![size.into(), what.into(), all[kind].into(), mean.into(), largest.into()]);
            }
        }
        table.notes.push(format!("Windows of {} instructions.", separated(&self.options.window.to_string())));
        table
    }

    fn working_set(&self) -> Table {
        let sizes = self.options.page_sizes.iter().map(|&size| page_name(size));
        let names: Vec<String> =
            sizes.flat_map(|size| ["instructions", "data"].map(|what| format!("{what} ({size})"))).collect();
        let mut columns = vec![("from instruction", Column::Count), ("instructions", Column::Count)];
        columns.extend(names.iter().map(|name| (name.as_str(), Column::Count)));
        let title = "Pages touched in each window of time, by page size";
        let mut table = Table::new("working-set", title, &columns);
        let mut first = 1;
        for TimeWindow { instructions, pages } in &self.windows {
            let mut row = vec![first.into(), (*instructions).into()];
            row.extend(
                pages.iter().flat_map(|[code, data, _]| [code, data]).map(|&count| Value::from(count)),
            );
            table.row(row);
            first += instructions;
        }
        table
    }

    fn system_calls(&self, name: &dyn Fn(u32) -> String) -> Table {
        let columns = [("system call", Column::Text), ("number", Column::Count), ("calls", Column::Count)];
        let mut table = Table::new("system-calls", "System calls", &columns);
        let mut calls: Vec<_> = self.system_calls.iter().map(|(number, count)| (*count, *number)).collect();
        calls.sort_unstable_by_key(|&(count, number)| (std::cmp::Reverse(count), number));
        for (count, number) in calls {
            table.row(vec![name(number).into(), u64::from(number).into(), count.into()]);
        }
        table.total_row(vec!["total".into(), Value::Missing, self.system_calls.values().sum::<u64>().into()]);
        table
    }

    fn units(&self) -> Table {
        let columns = [
            ("unit", Column::Count),
            ("thread", Column::Text),
            ("from instruction", Column::Count),
            ("instructions", Column::Count),
            ("ended by", Column::Text),
        ];
        let mut table = Table::new("units", "Units of work", &columns);
        let streams = self.dictionary.trace.streams();
        for SummaryUnit { number, stream, before, after, ended_by } in
            sorted_by_number(&self.units, |unit| unit.number)
        {
            table.row(vec![
                (*number).into(),
                thread(&streams[*stream as usize]).into(),
                before.saturating_add(1).into(),
                after.map(|after| after.saturating_sub(*before)).into(),
                (*ended_by).into(),
            ]);
        }
        table
    }
}

fn page_name(size: u64) -> String {
    if size >= 1 << 20 { format!("{} MB", size >> 20) } else { format!("{} KB", size >> 10) }
}

fn share(part: u64, whole: u64) -> Value {
    Value::from(100.0 * part as f64 / whole as f64)
}
