//! The study's tables, in the order of the paper's.

use analysis::mix::{self, Mix};
use analysis::paper;
use analysis::profile;
use analysis::statics;
use analysis::units::{PathLength, path_lengths};
use table::{Column, Kind, Table, Value};

use super::{ModeResult, Study, StudyRun, schemes};

/// The names of the builds in tables, as the paper has them.
pub(super) const LABELS: [&str; 2] = ["original", "byte/word"];

/// The path lengths of the paper: mode, original, byte/word (Tables 11 and 12; the sums of their
/// rows, which differ from two of the printed totals).
pub(super) fn paper_lengths() -> [(&'static str, u64, u64); 2] {
    let totals = |[a, b]: [Mix; 2]| (mix::total(&a), mix::total(&b));
    let (cached, scaled) = (totals(paper::cached()), totals(paper::scaled()));
    [("cached", cached.0, cached.1), ("scaled", scaled.0, scaled.1)]
}

/// The geometric mean of a run's path lengths.
pub(super) fn geometric_mean(run: &StudyRun) -> f64 {
    PathLength::of(&run.measurement.units).map_or(f64::NAN, |length| length.geometric_mean)
}

pub(super) fn summary(study: &Study) -> Vec<Table> {
    let mut tables = vec![answer(study), lengths(study), groups(study), biggest_changes(study)];
    tables.extend(schemes::disks(study));
    tables.push(schemes::throughput(study));
    tables
}

/// 1997 and today: instructions a transaction in both builds.
pub(super) fn answer(study: &Study) -> Table {
    let columns = [
        ("study", Kind::Text),
        ("mode", Kind::Text),
        ("original", Kind::Count),
        ("byte/word", Kind::Count),
        ("delta", Kind::Delta),
        ("% delta", Kind::Change(1)),
    ];
    let mut table = Table::new("answer", "Instructions a transaction", &columns);
    let mut row = |study: &str, mode: &str, a: f64, b: f64| {
        let (whole_a, whole_b) = (a.round() as i64, b.round() as i64);
        let delta = Value::Integer(whole_b - whole_a);
        let percent = Value::from(100.0 * (b - a) / a);
        table.row(vec![study.into(), mode.into(), whole_a.into(), whole_b.into(), delta, percent]);
    };
    for (mode, a, b) in paper_lengths() {
        if study.modes.iter().any(|result| result.mode.name == mode) {
            row("1997, SQL Server", mode, a as f64, b as f64);
        }
    }
    for result in &study.modes {
        let [a, b] = &result.runs;
        row("today, SQLite", result.mode.name, geometric_mean(a), geometric_mean(b));
    }
    table.notes.push("Today's figures are geometric means over the transactions measured.".into());
    table
}

/// Every run with its mode and build.
fn runs(study: &Study) -> impl Iterator<Item = (String, &StudyRun)> {
    let both = |result: &'_ ModeResult| -> Vec<String> {
        LABELS.iter().map(|label| format!("{}, {label}", result.mode.name)).collect()
    };
    study.modes.iter().flat_map(move |result| both(result).into_iter().zip(&result.runs))
}

pub(super) fn lengths(study: &Study) -> Table {
    let runs: Vec<(String, &StudyRun)> = runs(study).collect();
    let rows: Vec<_> = runs.iter().map(|(label, run)| (label.as_str(), &run.measurement)).collect();
    path_lengths("path-lengths", "Path lengths of the transactions measured", &rows)
}

/// One row a transaction: for the distribution.
pub(super) fn transactions(study: &Study) -> Table {
    let columns = [
        ("run", Kind::Text),
        ("transaction", Kind::Count),
        ("instructions", Kind::Count),
        ("system calls", Kind::Count),
    ];
    let mut table = Table::new("transactions", "Every transaction measured", &columns);
    for (label, run) in runs(study) {
        for unit in &run.measurement.units {
            let calls: u64 = unit.system_calls.iter().map(|(_, n)| n).sum();
            table.row(vec![label.clone().into(), unit.number.into(), unit.instructions.into(), calls.into()]);
        }
    }
    table
}

/// Groups of instructions, 1997's and today's (Table 13, Figure 4).
pub(super) fn groups(study: &Study) -> Table {
    let mut mixes: Vec<(String, Mix)> = Vec::new();
    for (mode, both) in [("cached", paper::cached()), ("scaled", paper::scaled())] {
        if study.modes.iter().any(|result| result.mode.name == mode) {
            let named = LABELS.iter().zip(both);
            mixes.extend(named.map(|(label, mix)| (format!("1997 {mode} {label}"), mix)));
        }
    }
    for result in &study.modes {
        let named = LABELS.iter().zip(&result.runs);
        mixes.extend(
            named.map(|(label, run)| (format!("today {} {label}", result.mode.name), run.profile.mix())),
        );
    }
    let mixes: Vec<(&str, &Mix)> = mixes.iter().map(|(label, mix)| (label.as_str(), mix)).collect();
    let title = "Instruction groups, share of a transaction (as Table 13 and Figure 4 of the paper)";
    mix::group_shares("groups", title, &mixes)
}

/// Instructions of a transaction in one mode, 1997's and today's (Tables 11 and 12).
pub(super) fn instructions(result: &ModeResult) -> Table {
    let [a, b] = &result.runs;
    let mode = result.mode.name;
    let (number, paper) = if mode == "scaled" { (11, paper::scaled()) } else { (12, paper::cached()) };
    let title = format!("Instructions of a {mode} transaction (as Table {number})");
    let name = format!("instructions-{mode}");
    let mut table = mix::difference(&name, &title, LABELS, &a.profile.mix(), &b.profile.mix());
    let beside = mix::difference("1997", "", LABELS, &paper[0], &paper[1]);
    for column in &beside.columns[1..] {
        table.columns.push(Column { name: format!("1997 {}", column.name), kind: column.kind });
    }
    for row in &mut table.rows {
        // What 1997 did not execute at all is missing there.
        let same = beside.rows.iter().find(|other| other[0] == row[0]);
        row.extend(same.map_or_else(|| vec![Value::Missing; 4], |other| other[1..].to_vec()));
    }
    table.notes.push("Means over the transactions measured, each rounded to whole instructions.".into());
    table.notes.push("In 1997 no-operations were counted under the instruction they are written as.".into());
    table
}

/// The instructions of a scaled transaction less those of a cached one (Table 14).
pub(super) fn scaled_minus_cached(study: &Study) -> Option<Table> {
    let of = |name: &str| study.modes.iter().find(|result| result.mode.name == name);
    let mixes = |result: &ModeResult| [result.runs[0].profile.mix(), result.runs[1].profile.mix()];
    let (scaled, cached) = (mixes(of("scaled")?), mixes(of("cached")?));
    let title = "A scaled transaction minus a cached one (as Table 14)";
    let (scaled, cached) = (scaled.each_ref(), cached.each_ref());
    Some(mix::scaled_minus_cached("scaled-minus-cached", title, LABELS, scaled, cached))
}

/// The share of each image in a transaction (Figure 1).
pub(super) fn image_shares(study: &Study) -> Table {
    let runs: Vec<(String, &StudyRun)> = runs(study).collect();
    let profiles: Vec<_> = runs.iter().map(|(label, run)| (label.as_str(), &run.profile)).collect();
    profile::image_shares("image-shares", "Images in a transaction (as Figure 1)", &profiles)
}

/// Functions of a transaction in one mode, the most changed first.
pub(super) fn functions(result: &ModeResult) -> Table {
    let [a, b] = &result.runs;
    let title = format!("Functions of a {} transaction, the most changed first", result.mode.name);
    let name = format!("functions-{}", result.mode.name);
    profile::function_differences(&name, &title, LABELS, &a.profile, &b.profile)
}

/// The functions that changed most, in the first mode.
pub(super) fn biggest_changes(study: &Study) -> Table {
    const SHOWN: usize = 12;
    let mut table = functions(&study.modes[0]);
    table.rows.truncate(SHOWN);
    table.total = false;
    table.name = "biggest-changes".into();
    table.title =
        format!("The {SHOWN} functions of a {} transaction that changed most", study.modes[0].mode.name);
    table
}

/// Input and output of a transaction: which system calls it makes, on average.
pub(super) fn system_calls(study: &Study) -> Table {
    let runs: Vec<(String, &StudyRun)> = runs(study).collect();
    let mut columns = vec![("system call", Kind::Text)];
    columns.extend(runs.iter().map(|(label, _)| (label.as_str(), Kind::Real(2))));
    let mut table = Table::new("system-calls", "System calls a transaction", &columns);
    let mut numbers: Vec<u32> = runs
        .iter()
        .flat_map(|(_, run)| {
            run.measurement.units.iter().flat_map(|unit| unit.system_calls.iter().map(|c| c.0))
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let set = runs.first().map_or(isa::INSTRUCTION_SETS[0], |(_, run)| run.counted.counts.instruction_set());
    for number in numbers {
        let mean = |run: &StudyRun| {
            let calls = run.measurement.units.iter().flat_map(|unit| &unit.system_calls);
            let sum: u64 = calls.filter(|call| call.0 == number).map(|call| call.1).sum();
            Value::from(sum as f64 / run.measurement.units.len() as f64)
        };
        let name = engine::system_call_name(set, number);
        let values = runs.iter().map(|(_, run)| mean(run));
        table.row(std::iter::once(name.into()).chain(values).collect());
    }
    table.notes.push(
        "pread64 reads a page, pwrite64 appends to the log, fsync makes the log durable. The checkpointer's \
         writes to the database happen between transactions."
            .into(),
    );
    table
}

/// Tables 7, 8, 9, 10 and 6 for today's images.
pub(super) fn images(study: &Study) -> Vec<Table> {
    let [original, byte_word] = &study.statics;
    let mut tables = vec![
        statics::images("images-byte-word", "Images of the byte/word build (as Table 7)", byte_word),
        statics::images("images-original", "Images of the original build (as Table 8)", original),
    ];
    // Both builds have the same images.
    if let Ok(pairs) = statics::pair(original.clone(), byte_word.clone()) {
        tables.extend([
            statics::differences("image-differences", "Byte/word images minus original (as Table 9)", &pairs),
            statics::changes(
                "image-changes",
                "Byte/word images against original, in percent (as Table 10)",
                &pairs,
            ),
            statics::instruction_differences(
                "static-differences",
                "Instructions in the images, byte/word minus original (as Table 6)",
                &pairs,
            ),
        ]);
    }
    tables
}

pub(super) fn all(study: &Study) -> Vec<Table> {
    let mut tables = vec![answer(study), lengths(study), groups(study), image_shares(study)];
    tables.extend(study.modes.iter().map(instructions));
    tables.extend(scaled_minus_cached(study));
    tables.extend(study.modes.iter().map(functions));
    tables.push(schemes::throughput(study));
    tables.extend(schemes::disks(study));
    tables.extend([schemes::causes(study), system_calls(study), transactions(study)]);
    tables.extend(images(study));
    tables.extend(paper::tables());
    tables.push(paper::findings());
    tables
}
