//! Whether processes share page tables, by measurement.
//!
//! The proof is the number of minor faults: a process that finds page tables of others has one fault for
//! each GiB, one with its own has one for each page. Beside them stands how much the memory of all page
//! tables grew. `VmPTE` of a process proves nothing: shared page tables are charged to each.

use std::io::{BufRead, BufReader, Read};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::{Error, Result};
use crate::region::SHARING_UNIT;
use crate::registry::Registry;
use crate::{Access, Mapping, Section, Size, memory};

/// The hidden subcommand of `vlm` by which processes are started that touch a section.
pub const TOUCH_COMMAND: &str = "touch";

/// The processes that `vlm verify` starts.
pub const PROCESSES: usize = 8;

/// The measured sharing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The pages of the section.
    pub pages: u64,
    /// The most minor faults that any of the processes had.
    pub faults: u64,
    /// The processes that mapped the section after the first.
    pub processes: usize,
    /// The page tables that each process would have of its own.
    pub private_tables: Size,
    /// How much all page tables of the machine grew, by process; other programs count, too.
    pub growth: i64,
}

impl Sharing {
    /// Whether all whole GiB of the section are shared.
    pub fn is_shared(&self) -> bool {
        self.shared_gib() > 0 && self.shared_gib() == self.whole_gib()
    }

    /// The whole GiB of the section.
    pub fn whole_gib(&self) -> u64 {
        self.pages / (SHARING_UNIT as u64 >> 21)
    }

    /// The GiB with page tables that were there already. A process has a few faults of its own code and
    /// stack, too, so that the nearest number counts.
    pub fn shared_gib(&self) -> u64 {
        let saved_in_unit = (SHARING_UNIT as u64 >> 21) - 1;
        let saved = self.pages.saturating_sub(self.faults);
        ((saved + saved_in_unit / 2) / saved_in_unit).min(self.whole_gib())
    }
}

/// Starts processes by the command `vlm` that map the section and read a byte of each page. The section is
/// created if it does not exist; pages of a FLUID section are allocated by this.
pub fn verify(registry: &Registry, name: &str, vlm: &Path) -> Result<Sharing> {
    let entry = registry.entry(name)?;
    if entry.page_size != Size::mib(2) {
        return Err(Error::Request(format!(
            "section `{name}` has pages of {}: its page tables are so small that the kernel does not share them",
            entry.page_size
        )));
    }
    let section = Section::open_or_create(registry, name)?;
    let start = || {
        let mut command = Command::new(vlm);
        command.arg("--registry").arg(registry.path()).args([TOUCH_COMMAND, name]);
        Toucher::start(command)
    };
    let mut first = start()?;
    first.faults()?;
    let before = memory::page_tables()?;
    let mut others = (0..PROCESSES).map(|_| start()).collect::<Result<Vec<_>>>()?;
    let faults = others.iter_mut().map(Toucher::faults).collect::<Result<Vec<_>>>()?;
    let after = memory::page_tables()?;
    drop(section);
    Ok(Sharing {
        pages: entry.pages(),
        faults: faults.into_iter().max().unwrap_or(0),
        processes: PROCESSES,
        private_tables: Size(entry.pages().div_ceil(512) * 4096),
        growth: (after.bytes() as i64 - before.bytes() as i64) / PROCESSES as i64,
    })
}

/// A process that touches memory, reports its minor faults, and waits until it is told to end.
#[derive(Debug)]
pub(crate) struct Toucher {
    process: Child,
}

impl Toucher {
    pub(crate) fn start(mut command: Command) -> Result<Toucher> {
        let program = command.get_program().to_owned();
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(Toucher { process: process.map_err(Error::io("run", Path::new(&program)))? })
    }

    /// Waits until all memory is touched.
    pub(crate) fn faults(&mut self) -> Result<u64> {
        let mut line = String::new();
        if let Some(output) = self.process.stdout.as_mut() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        line.trim().parse().map_err(|_| {
            let mut reason = String::new();
            if let Some(errors) = self.process.stderr.as_mut() {
                let _ = errors.read_to_string(&mut reason);
            }
            Error::State(format!("a process that touches the memory failed: {}", reason.trim()))
        })
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        // The process ends at the end of its input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The work of a process that [`verify`] has started.
pub fn touch(registry: &Registry, name: &str) -> Result<()> {
    let section = Section::open(registry, name)?;
    let mapping = section.map(Access::ReadWrite)?;
    report(&mapping, section.entry().page_size)
}

fn report(mapping: &Mapping, page_size: Size) -> Result<()> {
    report_faults(|| read_pages(mapping.address(), mapping.length(), page_size.bytes() as usize));
    Ok(())
}

/// Prints the faults of an action, and waits for the end of standard input.
pub(crate) fn report_faults(action: impl FnOnce()) {
    let before = minor_faults();
    action();
    println!("{}", minor_faults() - before);
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Reads a byte of each page.
pub(crate) fn read_pages(address: *const u8, length: usize, page_size: usize) {
    for offset in (0..length).step_by(page_size) {
        // SAFETY: All callers pass memory that is mapped readable for as long as they run.
        unsafe { address.add(offset).read_volatile() };
    }
}

fn minor_faults() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: The kernel fills the structure; with these arguments the call cannot fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_minflt.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_gib_follow_from_faults() {
        let sharing =
            |pages, faults| Sharing { pages, faults, processes: 8, private_tables: Size(0), growth: 0 };
        let shared = sharing(4096, 7 + 512);
        assert_eq!((shared.shared_gib(), shared.whole_gib(), shared.is_shared()), (7, 8, false));
        assert!(sharing(4096, 8).is_shared());
        assert!(sharing(512, 1 + 2).is_shared(), "two faults of the process's own code");
        assert!(!sharing(4096, 4100).is_shared());
        assert!(sharing(4096 + 10, 18).is_shared());
        assert!(!sharing(32, 1).is_shared(), "less than a GiB is never shared");
    }
}
