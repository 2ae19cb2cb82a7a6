//! The command line, as data.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use session::program::{ExpectedEnding, ProgramSettings};

use crate::messages;

mod branch_log;
mod compare;
mod count;
mod environment;
#[cfg(test)]
mod examples;
mod export;
mod faults;
mod input;
mod install;
mod models;
mod objects;
mod output;
mod qemu;
mod questions;
mod sample;
mod sharing;
mod show;
mod spike;
mod spike_environment;
mod strides;
mod study;
mod sysroot;
mod system;
mod trace;
mod units;

pub use branch_log::{BranchLogCommand, PatchOptions, ReconstructOptions};
pub use compare::CompareOptions;
pub use count::{CountOptions, StaticOptions, UnitOptions};
pub use environment::EnvironmentOptions;
pub use export::ExportOptions;
pub use faults::{FaultRows, FaultsOptions};
pub use input::{
    InputFile, InputOptions, MachineName, ObservedProgram, ObservedProgramOptions, ProgramOptions,
    RecordedOrRunOptions, parse, words_of,
};
pub use install::{CompletionsOptions, DoctorOptions, ManOptions, ManualFormat};
pub use models::{
    AnnotateOptions, CachesOptions, CallOptions, CallsOptions, ClassOptions, EventOptions, MachinesOptions,
    MeasuredEvent, ModelOptions, MrcOptions, ReferenceStream, ResultOptions, SimulationOptions, SizesOptions,
    TimeOptions, check_inclusive,
};
pub use objects::{ObjectLayout, ObjectsOptions};
pub use output::{OutputOptions, RowOptions, TableOptions};
pub use qemu::QemuOptions;
pub use questions::{QUESTIONS, command_line};
pub use sample::{SampleOptions, SampleRows};
pub use sharing::SharingOptions;
pub use show::{CheckOptions, ModeName, SelectionOptions, ShowOptions, SummaryOptions, View};
pub use spike::{
    BlockAlgorithm, CheckImagesOptions, InstrumentOptions, LayoutStep, Optimization, OptimizeOptions,
    ProcedureAlgorithm, ProfileOptions, ReportRows, SpikeCommand,
};
pub use spike_environment::{
    CollectOptions, ListOptions, ManagerOptions, RegisterOptions, RemoveOptions, SpikeExportOptions,
    SpikeRunOptions, UseOptions,
};
pub use strides::{PatternsOf, StridesOptions};
pub use study::{BuildOptions, BytewordSettings, StudyCommand};
pub use sysroot::SysrootOptions;
pub use system::{
    GuestOptions, KernelInstructions, KernelOptions, SystemBuildOptions, SystemCommand, SystemCountOptions,
    SystemRunOptions, SystemTraceOptions,
};
pub use trace::{PlanOptions, TraceOptions};
pub use units::UnitsOptions;

/// Measure the path length of real programs: how many instructions one unit of work takes.
///
/// Runs unmodified Linux programs of Alpha and RISC-V, counts every instruction, also of x86-64 programs, and shows what two builds of a
/// program do differently.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Example: pathlength count ./sort data.txt

A command's own help has its options and more examples: pathlength help count."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program.
    #[command(
        override_usage = "pathlength run [OPTIONS] <PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength run --cpu ev5 ./hello --help             the program's help, not pathlength's
  pathlength run --gdb 1234 ./hello world      then: gdb-multiarch -ex 'target remote :1234'

All words after the program's name are the program's own, as in the first example, and as with perf and strace: options \
of pathlength come before it. The exit status is the program's.

With --gdb the program waits for GDB before its first instruction. If GDB detaches, or its connection \
breaks, the program continues alone, at full speed."
    )]
    Run(RunOptions),
    /// Run a program and count its instructions.
    #[command(
        override_usage = "pathlength count [OPTIONS] <PROGRAM|TRACE|COUNTS> [ARG]...
       pathlength count [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength count ./sort data.txt                    by image, group and function
  pathlength count --by function ./sort data.txt      every function that ran
  pathlength count --by line ./sort data.txt          every line of source; --by instruction: every instruction
  pathlength count --unit compare ./sort data.txt     each call of the function compare by itself
  pathlength count --children ./server                all processes; --by process: each of them
  pathlength count --attach 4711 --children --duration 10    a server that runs already
  pathlength count --children --unit 'begin through commit' --class 'execute($1) ~ ^[A-Z]+' ./server
  pathlength count --clear-env --env LANG=C ./sort    counts depend on the environment, too
  pathlength count /bin/ls -l                         an x86-64 program, on the machine's own processor

The tables follow the program's own output on a terminal. Otherwise they go to standard error, as with perf and time, \
unless -o names a file; with --format they have standard output for themselves, and the program's output goes to \
standard error. With -o NAME.counts the counts themselves are \
saved: pathlength count NAME.counts shows them again, and pathlength compare takes them.

With --unit, each call of the function is counted separately, everything it calls included. The tables \
show the mean of the units measured once the path length is steady (three batches of 50 units within 1 %)."
    )]
    Count(CountOptions),
    /// Count the instructions in images, and compare those of two builds.
    #[command(after_help = "Example: pathlength static new/libz.so --against old/libz.so")]
    Static(StaticOptions),
    /// Run two builds of a program and compare what they executed.
    #[command(after_help = "\
Examples:
  pathlength compare ./sort-ev5 ./sort-ev56 --unit compare -- data.txt
  pathlength compare --fail-above 1% main.counts new.counts      a gate for CI

pathlength count -o NAME.counts saves the counts of a run. With --fail-above the exit status is 3 if the second side \
executes too much more, and the functions that grew most are named on standard error; 1 is a failure.")]
    Compare(CompareOptions),
    /// Build a workload for every instruction set, and list the builds.
    #[command(
        after_help = "Example: pathlength build postgresql\n\nBuilds are kept until something changes."
    )]
    Build(BuildOptions),
    /// Carry out a study: build, run, compare, report.
    #[command(
        subcommand,
        after_help = "\
Examples:
  pathlength study byteword     the effect of the byte and word instructions on a database
  pathlength study strides      how a sparse matrix-vector product accesses memory
  pathlength study spike --programs lua,bzip2

The report is study/byteword/index.html, and so on for each study."
    )]
    Study(StudyCommand),
    /// Record every instruction and every address of a run, or of a part of it.
    #[command(
        override_usage = "pathlength trace [OPTIONS] -o <FILE> <PROGRAM> [ARG]...
       pathlength trace [OPTIONS] -o <FILE> --attach <PID>",
        after_help = "\
Examples:
  pathlength trace -o sort.trace ./sort data.txt
  pathlength trace -o sort.trace --unit compare --skip 1000 --units 3 ./sort data.txt
  pathlength trace -o sort.trace --from main --until 1000000 ./sort data.txt
  pathlength trace -o sort.trace --heap ./sort data.txt             for pathlength strides
  pathlength trace -o server.trace --attach 4711 --children --unit PortalRun --units 3

Parts that are not recorded run at full speed. pathlength show shows the trace. A program to attach to must have been started by \
pathlength run, which has no cost until it is recorded. Recording it ends with Ctrl-C, after --duration, with the program, or when the \
requested part is recorded; the program continues. PostgreSQL executes all statements in PortalRun; exec_simple_query does not execute \
those that drivers prepare."
    )]
    Trace(TraceOptions),
    /// Record a program of another instruction set, such as x86-64 or AArch64, in QEMU's emulator of it.
    #[command(
        override_usage = "pathlength qemu [OPTIONS] -o <FILE> <PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength qemu -o ls.trace /bin/ls -l                  of this machine
  pathlength qemu -o hello.trace ./hello-aarch64
  pathlength show ls.trace --table functions              then: caches, mrc, strides, calls, export, check

./setup installs QEMU's emulators (Debian's qemu-user). The trace has the code of each block, and what the emulator knows of \
its instructions: length, accesses to memory, transfers of control; no registers, so that pathlength time cannot \
simulate pipelines. One process is recorded, with all its threads."
    )]
    Qemu(QemuOptions),
    /// Show a trace: its instructions, functions, addresses, or tables of statistics.
    #[command(after_help = "\
Examples:
  pathlength show sort.trace                                    tables of what was executed
  pathlength show sort.trace --as functions --unit-number 3     the calls of one unit of work, nested
  pathlength show sort.trace --as instructions --function main  a line for each instruction, with its effect
  pathlength show sort.trace --as addresses --processors 4      what four processors would access, in order

Options that select (functions, images, ranges, threads, units) can be combined; ranges \
include both ends. A damaged trace is shown as far as it can be read, and the exit status is 1.")]
    Show(ShowOptions),
    /// Write a trace for other tools: profilers, simulators of caches and processors, data frames.
    #[command(after_help = "\
Examples:
  pathlength export sort.trace --to firefox -o sort.json.gz     open it at profiler.firefox.com
  pathlength export sort.trace --to callgrind -o callgrind.out.sort
  pathlength export sort.trace --to pprof -o sort.pb.gz         then: go tool pprof -top sort.pb.gz
  pathlength export sort.trace --to din --function main | dineroIV -informat d ...
  pathlength export sort.trace --to champsim --thread 0.0 -o sort.champsimtrace
  pathlength export sort.trace --to parquet -o tables

Totals are exact in every form. In the Firefox Profiler an instruction is a microsecond, and a sample stands \
for as many instructions as its weight. Older ChampSims read compressed traces only: name a file that ends \
with .gz, or compress it with xz, which takes longer and makes it smaller. With --data-range, din has the selected \
accesses without the fetches of their instructions.

A file is written completely or not at all. A damaged trace is exported as far as it can be read, and the exit status \
is 1.")]
    Export(ExportOptions),
    /// Check whether a trace is consistent.
    #[command(after_help = "\
Example: pathlength check sort.trace

Control must follow the instructions, addresses must agree with known contents of registers, and calls and returns \
must nest. The exit status is 1 if anything is wrong.")]
    Check(CheckOptions),
    /// Measure strides: the distances between successive addresses of an instruction, a line or an array.
    #[command(
        override_usage = "pathlength strides [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength strides [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength strides sort.trace                             the strides of each array
  pathlength strides --by line --array table sort.trace     the lines that access one array
  pathlength strides --by instruction --histograms --format csv -o strides.csv sort.trace
  pathlength strides -o strides.html sort.trace             charts
  pathlength strides --by function --unit pay --unit deliver ./shop     of two kinds of units of work
  pathlength strides --advice sort.trace                    changes that may be worthwhile
  pathlength strides --by line ./sort data.txt              of a program, while it runs
  pathlength strides --children --by process ./server       of all its processes

The columns '1 back', '2 back' and so on have the most frequent distances between the address of a reference and \
the address of the reference 1, 2 and so on steps back, for loads and stores separately. Prefetches are left out. Arrays \
have names and types if the images are unchanged and have debug information; blocks of the heap are distinguished if the \
trace was recorded with --heap."
    )]
    Strides(StridesOptions),
    /// Simulate the caches and TLBs of a machine: accesses and misses, by function, line or instruction.
    #[command(
        override_usage = "pathlength caches [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength caches [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength caches sort.trace                                  of a trace, on an AlphaStation 500
  pathlength caches --machine dec3000 ./sort data.txt           of a program, while it runs
  pathlength caches --children --by process ./server            of all its processes
  pathlength caches --children --by class --unit 'begin through commit' --class 'execute($1) ~ ^[A-Z]+' ./server
  pathlength caches --attach 4711 --children --duration 10      of a server that runs already
  pathlength caches --machine mine.toml --by function --unit compare --units 100 ./sort data.txt
  pathlength caches --set dcache.size=16K --set dcache.ways=2 sort.trace
  pathlength caches --sweep dcache.size=8K,16K,32K -o sizes.html sort.trace

A program is simulated while it runs, without a trace on disk; of several processes only the first one is. A machine \
is a name that pathlength machines lists, or a file. A damaged trace is simulated as far as it can be read, and the \
exit status is 1."
    )]
    Caches(CachesOptions),
    /// Show functions as source and disassembly, with executions, misses or cycles of each line and instruction.
    #[command(
        override_usage = "pathlength annotate [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength annotate [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength annotate ./sort data.txt                                  the three functions with most instructions
  pathlength annotate --function compare --event cycles ./sort data.txt
  pathlength annotate --event misses --machine dec3000 --top 10 -o sort.html sort.trace

Source files are read where the compiler found them, or in --source DIR. A line's numbers are those of the instructions \
below it; a line appears several times if the compiler has moved its instructions apart."
    )]
    Annotate(AnnotateOptions),
    /// Show what calls cost: functions with all that they call, callers, callees, and the call tree.
    #[command(
        override_usage = "pathlength calls [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength calls [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength calls ./sort data.txt                                     functions and the call tree
  pathlength calls --by caller --function memcpy ./sort data.txt       who calls memcpy, and how often
  pathlength calls --by unit --unit compare sort.trace                 each call of the function compare by itself
  pathlength calls --unit pay --unit deliver ./shop                    the call tree of each kind of unit of work
  pathlength calls --unit pay --unit deliver -o shop.pb.gz ./shop      then: go tool pprof -tagfocus class=pay shop.pb.gz
  pathlength calls -o flame.html ./sort data.txt                       a flame graph
  pathlength calls -o old.folded ./sort-old data.txt                   then, what another build changes:
  pathlength calls -o change.html --against old.folded ./sort data.txt
  pathlength calls -o sort.pb.gz ./sort data.txt                       for pprof; -o sort.callgrind for KCachegrind
  pathlength time --by call-tree ./sort data.txt                       cycles instead of instructions; caches has misses
  pathlength caches --by call-tree -o misses.pb.gz ./sort data.txt     all their events, for pprof

Calls are followed by control flow, exactly and without sampling; in recursion a call within a call of the same function \
is a part of that one, so that no instruction is counted twice."
    )]
    Calls(CallsOptions),
    /// Find alignment faults: accesses to unaligned addresses, which the operating system must carry out.
    #[command(
        override_usage = "pathlength faults [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength faults [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength faults ./sort data.txt                               the lines that fault, and what would avoid it
  pathlength faults --by data ./sort data.txt                     the variables and blocks of the heap
  pathlength faults --by unit --unit compare ./sort data.txt      each call of the function compare
  pathlength faults --by time --format csv ./sort data.txt        in windows of equally many instructions
  pathlength faults --by data --unit pay --unit deliver ./shop    of two kinds of units of work
  pathlength faults --by call-tree -o faults.html ./sort data.txt a flame graph of faults
  pathlength faults --attach 4711 --children --duration 10        of a server that runs already
  pathlength faults sort.trace                                    of a trace

A load or a store faults if its address is not a multiple of its size. Compilers access types that they know to be \
unaligned by two accesses to whole quadwords (ldq_u, stq_u): these never fault, and are counted as made safe; crossing \
are those whose data lay in two quadwords. Blocks of the heap are named by the calls that allocated them, in a trace if it was \
recorded with --heap."
    )]
    Faults(FaultsOptions),
    /// Find data that processors share: cache lines that move between their caches, true and false sharing, and locks.
    #[command(
        override_usage = "pathlength sharing [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength sharing [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength sharing ./server --threads 4                     the lines that move, and what to pad, move or change
  pathlength sharing --by data ./server --threads 4           the variables and blocks of the heap
  pathlength sharing --by function --unit serve ./server      the code that needs the bus, of the calls of serve
  pathlength sharing --by class --unit pay --unit deliver ./shop     of two kinds of units of work
  pathlength sharing --attach 4711 --children --duration 10   a server that runs already
  pathlength sharing --processors 2 --set coherence.protocol=msi server.trace
  pathlength sharing --by state server.trace                  how often lines became modified, shared, invalid
  pathlength sharing --processors 4 --assign round-robin server.trace     more threads or processes than processors
  pathlength sharing --time --machine pentium-pro --processors 4 server.trace    in time: the use of the bus, CPI
  pathlength sharing --sample 30000 --machine pentium-pro --saturated server.trace       estimates, with their errors
  pathlength sharing --scaling 1,2,4 --machine pentium-pro --assign round-robin server.trace
  pathlength sharing --machine av20000 --processors 16 server.trace       on nodes: operations on the interconnect
  pathlength sharing --by interconnect --machine av20000 --processors 16 server.trace    their kinds

Processes share what they map together, and pages that fork copied until one of them stores to them. Each thread runs on a processor with the private caches of the machine, which a bus keeps coherent. A miss on a line that \
another processor had invalidated is true sharing if the processor then uses bytes that others wrote, before it loses the \
line again, and otherwise false sharing. Threads run as if at the same time, in turns of --quantum instructions; one that \
waits in a system call continues when others have come as far as in the recorded run, or with --saturated at once. A program is recorded first, into a \
temporary file in $TMPDIR, so that it has the results of its trace."
    )]
    Sharing(SharingOptions),
    /// Show what one call of a function costs: the distribution over all calls.
    #[command(
        override_usage = "pathlength units [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength units [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength units --unit compare ./sort data.txt                      instructions: percentiles and a histogram
  pathlength units --unit compare --event cycles ./sort data.txt
  pathlength units --unit compare -o compare.html ./sort data.txt      a page
  pathlength units --unit compare --slowest ./sort data.txt            what the slowest call did that others did not
  pathlength units --unit compare --unit-number 7 --reference 3 ./sort data.txt

All calls that return are included, from the first to the last, or those that --skip and --units choose; each has the \
counts of its own thread. Percentiles are exact, by the nearest-rank method: p99 is the smallest cost that 99 % of the \
calls do not exceed.

--slowest, --unit-number and --reference take the blocks that two calls executed from the same run. One call of each length is \
kept for this, in at most 64 MB; if that is too little, the call nearest to the median is compared, and a note says so."
    )]
    Units(UnitsOptions),
    /// Attribute instructions, misses and cycles to what functions work on: operators of a query, locks, relations.
    #[command(
        override_usage = "pathlength objects [OPTIONS] <PROGRAM> [ARG]...
       pathlength objects [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength objects ./postgres --single -D data postgres         the operators of each query, as EXPLAIN lays them out
  pathlength objects --children --event cycles ./postgres -D data
  pathlength objects --by lock --as names ./postgres --single -D data postgres
  pathlength objects --children --as held --unit 'begin through commit' --class 'execute($1) ~ ^[A-Z]+' ./server
  pathlength objects --children --as waiters --unit pay --unit deliver ./shop    which of them waits for which
  pathlength objects --rules mine.toml ./server

What is executed belongs to the object of the innermost call of a function that works on one, whatever it calls. Each number \
stands beside its own part, without what the objects below cost. The sum of all own parts, with what is outside of objects, is \
the whole run. Calls that are left by longjmp end when control is next seen in an older frame.

Rules are a file; those for PostgreSQL are data/objects/postgresql.toml. Expressions in it are of C: $1 is the first argument of the \
function, and its type is that of the program's debug information (compile with -g)."
    )]
    Objects(ObjectsOptions),
    /// Compute miss-ratio curves: the misses of caches of all sizes, from one pass.
    #[command(
        override_usage = "pathlength mrc [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength mrc [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength mrc sort.trace
  pathlength mrc --streams code,data --line-size 32 --largest 1M ./sort data.txt
  pathlength mrc -o sort.html sort.trace                        charts
  pathlength mrc --children ./server                            of all its processes
  pathlength mrc --unit pay --unit deliver -o shop.html ./shop  a line for each kind of unit of work

The caches have LRU replacement, and are fully associative or have 1, 2, 4 or 8 ways. A damaged trace is simulated as \
far as it can be read, and the exit status is 1."
    )]
    Mrc(MrcOptions),
    /// Simulate the pipeline of a machine: cycles by cause, function, line or instruction.
    #[command(
        override_usage = "pathlength time [OPTIONS] <TRACE|PROGRAM> [ARG]...
       pathlength time [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength time sort.trace                                    of a trace, on an AlphaStation 500
  pathlength time --machine dec3000 ./sort data.txt             of a program, while it runs
  pathlength time --children --by process ./server              of all its processes
  pathlength time --by class --unit pay --unit deliver ./shop   of two kinds of units of work, and outside of them
  pathlength time --attach 4711 --children                      of a server that runs already, until Ctrl-C
  pathlength time --by function --unit compare --units 100 ./sort data.txt
  pathlength time --sweep dcache.size=8K,16K --sweep scache.size=96K,192K sort.trace
  pathlength time --machine r10000 --sample 50000 sort.trace    estimates, with their errors, in less time

Each cycle is attributed to one cause: instructions were issued; a front-end stall, in which the processor waited for \
instructions (dry, in DEC's words); or a back-end stall, in which it waited for data or a unit (frozen). The time of the \
operating system is not included."
    )]
    Time(TimeOptions),
    /// Sample where a program is, with all of its processes, at full speed.
    #[command(
        override_usage = "pathlength sample [OPTIONS] <PROGRAM> [ARG]...
       pathlength sample [OPTIONS] --attach <PID>",
        after_help = "\
Examples:
  pathlength sample ./sort data.txt
  pathlength sample --by line --exact --every 100000 ./sort data.txt
  pathlength sample --attach 4711 --children --duration 10 -o server.html --by call-tree
  pathlength sample --live --attach 4711 --children

Samples say where the program is at times, or numbers of instructions, that are apart as --every says; by time the program \
runs uncounted, at its full speed. With --by call-tree, -o NAME.html and NAME.svg are flame graphs, NAME.folded collapsed stacks, NAME.pb.gz is for pprof, \
NAME.callgrind for KCachegrind; -o NAME.json is for the Firefox Profiler."
    )]
    Sample(SampleOptions),
    /// Optimize a linked image by a profile: shorter paths, denser code. It is DIGITAL's Spike, not the RISC-V simulator.
    #[command(
        subcommand,
        after_help = "\
Examples:
  pathlength spike profile -o sort.profile ./sort train.txt
  pathlength spike optimize ./sort --profile sort.profile -o sort.spike"
    )]
    Spike(SpikeCommand),
    /// Patch images so that they log their branches while they run, and reconstruct what they executed.
    #[command(subcommand, after_help = "Example: pathlength branch-log patch ./sort -o sort.patched")]
    BranchLog(BranchLogCommand),
    /// Run, count or record a program with the operating system: a Linux kernel on an emulated machine.
    #[command(subcommand, after_help = "Example: pathlength system count ./hello world")]
    System(SystemCommand),
    /// List the machines that come with pathlength.
    #[command(after_help = "Example: pathlength machines")]
    Machines(MachinesOptions),
    /// Check what is installed: what is present, what is missing, and how to get it.
    #[command(after_help = "\
Example: pathlength doctor

The exit status is 1 if something needed is missing. Most of what is optional makes or debugs programs.")]
    Doctor(DoctorOptions),
    /// Fetch Debian's packages of a guest's architecture into a folder for --sysroot, to count programs without a compiler.
    #[command(after_help = "\
Examples:
  pathlength sysroot riscv64 sqlite3 lua5.4
  pathlength count --sysroot sysroot-riscv64 sysroot-riscv64/usr/bin/lua5.4 -e 'print(1)'
  pathlength sysroot riscv64 postgresql-17 -o server            with everything that it depends on

apt-get fetches what is signed by Debian, with lists of its own: the host's packages and settings stay as they are, and root \
is not needed. The packages are unpacked, not configured. More of them can be added to the folder later.")]
    Sysroot(SysrootOptions),
    /// Write a shell's script that completes commands, options and files.
    #[command(after_help = "\
Examples:
  pathlength completions bash > ~/.local/share/bash-completion/completions/pathlength
  pathlength completions zsh > ~/.zfunc/_pathlength             with: fpath+=~/.zfunc, before compinit
  pathlength completions fish > ~/.config/fish/completions/pathlength.fish")]
    Completions(CompletionsOptions),
    /// Write manual pages.
    #[command(after_help = "\
Examples:
  pathlength man count | man -l -                               the page of pathlength count
  pathlength man -o ~/.local/share/man/man1                     all pages; then: man pathlength-count")]
    Man(ManOptions),
}

/// The simulated processor and the sysroot.
#[derive(Clone, Debug, Args)]
pub struct EngineOptions {
    /// The processor, which decides the instructions that exist: ev4, ev5, ev56, pca56, ev6 or ev67. For programs of RISC-V its
    /// extensions, as rv64gc_zba_zbb, or a profile as rva22u64; by default all exist.
    #[arg(long, default_value_t = isa::Processors::default())]
    pub cpu: isa::Processors,
    /// Where the program's libraries are searched first: by default in /usr/alpha-linux-gnu, or the like for the program's
    /// instruction set.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    #[command(flatten)]
    pub environment: EnvironmentOptions,
}

impl EngineOptions {
    /// The settings of a program that is run.
    pub fn program(&self) -> ProgramSettings {
        let environment = self.environment.environment(interpose::inherited());
        ProgramSettings { cpu: self.cpu, sysroot: self.sysroot.clone(), environment }
    }
}

/// How a program that is run is to end.
#[derive(Clone, Debug, Args)]
pub struct EndingOptions {
    /// The exit status of a program that did what it should, instead of 0; several with commas between them. With another one the
    /// command fails.
    #[arg(long = "expect-status", value_name = "STATUS", value_delimiter = ',', default_value = "0")]
    statuses: Vec<u8>,
}

impl EndingOptions {
    /// The expectations, for a session. A calling program decides itself what a status means.
    pub fn expected(&self) -> ExpectedEnding {
        ExpectedEnding { statuses: self.statuses.clone(), is_judged_by_caller: messages::is_connected() }
    }
}

/// A program that is run and observed, and how it is to end.
#[derive(Clone, Debug, Args)]
pub struct ExecutionOptions {
    #[command(flatten)]
    pub engine: EngineOptions,
    #[command(flatten)]
    pub ending: EndingOptions,
}

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    #[command(flatten)]
    pub engine: EngineOptions,
    /// The program's own name (argv[0]), instead of PROGRAM.
    #[arg(long, allow_hyphen_values = true)]
    pub name: Option<OsString>,
    /// Let GDB debug the program: a PORT of this machine, HOST:PORT, or a socket's PATH with a slash in it.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<String>,
    #[command(flatten)]
    pub program: ProgramOptions,
}
