//! The same on an unmodified Linux: what a kernel of today executes to move bytes between two programs, with cards that do more and more of
//! the work, and with calls that copy less. Two cards of one guest are connected; each transfer is recorded, repeated exactly, and counted
//! with all that both programs and the kernel execute.

mod measured;
mod page;
mod tables;

use std::ffi::OsString;
use std::path::PathBuf;

use system::job::AwaitedFile;
use system::kernel::{self, GuestKernel, KernelConfiguration};
use system::machine::GuestHardware;
use system::network::{GuestNetwork, NetworkCard, NetworkOffloads};
use system::prepared::{GuestSetup, PreparedGuest};
use workloads::build::{Build, BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, USUAL};
use workloads::workload::{BuildTarget, Recipe, Source, Workload};

use engine::Plan;
use session::scratch::temporary_folder;

use crate::system::StudyError;

pub use measured::{ComponentCounts, LinuxTransfer, TransferredPart};
pub use page::section;
pub use tables::{components, functions, ladder, structures};

/// Bytes of the guest's memory.
const MEMORY: u64 = 256 << 20;
/// Bytes of the two parts of a transfer: the connection warms up in the first, and the second is counted.
const PARTS: [u64; 2] = [1 << 20, 1 << 20];
/// Bytes of each call that sends.
const CHUNK: u64 = 64 << 10;
/// Where the receiver says that it listens, and where it does.
const READY: &str = "/tmp/receiver-listens";
const ADDRESS: &str = "10.0.0.2";
const PORT: &str = "5001";

/// The program, which sends and receives.
const TRANSFER: Workload = Workload {
    name: "linux-transfer",
    title: "A transfer over Linux's TCP",
    sources: &[Source::Embedded {
        name: "transfer.c",
        text: include_str!("../../../../../workloads/transfer.c"),
    }],
    recipe: Recipe::Compile(&[BuildTarget {
        image: "transfer",
        sources: &["transfer.c"],
        // The linker relaxes static programs wrongly: they end with SIGSEGV.
        flags: &["-std=gnu11", "-static", "-Wl,--no-relax"],
        libraries: &[],
        is_shared: false,
    }]),
    program: "transfer",
    unit: "main",
    gauges: &[],
    toolchains: USUAL,
};

/// How the transfers were counted.
pub const PROVENANCE: &str = "Debian's source package linux, 6.1, built for qemu-system-alpha; 1 MiB after 1 MiB that warms up, \
                              recorded and repeated with time counted in instructions, every byte checked";

/// The part of the study with a kernel.
#[derive(Clone, Debug)]
pub struct LinuxStudySettings {
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// A step of the ladder: interfaces, and the call that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxStep {
    /// The interfaces.
    pub network: GuestNetwork,
    /// The call, as the program names it.
    pub call: &'static str,
}

impl LinuxStep {
    /// A name for tables.
    pub fn name(&self) -> String {
        let GuestNetwork { card, offloads } = self.network;
        let offloads = match offloads {
            None | Some(NetworkOffloads::None) => "",
            Some(NetworkOffloads::Checksum) => ", checksums",
            Some(NetworkOffloads::Segmentation) => ", segmentation",
        };
        let call = if self.call == "write" { String::new() } else { format!(", {}", self.call) };
        format!("{}{offloads}{call}", card.name())
    }
}

/// The ladder.
pub const STEPS: [LinuxStep; 9] = {
    use NetworkCard::{E1000, Tulip, Veth, Virtio};
    use NetworkOffloads::{Checksum, None, Segmentation};
    const fn step(card: NetworkCard, offloads: NetworkOffloads, call: &'static str) -> LinuxStep {
        LinuxStep { network: GuestNetwork { card, offloads: Some(offloads) }, call }
    }
    [
        step(Tulip, None, "write"),
        step(Virtio, None, "write"),
        step(E1000, None, "write"),
        step(E1000, Checksum, "write"),
        step(E1000, Checksum, "sendfile"),
        step(E1000, Segmentation, "write"),
        step(E1000, Segmentation, "sendfile"),
        step(E1000, Segmentation, "zerocopy"),
        step(Veth, Segmentation, "write"),
    ]
};

/// Builds the kernel and the program, and counts each transfer. Those that fail are left out, and their errors added to `failures`.
pub fn transfers(
    settings: &LinuxStudySettings,
    progress: &dyn Fn(&str),
    failures: &mut Vec<StudyError>,
) -> Result<Vec<LinuxTransfer>, StudyError> {
    if !system::machine::is_installed() {
        // Before minutes of building.
        return Err(system::machine::not_installed().into());
    }
    progress("Linux: the kernel, whose build takes some minutes the first time");
    let folders = &settings.build;
    let configuration = KernelConfiguration { has_network: true, ..KernelConfiguration::default() };
    let kernel = kernel::build(&folders.folder, folders.sources.as_deref(), configuration, &|_| {})?;
    let builds = build(&TRANSFER, &[BYTE_WORD], folders, &|_| {})?;
    let mut transfers = Vec::new();
    for step in STEPS {
        progress(&format!("Linux: {}", step.name()));
        match step.measure(settings, &kernel, &builds[0]) {
            Ok(transfer) => transfers.push(transfer),
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => failures.push(error),
        }
    }
    Ok(transfers)
}

impl LinuxStep {
    /// Records a transfer and counts its second part.
    fn measure(
        &self,
        settings: &LinuxStudySettings,
        kernel: &GuestKernel,
        build: &Build,
    ) -> Result<LinuxTransfer, StudyError> {
        let folder = temporary_folder("transfer").map_err(system::Error::Files)?;
        let program = std::path::absolute(&build.program).map_err(system::Error::Files)?;
        let parts = PARTS.map(|bytes| bytes.to_string());
        let words = |words: &[&str]| -> Vec<OsString> {
            words.iter().copied().chain(parts.iter().map(String::as_str)).map(Into::into).collect()
        };
        let receiver =
            std::iter::once(program.clone().into_os_string()).chain(words(&["receive", PORT, READY]));
        let setup = GuestSetup {
            hardware: GuestHardware { memory: MEMORY, processors: 1, disk: 0, network: Some(self.network) },
            disk: None,
            sysroot: settings.sysroot.clone(),
            environment: vec!["LC_ALL=C".into()],
            background: vec![receiver.collect()],
            awaited: vec![AwaitedFile { path: READY.into(), text: None }],
            user: 0,
            input: None,
            files: Vec::new(),
            outputs: Vec::new(),
            folder: "/tmp".into(),
        };
        let arguments = words(&["send", ADDRESS, PORT, self.call, &CHUNK.to_string()]);
        let guest = PreparedGuest::new::<StudyError>(&setup, (&program, &arguments), || Ok(kernel.clone()))?;
        let place = |name: &str| name.parse().expect("the study's places are symbols");
        let plan =
            Plan { from: Some(place("counted_begin")), until: Some(place("counted_end")), ..Plan::default() };
        guest.check_names(&plan)?;
        let path = folder.path().join("transfer.trace");
        let (result, _) = guest.trace(&plan, &path, &mut |_, _| {})?;
        let output = String::from_utf8_lossy(&result.output).into_owned();
        let Some(part) = TransferredPart::last(&output).filter(|_| result.status == 0) else {
            let errors = String::from_utf8_lossy(&result.errors);
            let errors = format!("{}{}", output.trim_end(), errors.trim_end());
            let program = format!("the transfer with {}", self.name());
            return Err(StudyError::Program { program, status: result.status, errors });
        };
        measured::count(&path, *self, part)
    }
}
