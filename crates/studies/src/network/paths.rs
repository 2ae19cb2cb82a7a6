//! The stack's paths as counts: instructions, loads and stores of each step, by form of the stack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::names::Names;
use events::Counts;
use session::forked_run::{self, ForkedRun};
use session::measure::{self, CountRequest, Counted, Ending};
use workloads::build::{Build, BuildFolders, build};
use workloads::toolchain::BYTE_WORD;
use workloads::workload::Workload;

use crate::environment::{check_library, processor, repeatable};

/// The settings of the runs.
#[derive(Clone, Debug)]
pub struct PathSettings {
    /// The bytes that each run sends or receives.
    pub bytes: u64,
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// A path of data through the stack.
#[derive(Clone, Debug)]
pub struct CountedPath {
    pub form: &'static str,
    pub direction: &'static str,
    /// By step, in the order of [`STEPS`]: instructions, loads and stores for 1,000 bytes.
    pub steps: [[f64; 3]; STEPS.len()],
}

/// The forms of the stack, by the arguments of the program.
const FORMS: [(&str, &[&str]); 4] = [
    ("traditional", &[]),
    ("checksums by hardware", &["checksum=1"]),
    ("segmentation by hardware", &["checksum=1", "tso=1"]),
    ("DART", &["dart=1"]),
];

const DIRECTIONS: [&str; 2] = ["send", "receive"];

/// The steps of a path. The application creates data, or checks what it received.
pub const STEPS: [&str; 9] = [
    "application",
    "sockets",
    "copy",
    "buffers (mbufs)",
    "checksum",
    "TCP",
    "IP and link",
    "driver",
    "C library and other",
];

/// The prefixes of files of source that are a step's, and its index.
const FILES: [(&str, usize); 23] = [
    ("transfer.c", 0),
    ("pattern", 0),
    ("host_peer", 0),
    ("sock", 1),
    ("uio", 2),
    ("mbuf", 3),
    ("checksum", 4),
    ("tcp", 5),
    ("pcb", 5),
    ("udp", 6),
    ("ip", 6),
    ("icmp", 6),
    ("arp", 6),
    ("ether", 6),
    ("if", 6),
    ("loopback", 6),
    ("network", 6),
    ("tap", 7),
    ("dart", 7),
    ("driver", 7),
    ("impairment", 7),
    ("namespace", 7),
    ("virtio", 7),
];

/// The functions of the C library that copy bytes.
const COPIES: [&str; 3] = ["memcpy", "memmove", "_wordcopy"];

/// Counts every path; the reason if that is not possible here.
pub fn paths(settings: &PathSettings, progress: &dyn Fn(&str)) -> Result<Vec<CountedPath>, String> {
    progress("building the stack");
    let build = stack(settings)?;
    let mut all = Vec::new();
    for direction in DIRECTIONS {
        for (form, arguments) in FORMS {
            progress(&format!("counting: {direction}, {form}"));
            let counts = run(settings, &build, direction, arguments)?;
            all.push(CountedPath { form, direction, steps: steps(&counts, settings.bytes) });
        }
    }
    Ok(all)
}

/// The stack and its program.
fn stack(settings: &PathSettings) -> Result<Build, String> {
    check_library(&settings.sysroot).map_err(|error| error.to_string())?;
    let workload = Workload::named("network").expect("the workload is in the table");
    let builds =
        build(workload, &[BYTE_WORD], &settings.build, &|_| {}).map_err(|error| error.to_string())?;
    builds.into_iter().next().ok_or_else(|| "the stack was not built".into())
}

/// Counts a run.
fn run(
    settings: &PathSettings,
    build: &Build,
    direction: &str,
    arguments: &[&str],
) -> Result<Counts, String> {
    if !Path::new("/dev/net/tun").exists() {
        return Err("this machine has no /dev/net/tun, which the stack's packets go through".into());
    }
    let own = [format!("{direction}={}", settings.bytes), format!("mtu={MTU}"), "quiet=1".into()];
    let arguments = own.into_iter().chain(arguments.iter().map(|text| text.to_string())).map(Into::into);
    let configuration =
        repeatable(build.program.clone(), arguments.collect(), processor(build), &settings.sysroot);
    let request = CountRequest { configuration, unit: None };
    let running: Result<ForkedRun<Counted, ()>, _> =
        forked_run::start(|_: &mut (dyn FnMut(()) + Send)| measure::count(&request, &mut |_, _| {}));
    let ended = running.and_then(|running| running.wait(&mut |()| {}));
    let (counted, _) = ended.map_err(|error| error.to_string())?;
    match counted.ending {
        Ending::Exited(0) => Ok(counted.counts),
        Ending::Exited(status) => Err(format!(
            "the stack's program ended with status {status}: it needs /dev/net/tun, and the right to make a network of its own, as root has"
        )),
        Ending::Killed { report, .. } => Err(report),
    }
}

/// The most bytes of an IP packet: those of IP over ATM.
pub const MTU: u32 = 9180;

/// Instructions, loads and stores of each step for 1,000 bytes; without the dynamic loader's.
fn steps(counts: &Counts, bytes: u64) -> [[f64; 3]; STEPS.len()] {
    let names = Names::of_counts(counts);
    let mut sums = [[0u64; 3]; STEPS.len()];
    let mut known: BTreeMap<(Option<u32>, u64), Option<usize>> = BTreeMap::new();
    for (block, &times) in counts.blocks.iter().zip(&counts.executions).filter(|(_, times)| **times > 0) {
        for (address, &word) in block.addresses().zip(&block.words) {
            let step =
                *known.entry((block.image, address)).or_insert_with(|| step_of(&names, block.image, address));
            let Some(step) = step else { continue };
            let summary = block.instruction_set.summary(word).unwrap_or_default();
            sums[step][0] += times;
            for access in summary.accesses() {
                sums[step][1 + usize::from(access.is_store)] += times;
            }
        }
    }
    sums.map(|sums| sums.map(|sum| 1000.0 * sum as f64 / bytes as f64))
}

/// The step that an instruction is of; none of the dynamic loader.
fn step_of(names: &Names, image: Option<u32>, address: u64) -> Option<usize> {
    let name = names.name(image, address);
    if name.image.starts_with("ld-") {
        return None;
    }
    if COPIES.iter().any(|copy| name.function.starts_with(copy)) {
        return Some(2);
    }
    let file = names.location(image, address).map(|location| location.file).unwrap_or_default();
    let file = file.rsplit('/').next().unwrap_or_default();
    let is_of = |(prefix, _): &&(&str, usize)| file.starts_with(*prefix);
    Some(FILES.iter().find(is_of).map_or(STEPS.len() - 1, |(_, step)| *step))
}
