//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use vlm::study::Backing;
use vlm::{Allocation, PageTables, Registry, Size};

use crate::table::TableFormat;

const EXAMPLE: &str = "\
Example:
  vlm add orders 8G --owner postgres    # an entry in the registry
  vlm apply                             # reserves its memory, now and (by the systemd unit) at boot
  vlm run --section orders -- postgres -D /var/lib/postgresql/data
  vlm verify orders                     # are page tables shared?
  vlm list";

/// Very large memory: named, resident, shared sections of huge pages.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLE)]
pub struct VlmArguments {
    /// The registry's file [default: $VLM_REGISTRY or /etc/vlm.toml]
    #[arg(long, global = true, value_name = "FILE", hide_default_value = true)]
    pub registry: Option<PathBuf>,
    #[command(subcommand)]
    pub command: VlmCommand,
}

#[derive(Debug, Subcommand)]
pub enum VlmCommand {
    /// Add an entry to the registry; `vlm apply` reserves its memory
    Add {
        /// The section's name
        name: String,
        /// Its size, as in 8G or "512 MiB"
        size: Size,
        #[command(flatten)]
        options: EntryOptions,
    },
    /// Change an entry of the registry
    Modify {
        /// The section's name
        name: String,
        /// Its new size
        #[arg(long)]
        size: Option<Size>,
        #[command(flatten)]
        options: EntryOptions,
    },
    /// Remove an entry from the registry
    Remove {
        /// The section's name
        name: String,
    },
    /// Give the memory of sections back to the system; their entries stay
    Free {
        /// The sections
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// All sections
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
    /// List the sections, with their memory and the processes that use them
    List {
        #[arg(long, value_enum, default_value_t)]
        format: TableFormat,
    },
    /// Check that the kernel can keep what the registry promises; exit status 1 if it cannot
    Check,
    /// Reserve the memory of sections: all, or nothing and the reason
    Apply {
        /// The sections; all if none is named
        names: Vec<String>,
        /// Say what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Measure whether processes share the page tables of a section
    Verify {
        /// The section's name
        name: String,
    },
    /// Run a program with its shared memory on a section
    ///
    /// System V, POSIX and anonymous shared memory of 2 MiB and more (of one page of the section) comes from the section's
    /// reserve. The program must be linked dynamically.
    #[command(after_help = "Example:\n  vlm run --section orders -- postgres -D /var/lib/postgresql/data")]
    Run {
        /// The section
        #[arg(long)]
        section: String,
        /// The program, and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
    /// Measure page-table memory and start-up time against processes and sizes, with and without sharing
    ///
    /// The sections are reserved for the study and given back. Needs root's rights, and free memory of twice the largest size.
    #[command(after_help = "Example:\n  vlm study --sizes 1G,2G,4G --processes 1,10,100,300 -o study.csv")]
    Study {
        /// The sizes of sections
        #[arg(long, value_delimiter = ',', default_value = "1G,2G,4G")]
        sizes: Vec<Size>,
        /// The numbers of processes
        #[arg(long, value_delimiter = ',', default_value = "1,10,100,300")]
        processes: Vec<usize>,
        /// The pages that the memory consists of
        #[arg(long, value_enum, value_delimiter = ',', default_value = "small,private,shared")]
        memory: Vec<MemoryOption>,
        /// Also write the table as CSV to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[arg(long, value_enum, default_value_t)]
        format: TableFormat,
    },
    /// Touch all pages of a section, and print the minor faults
    #[command(hide = true)]
    Touch { name: String },
    /// Touch all pages of a file of a descriptor
    #[command(hide = true)]
    TouchFile { descriptor: i32, size: u64 },
}

/// The options that `add` and `modify` can set.
#[derive(Debug, Args)]
pub struct EntryOptions {
    /// The size of its pages [default: 2M]
    #[arg(long)]
    pub page_size: Option<Size>,
    /// When pages are allocated [default: alloc]
    #[arg(long, value_enum)]
    pub allocation: Option<AllocationOption>,
    /// Whether writable mappings share page tables [default: shared]
    #[arg(long, value_enum)]
    pub page_tables: Option<PageTablesOption>,
    /// The user who may use the section, or USER:GROUP [default: root]
    #[arg(long)]
    pub owner: Option<String>,
    /// The NUMA node whose memory is reserved
    #[arg(long)]
    pub node: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AllocationOption {
    /// All pages are allocated and zeroed by `vlm apply`
    Alloc,
    /// Pages are accounted, and allocated at their first touch
    Fluid,
}

impl From<AllocationOption> for Allocation {
    fn from(option: AllocationOption) -> Allocation {
        match option {
            AllocationOption::Alloc => Allocation::Alloc,
            AllocationOption::Fluid => Allocation::Fluid,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PageTablesOption {
    /// One set of page tables for all processes
    Shared,
    /// Page tables for each process
    Private,
}

impl From<PageTablesOption> for PageTables {
    fn from(option: PageTablesOption) -> PageTables {
        match option {
            PageTablesOption::Shared => PageTables::Shared,
            PageTablesOption::Private => PageTables::Private,
        }
    }
}

impl VlmArguments {
    /// The registry's file: of the option, the variable, or the machine's.
    pub fn registry(&self) -> PathBuf {
        self.registry.clone().unwrap_or_else(Registry::default_path)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum MemoryOption {
    /// Pages of 4 KiB; takes the most time, and memory for page tables
    Small,
    /// Pages of 2 MiB with private page tables
    Private,
    /// Pages of 2 MiB with shared page tables
    Shared,
}

impl From<MemoryOption> for Backing {
    fn from(option: MemoryOption) -> Backing {
        match option {
            MemoryOption::Small => Backing::SmallPages,
            MemoryOption::Private => Backing::PrivateTables,
            MemoryOption::Shared => Backing::SharedTables,
        }
    }
}
