//! The speed of the cache and timing models, compared with qemu-alpha's cache plugin and cachegrind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use table::{Kind, Value};
use workloads::debian;

use crate::measure::{self, Job, MeasuredCommand, QEMU, SYSROOT, best};
use crate::record::BenchRecord;
use crate::server::succeed;
use crate::{Bench, Error, pathlength};

const COLUMNS: [(&str, Kind); 7] = [
    ("modelled", Kind::Text),
    ("run by", Kind::Text),
    ("sum s", Kind::Real(2)),
    ("millions of instructions a second", Kind::Real(0)),
    ("faster than qemu-alpha", Kind::Real(2)),
    ("elapsed s", Kind::Real(2)),
    ("millions a second of it", Kind::Real(0)),
];

/// The caches of QEMU's plugin and two translation buffers.
const FIVE: &str = r#"
base = "qemu"
[translation_buffers.itb]
holds = "instructions"
entries = 48
page = "8K"
miss_cycles = 30
[translation_buffers.dtb]
holds = "data"
entries = 64
page = "8K"
miss_cycles = 30
"#;

/// Where QEMU's own source has the plugin, and what it includes.
const PLUGIN: &str = "contrib/plugins/cache.c";
const HEADER: &str = "include/qemu/qemu-plugin.h";

/// Measures TPC-B under each model, live and from a trace.
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    let (pathlength, directory, loaded) = (&*pathlength()?, bench.directory(), &*bench.loaded);
    record.begin("models", "Models of caches and of time", &COLUMNS)?;
    let plugin = match plugin(directory) {
        Ok(plugin) => Some(plugin),
        Err(error) => {
            record.note(format!("QEMU's plugin for caches is left out: {error}"))?;
            None
        }
    };
    if let Some(plugin) = &plugin {
        record.note(same_misses(pathlength, plugin, &bench.hello.alpha, directory)?)?;
    }
    let five = directory.join("five.toml");
    fs::write(&five, FIVE)?;
    let instructions = instructions(pathlength, &bench.short, loaded, directory)?;
    let recorded = recorded(pathlength, &bench.short, loaded, directory)?;
    let live = runners(pathlength, plugin.as_deref(), &five);
    let runners = live.iter().map(|runner| (&bench.short, runner));
    let replays = replays(pathlength);
    let mut peer = f64::NAN;
    for (job, runner) in runners.chain(replays.iter().map(|runner| (&recorded, runner))) {
        eprintln!("{}: {}", job.title, runner.name);
        let run = || measure::measure(job, runner, loaded, directory);
        let (best, elapsed) = match best(bench.options.runs, |used, _| used.total(), run) {
            Ok((used, elapsed)) => (used.total(), elapsed),
            Err(error) => {
                record.note(format!("{}: {error}", runner.name))?;
                continue;
            }
        };
        if runner.name.starts_with(QEMU) {
            peer = best;
        }
        // The native program executes others.
        let speed = |seconds| if runner.is_native { f64::NAN } else { instructions as f64 / 1e6 / seconds };
        record.row(vec![
            job.title.clone().into(),
            runner.name.clone().into(),
            best.into(),
            Value::from(speed(best)),
            (peer / best).into(),
            elapsed.into(),
            Value::from(speed(elapsed)),
        ])?;
    }
    Ok(())
}

fn runners(pathlength: &Path, plugin: Option<&Path>, five: &Path) -> Vec<MeasuredCommand> {
    let runner = |name, command: &[&str]| MeasuredCommand::new(name, command);
    let (ours, five) = (&*pathlength.to_string_lossy(), &*five.to_string_lossy());
    let plugin = plugin.map(|plugin| {
        let options = format!("{},l2=true", plugin.display());
        runner("qemu-alpha, L1 I, L1 D and L2", &[QEMU, "-plugin", &options, "-L", SYSROOT])
    });
    // As large as QEMU's.
    let sizes = ["--I1=16384,8,64", "--D1=16384,8,64", "--LL=2097152,16,64"];
    let grind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"];
    let one = ["--host-processors", "1"];
    let two = ["--host-processors", "2"];
    let caches = |machine, processors: [&'static str; 2]| {
        [&[ours, "caches", "--machine", machine][..], &processors].concat()
    };
    let time = |processors| [&[ours, "time", "--machine", "alphastation500"][..], processors].concat();
    let curves = [&[ours, "mrc"][..], &one].concat();
    let two_curves = [&[ours, "mrc", "--streams", "code,data"][..], &one].concat();
    let cachegrind =
        MeasuredCommand { is_native: true, ..runner("cachegrind, natively", &[&grind[..], &sizes].concat()) };
    plugin
        .into_iter()
        .chain([
            cachegrind,
            runner("pathlength caches, the same", &caches("qemu", one)),
            runner("and both translation buffers", &caches(five, one)),
            runner("and on two processors", &caches(five, two)),
            runner("pathlength caches, alphastation500", &caches("alphastation500", one)),
            runner("pathlength mrc", &curves),
            runner("of code and of data only", &two_curves),
            runner("pathlength time, alphastation500", &time(&one)),
            runner("and on two processors", &time(&two)),
        ])
        .collect()
}

/// The models on a trace.
fn replays(pathlength: &Path) -> [MeasuredCommand; 2] {
    let ours = &*pathlength.to_string_lossy();
    [
        MeasuredCommand::new(
            "pathlength caches, those of QEMU's plugin",
            [ours, "caches", "--machine", "qemu"],
        ),
        MeasuredCommand::new("pathlength mrc", [ours, "mrc"]),
    ]
}

/// A job that is the trace of one.
fn recorded(pathlength: &Path, job: &Job, loaded: &Path, directory: &Path) -> Result<Job, Error> {
    let trace = directory.join("models.trace");
    measure::measure(
        job,
        &MeasuredCommand::writing("pathlength trace", pathlength, &["trace"], &trace),
        loaded,
        directory,
    )?;
    let title = format!("{}, recorded", job.title);
    Ok(Job { title, native: trace.clone(), alpha: trace, arguments: Vec::new() })
}

/// How many instructions a job executes.
fn instructions(pathlength: &Path, job: &Job, loaded: &Path, directory: &Path) -> Result<u64, Error> {
    let counts = directory.join("counts.csv");
    let words = ["count", "--by", "function", "--format", "csv"];
    let runner = MeasuredCommand::writing("pathlength count", pathlength, &words, &counts);
    measure::measure(job, &runner, loaded, directory)?;
    let text = fs::read_to_string(counts)?;
    let total = text.lines().last().and_then(|line| line.split(',').nth(2)?.parse().ok());
    Ok(total.ok_or("the counts have no total")?)
}

/// QEMU's plugin, compiled from Debian's source package in a directory.
fn plugin(directory: &Path) -> Result<PathBuf, Error> {
    let archive = debian::download(Path::new("build/sources"), "qemu", "https://www.qemu.org", &|_| {})?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(archive).args(["--strip-components=1", "--wildcards", "-C"]).arg(directory);
    succeed(unpack.args([PLUGIN, HEADER].map(|path| format!("*/{path}"))))?;
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "glib-2.0"]).output();
    let flags = flags.ok().filter(|output| output.status.success());
    let flags = flags.ok_or("it needs GLib: install libglib2.0-dev and pkg-config")?.stdout;
    let plugin = directory.join("libcache.so");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&plugin).arg(directory.join(PLUGIN)).arg("-I");
    compile.arg(directory.join("include/qemu")).args(String::from_utf8(flags)?.split_whitespace());
    succeed(&mut compile)?;
    Ok(plugin)
}

/// Says that a program's misses are the same, or fails.
fn same_misses(pathlength: &Path, plugin: &Path, program: &Path, directory: &Path) -> Result<String, Error> {
    let (log, ours) = (directory.join("plugin.log"), directory.join("misses.csv"));
    let mut qemu = Command::new(QEMU);
    qemu.args(["-seed", "0", "-L", SYSROOT, "-d", "plugin", "-D"]).arg(&log).arg("-plugin");
    succeed(qemu.env_clear().arg(format!("{},l2=true", plugin.display())).arg(program))?;
    let mut caches = Command::new(pathlength);
    caches.env_clear().args(["caches", "--machine", "qemu", "--format", "csv", "-o"]).arg(&ours);
    succeed(caches.arg(program))?;
    let text = fs::read_to_string(log)?;
    // Accesses to data, misses, ratio; then of instructions, and of the second level.
    let row: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    let of_qemu = [5, 2, 8].map(|column| row.get(column).and_then(|cell| cell.parse::<u64>().ok()));
    let text = fs::read_to_string(ours)?;
    let mut rows = text.lines().skip(1).map(|row| row.split(',').nth(3)?.parse::<u64>().ok());
    let of_ours = [rows.next(), rows.next(), rows.next()].map(Option::flatten);
    match (of_qemu, of_ours) {
        ([Some(_), Some(_), Some(_)], _) if of_qemu == of_ours => {
            let [code, data, second] = of_ours.map(Option::unwrap_or_default);
            Ok(format!(
                "QEMU's plugin finds the same misses of hello: {code} L1 I, {data} L1 D, {second} L2."
            ))
        }
        _ => {
            Err(format!("of L1 I, L1 D and L2 QEMU's plugin has {of_qemu:?} misses, and we {of_ours:?}")
                .into())
        }
    }
}
