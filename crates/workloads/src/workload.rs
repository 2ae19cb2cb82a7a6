//! The workloads, as a table: to add one is to add an entry and its source.

use crate::graphics::GRAPHICS;
use crate::network::{LWIP, NETWORK};
use crate::toolchain::{Toolchain, USUAL};

/// A program to study: its sources, its build, and its unit of work.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name, and the name of its folder of builds.
    pub name: &'static str,
    /// A description, one line.
    pub title: &'static str,
    /// Every file the compiler reads, system headers apart.
    pub sources: &'static [Source],
    /// How it is built.
    pub recipe: Recipe,
    /// The image that is run.
    pub program: &'static str,
    /// The function whose calls are the units of work.
    pub unit: &'static str,
    /// Variables to read at the end of each unit: cumulative page-cache hits, then misses; or none.
    pub gauges: &'static [&'static str],
    /// The compilers that `pathlength build` builds it with.
    pub toolchains: &'static [Toolchain],
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
    /// The archive of the original sources that a Debian source package is made from.
    Debian {
        /// The package.
        package: &'static str,
        /// Where a person without Debian gets the archive.
        home: &'static str,
    },
}

/// How images are built, in a folder with the sources.
#[derive(Clone, Copy, Debug)]
pub enum Recipe {
    /// Each image is compiled by one command, in order: an image may link against those before it.
    Compile(&'static [BuildTarget]),
    /// By the sources' own build system.
    Script(Script),
}

/// Build steps as shell commands.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Required commands, except the compiler, and Debian's packages that have them.
    pub tools: &'static [(&'static str, &'static str)],
    /// A description of the step, and its command. `{compiler}`, `{flags}` and `{make}` stand for the toolchain's.
    pub steps: &'static [ScriptStep],
    /// The images to study.
    pub images: &'static [&'static str],
    /// How changed sources are built; none if they cannot be.
    pub editable: Option<EditableSources>,
}

/// Sources that a build keeps, which compile what changed alone.
#[derive(Clone, Copy, Debug)]
pub struct EditableSources {
    /// Their folder.
    pub folder: &'static str,
    /// The number of steps before they can be changed: those that unpack and configure them.
    pub prepared: usize,
}

/// A description of a step, and its command.
type ScriptStep = (&'static str, &'static str);

/// An image to build from source files.
#[derive(Clone, Copy, Debug)]
pub struct BuildTarget {
    /// The image's file name.
    pub image: &'static str,
    /// The source files' names.
    pub sources: &'static [&'static str],
    /// Switches before the source files.
    pub flags: &'static [&'static str],
    /// Libraries, after the source files.
    pub libraries: &'static [&'static str],
    /// Whether several workloads have this image: it is compiled once, from its source files alone, and copied into their builds.
    pub is_shared: bool,
}

/// SQLite as distributions ship it and servers use it: safe for threads, so that it takes its locks.
/// Loadable extensions and the statistics of the allocator (a lock more in each allocation) are
/// left out, as SQLite's "Recommended Compile-time Options" advise.
const SQLITE: BuildTarget = BuildTarget {
    image: "libsqlite3.so",
    sources: &["sqlite3.c"],
    flags: &[
        "-fPIC",
        "-shared",
        "-Wl,-soname,libsqlite3.so",
        "-DSQLITE_THREADSAFE=1",
        "-DSQLITE_DEFAULT_MEMSTATUS=0",
        "-DSQLITE_OMIT_LOAD_EXTENSION",
    ],
    libraries: &["-lm"],
    is_shared: true,
};

/// The sources of SQLite.
pub const SQLITE_SOURCES: Source = Source::Package {
    package: "libsqlite3-sys",
    files: &["sqlite3/sqlite3.c", "sqlite3/sqlite3.h"],
    home: "the amalgamation on https://sqlite.org/download.html",
};

const TPCB: Workload = Workload {
    name: "tpcb",
    title: "TPC-B on SQLite",
    sources: &[
        Source::Embedded { name: "tpcb.c", text: include_str!("../../../workloads/tpcb.c") },
        SQLITE_SOURCES,
    ],
    recipe: Recipe::Compile(&[
        SQLITE,
        BuildTarget {
            image: "tpcb",
            sources: &["tpcb.c"],
            flags: &["-std=c11", "-Wl,-rpath,$ORIGIN"],
            libraries: &["-L.", "-lsqlite3"],
            is_shared: false,
        },
    ]),
    program: "tpcb",
    unit: "tpcb_transaction",
    gauges: &["tpcb_page_hits", "tpcb_page_misses"],
    toolchains: USUAL,
};

/// Order entry with planted mistakes, for the study of a database's tuning. Loading is a unit of work, too: orders_load.
const ORDERS: Workload = Workload {
    name: "orders",
    title: "Order entry on SQLite, with mistakes",
    sources: &[
        Source::Embedded { name: "orders.c", text: include_str!("../../../workloads/orders.c") },
        SQLITE_SOURCES,
    ],
    recipe: Recipe::Compile(&[
        SQLITE,
        BuildTarget {
            image: "orders",
            sources: &["orders.c"],
            flags: &["-std=gnu11", "-Wl,-rpath,$ORIGIN"],
            libraries: &["-L.", "-lsqlite3"],
            is_shared: false,
        },
    ]),
    program: "orders",
    unit: "orders_transaction",
    gauges: &[],
    toolchains: USUAL,
};

/// A file of TPC-C, which is several.
macro_rules! tpcc_source {
    ($name:literal) => {
        Source::Embedded { name: $name, text: include_str!(concat!("../../../workloads/tpcc/", $name)) }
    };
}

/// Its other transactions are units of work, too: tpcc_payment, tpcc_order_status, tpcc_delivery, tpcc_stock_level.
const TPCC: Workload = Workload {
    name: "tpcc",
    title: "TPC-C on SQLite",
    sources: &[
        tpcc_source!("tpcc.h"),
        tpcc_source!("database.h"),
        tpcc_source!("database.c"),
        tpcc_source!("random.c"),
        tpcc_source!("load.c"),
        tpcc_source!("transactions.c"),
        tpcc_source!("terminals.c"),
        tpcc_source!("check.c"),
        tpcc_source!("main.c"),
        SQLITE_SOURCES,
    ],
    recipe: Recipe::Compile(&[
        SQLITE,
        BuildTarget {
            image: "tpcc",
            sources: &[
                "database.c",
                "random.c",
                "load.c",
                "transactions.c",
                "terminals.c",
                "check.c",
                "main.c",
            ],
            flags: &["-std=gnu11", "-Wl,-rpath,$ORIGIN"],
            libraries: &["-L.", "-lsqlite3", "-lm"],
            is_shared: false,
        },
    ]),
    program: "tpcc",
    unit: "tpcc_new_order",
    gauges: &["tpcc_page_hits", "tpcc_page_misses"],
    toolchains: USUAL,
};

/// A file of TPC-H.
macro_rules! tpch_source {
    ($name:literal) => {
        Source::Embedded { name: $name, text: include_str!(concat!("../../../workloads/tpch/", $name)) }
    };
}

const TPCH: Workload = Workload {
    name: "tpch",
    title: "TPC-H on SQLite",
    sources: &[tpch_source!("rows.h"), tpch_source!("rows.c"), tpch_source!("tpch.c"), SQLITE_SOURCES],
    recipe: Recipe::Compile(&[
        SQLITE,
        BuildTarget {
            image: "tpch",
            sources: &["rows.c", "tpch.c"],
            flags: &["-std=gnu11", "-Wl,-rpath,$ORIGIN"],
            libraries: &["-L.", "-lsqlite3"],
            is_shared: false,
        },
    ]),
    program: "tpch",
    unit: "tpch_query",
    gauges: &[],
    toolchains: USUAL,
};

/// PostgreSQL, with its regression tests. It finds its files relative to its programs, wherever its
/// folder is moved; only the place of its own library has to be said (`rpathdir`). Nothing of the
/// building machine is used but the compiler of time zones, as PostgreSQL's own cannot run there.
/// make's TARGET_ARCH goes into each compilation but, unlike CFLAGS, not into the output of `pg_config`:
/// so the same build has the same bytes. Objects and their dependencies are kept, so that changed sources are built in seconds.
pub const POSTGRESQL: Workload = Workload {
    name: "postgresql",
    title: "PostgreSQL 15",
    sources: &[POSTGRESQL_SOURCE],
    recipe: Recipe::Script(POSTGRESQL_SCRIPT),
    program: "bin/postgres",
    // Statements that drivers prepare never come to exec_simple_query.
    unit: "PortalRun",
    gauges: &[],
    toolchains: USUAL,
};

const POSTGRESQL_SOURCE: Source = Source::Debian {
    package: "postgresql-15",
    home: "postgresql-15.*.tar.bz2 on https://www.postgresql.org/ftp/source",
};

const POSTGRESQL_SCRIPT: Script = Script {
    tools: &[("tar", "tar"), ("bzip2", "bzip2"), ("make", "make"), ("zic", "libc-bin")],
    steps: &[UNPACKING, CONFIGURING, COMPILING, INSTALLING],
    images: &["bin/postgres", "lib/plpgsql.so", "lib/dict_snowball.so", "lib/libpq.so.5.15"],
    editable: Some(EditableSources { folder: "source", prepared: 2 }),
};

const UNPACKING: ScriptStep =
    ("unpacking", "mkdir -p source && tar -xf postgresql-15*.tar.* -C source --strip-components=1");
const CONFIGURING: ScriptStep = (
    "configuring",
    "cd source && ./configure --quiet --build=\"$(cc -dumpmachine)\" \
                 --host=\"$({compiler} -dumpmachine)\" --enable-depend --without-readline --without-zlib \
                 CC={compiler} CFLAGS='{flags}' && \
                 sed -i 's/^abs_top_\\(builddir\\|srcdir\\) = .*/abs_top_\\1 = $(abspath $(top_\\1))/' src/Makefile.global",
);
const COMPILING: ScriptStep = (
    "compiling",
    "here=$PWD && for part in . src/test/regress; do make -s -C source/$part{make} ZIC=zic \
                 TARGET_ARCH=\"-ffile-prefix-map=$here=.\" rpathdir='$$ORIGIN/../lib'; done",
);
const INSTALLING: ScriptStep = (
    "installing",
    "make -s -C source{make} install DESTDIR=\"$PWD/install\" ZIC=zic rpathdir='$$ORIGIN/../lib' && \
                 cp -a install/usr/local/pgsql/. . && rm -r install",
);

/// PostgreSQL with the data that several processes use laid out for cache lines: what `study numa` compares.
pub const POSTGRESQL_CACHE_LINES: Workload = Workload {
    name: "postgresql-cache-lines",
    title: "PostgreSQL 15 with shared data laid out for cache lines",
    sources: &[
        POSTGRESQL_SOURCE,
        Source::Embedded {
            name: "cache-lines.sh",
            text: include_str!("../../../workloads/postgresql/cache-lines.sh"),
        },
    ],
    recipe: Recipe::Script(Script {
        steps: &[UNPACKING, ("changing", "sh cache-lines.sh source/src"), CONFIGURING, COMPILING, INSTALLING],
        editable: None,
        ..POSTGRESQL_SCRIPT
    }),
    ..POSTGRESQL
};

/// The product of a sparse matrix and a vector, in Fortran: two loops, each with a small and a large matrix, and with
/// and without unrolled loops. `-O3` takes effect since it follows the switches of every build.
const SPMV: Workload = Workload {
    name: "spmv",
    title: "A sparse matrix-vector product",
    sources: &[Source::Embedded { name: "spmv.f90", text: include_str!("../../../workloads/spmv.f90") }],
    recipe: Recipe::Compile(&[
        spmv("spmv", &["-O3", "-cpp"]),
        spmv("spmv-unrolled", &["-O3", "-funroll-loops", "-cpp"]),
        spmv("spmv-large", &["-O3", "-cpp", "-DLARGE"]),
        spmv("spmv-large-unrolled", &["-O3", "-funroll-loops", "-cpp", "-DLARGE"]),
    ]),
    program: "spmv",
    unit: "spmv_original_",
    gauges: &[],
    toolchains: USUAL,
};

const fn spmv(image: &'static str, flags: &'static [&'static str]) -> BuildTarget {
    BuildTarget { image, sources: &["spmv.f90"], flags, libraries: &["-lgfortran", "-lm"], is_shared: false }
}

/// Vectors, conjugate gradients and a stencil, in processes or threads: what commercial workloads are compared with.
const TECHNICAL: Workload = Workload {
    name: "technical",
    title: "Technical kernels on several processors",
    sources: &[Source::Embedded {
        name: "technical.c",
        text: include_str!("../../../workloads/technical.c"),
    }],
    recipe: Recipe::Compile(&[BuildTarget {
        image: "technical",
        sources: &["technical.c"],
        flags: &["-std=gnu11", "-O3", "-pthread"],
        libraries: &["-lm"],
        is_shared: false,
    }]),
    program: "technical",
    unit: "iteration",
    gauges: &[],
    toolchains: USUAL,
};

/// Every workload.
pub const WORKLOADS: &[Workload] =
    &[TPCB, TPCC, TPCH, ORDERS, POSTGRESQL, SPMV, TECHNICAL, NETWORK, LWIP, GRAPHICS];

/// The names of all workloads.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|workload| workload.name).collect()
}

impl Recipe {
    /// The images it makes, by their names in the folder of the build.
    pub fn images(&self) -> Vec<&'static str> {
        match self {
            Recipe::Compile(targets) => targets.iter().map(|target| target.image).collect(),
            Recipe::Script(script) => script.images.to_vec(),
        }
    }
}

impl Workload {
    /// The workload of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }
}
