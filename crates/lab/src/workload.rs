//! The workloads, as a table: to add one is to add an entry and its source.

/// A program to study: what it is built from, and what to count.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name, and the name of its folder of builds.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// Every file the compiler reads, system headers apart.
    pub sources: &'static [Source],
    /// What is built, in order: an image may link against those before it.
    pub targets: &'static [Target],
    /// The target that is run.
    pub program: &'static str,
    /// The function whose calls are the units of work.
    pub unit: &'static str,
    /// Variables to read at the end of each unit: cumulative page-cache hits, then misses.
    pub gauges: [&'static str; 2],
}

/// Where source files come from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A file that is part of this crate.
    Embedded {
        /// Its name.
        name: &'static str,
        /// Its contents.
        text: &'static str,
    },
    /// Files of a package in Cargo's registry, which is pinned in this crate's manifest, fetched
    /// with the other dependencies and never compiled by Cargo.
    Package {
        /// The package.
        package: &'static str,
        /// The files, relative to the package.
        files: &'static [&'static str],
        /// Where a person without Cargo gets them.
        home: &'static str,
    },
}

/// An image to build from one source file.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The image's file name.
    pub image: &'static str,
    /// The source file's name.
    pub source: &'static str,
    /// Switches before the source file.
    pub flags: &'static [&'static str],
    /// Libraries, after the source file.
    pub libraries: &'static [&'static str],
}

/// SQLite as distributions ship it and servers use it: safe for threads, so that it takes its locks.
/// Loadable extensions and the statistics of the allocator (a lock more in each allocation) are
/// left out, as SQLite's "Recommended Compile-time Options" advise.
const SQLITE: Target = Target {
    image: "libsqlite3.so",
    source: "sqlite3.c",
    flags: &[
        "-fPIC",
        "-shared",
        "-Wl,-soname,libsqlite3.so",
        "-DSQLITE_THREADSAFE=1",
        "-DSQLITE_DEFAULT_MEMSTATUS=0",
        "-DSQLITE_OMIT_LOAD_EXTENSION",
    ],
    libraries: &["-lm"],
};

/// Every workload.
pub const WORKLOADS: &[Workload] = &[Workload {
    name: "tpcb",
    title: "TPC-B on SQLite",
    sources: &[
        Source::Embedded { name: "tpcb.c", text: include_str!("../../../workloads/tpcb.c") },
        Source::Package {
            package: "libsqlite3-sys",
            files: &["sqlite3/sqlite3.c", "sqlite3/sqlite3.h"],
            home: "the amalgamation on https://sqlite.org/download.html",
        },
    ],
    targets: &[
        SQLITE,
        Target {
            image: "tpcb",
            source: "tpcb.c",
            flags: &["-std=c11", "-Wl,-rpath,$ORIGIN"],
            libraries: &["-L.", "-lsqlite3"],
        },
    ],
    program: "tpcb",
    unit: "tpcb_transaction",
    gauges: ["tpcb_page_hits", "tpcb_page_misses"],
}];

impl Workload {
    /// The workload of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }
}
