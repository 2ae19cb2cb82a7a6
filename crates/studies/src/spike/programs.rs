//! The programs of the study, as a table: to add one is to add an entry.

use super::inputs::{Content, GeneratedInput};
use workloads::toolchain::USUAL;
use workloads::workload::{
    BuildTarget, POSTGRESQL as POSTGRESQL_WORKLOAD, Recipe, SQLITE_SOURCES, Script, Source, Workload,
};

/// A program of the study.
#[derive(Clone, Copy, Debug)]
pub struct StudyProgram {
    /// Its sources and its build.
    pub workload: Workload,
    /// What kind of a program it is.
    pub kind: &'static str,
    /// A shell script that makes the file or folder `$PREPARED`, of which each run gets a copy, if one is needed. `$NATIVE` is
    /// the folder of the host's build, `$INPUTS` that of the inputs.
    pub prepare: Option<&'static str>,
    /// Folders of its build that it looks for relative to its own folder.
    pub beside: &'static [&'static str],
    /// Whether it does not run as root.
    pub refuses_root: bool,
    /// The files that it reads.
    pub inputs: &'static [GeneratedInput],
    /// The arguments of the run that it is optimized by. `{inputs}` stands for the folder of the inputs, `{work}` for one of
    /// files that it makes, `{prepared}` for its copy of what was prepared. An argument that begins with `<` names its standard
    /// input.
    pub training: &'static [&'static str],
    /// The arguments of the run that is measured.
    pub test: &'static [&'static str],
}

const TAR: (&str, &str) = ("tar", "tar");
const MAKE: (&str, &str) = ("make", "make");
const UNPACKING: (&str, &str) = ("unpacking", "tar -xf *.orig.tar.?z* --strip-components=1");
/// Switches of every configure script.
macro_rules! configured {
    ($switches:literal) => {
        concat!(
            "./configure --quiet --build=\"$(cc -dumpmachine)\" --host=\"$({compiler} -dumpmachine)\" ",
            $switches,
            " CC={compiler} CFLAGS=\"{flags} -ffile-prefix-map=$PWD=.\" && make -s && find . -name '*.o' -delete"
        )
    };
}

const fn script(
    name: &'static str,
    title: &'static str,
    source: &'static [Source],
    script: Script,
) -> Workload {
    let program = script.images[0];
    Workload {
        name,
        title,
        sources: source,
        recipe: Recipe::Script(script),
        program,
        unit: "main",
        gauges: &[],
        toolchains: USUAL,
    }
}

const fn input(name: &'static str, content: Content, seed: u64) -> GeneratedInput {
    GeneratedInput { name, content, seed }
}

/// A program that only reads its inputs.
const PLAIN: StudyProgram = StudyProgram {
    workload: POSTGRESQL_WORKLOAD,
    kind: "",
    prepare: None,
    beside: &[],
    refuses_root: false,
    inputs: &[],
    training: &[],
    test: &[],
};

const SQLITE: StudyProgram = StudyProgram {
    workload: Workload {
        name: "sqlite",
        title: "SQLite, TPC-B",
        sources: &[
            Source::Embedded { name: "tpcb.c", text: include_str!("../../../../workloads/tpcb.c") },
            SQLITE_SOURCES,
        ],
        recipe: Recipe::Compile(&[BuildTarget {
            image: "tpcb",
            sources: &["tpcb.c", "sqlite3.c"],
            flags: &["-DSQLITE_THREADSAFE=1", "-DSQLITE_DEFAULT_MEMSTATUS=0", "-DSQLITE_OMIT_LOAD_EXTENSION"],
            libraries: &["-lm"],
            is_shared: false,
        }]),
        program: "tpcb",
        unit: "tpcb_transaction",
        gauges: &[],
        toolchains: USUAL,
    },
    kind: "database",
    prepare: Some("\"$NATIVE/tpcb\" load \"$PREPARED\" --branches 1 --accounts-per-branch 10000"),
    training: &["run", "{prepared}", "--transactions", "1000", "--seed", "7"],
    test: &["run", "{prepared}", "--transactions", "500", "--seed", "3"],
    ..PLAIN
};

const LUA: StudyProgram = StudyProgram {
    workload: script(
        "lua",
        "Lua 5.4",
        &[Source::Debian { package: "lua5.4", home: "lua-5.4.*.tar.gz on https://www.lua.org/ftp/" }],
        Script {
            tools: &[TAR, MAKE],
            steps: &[
                UNPACKING,
                (
                    "compiling",
                    // The same hashes wherever code and data lie, so that only what is optimized differs.
                    "make -s -C src lua CC={compiler} \
                     MYCFLAGS=\"{flags} -DLUA_USE_POSIX '-Dluai_makeseed(L)=0' -ffile-prefix-map=$PWD=.\" \
                     MYLIBS= MYLDFLAGS='{flags}' && mv src/lua . && make -s -C src clean",
                ),
            ],
            images: &["lua"],
            editable: None,
        },
    ),
    kind: "interpreter",
    inputs: &[
        input("training.lua", Content::Text(include_str!("lua/training.lua")), 0),
        input("test.lua", Content::Text(include_str!("lua/test.lua")), 0),
        input("training.txt", Content::Prose(400), 11),
        input("test.txt", Content::Prose(500), 12),
    ],
    training: &["{inputs}/training.lua", "{inputs}/training.txt"],
    test: &["{inputs}/test.lua", "{inputs}/test.txt"],
    ..PLAIN
};

const BZIP2: StudyProgram = StudyProgram {
    workload: script(
        "bzip2",
        "bzip2 1.0",
        &[Source::Debian {
            package: "bzip2",
            home: "bzip2-1.0.*.tar.gz on https://sourceware.org/pub/bzip2/",
        }],
        Script {
            tools: &[TAR, MAKE],
            steps: &[
                UNPACKING,
                (
                    "compiling",
                    "make -s bzip2 CC={compiler} CFLAGS=\"{flags} -D_FILE_OFFSET_BITS=64 -ffile-prefix-map=$PWD=.\" && \
                     rm -f *.o *.a",
                ),
            ],
            images: &["bzip2"],
            editable: None,
        },
    ),
    kind: "compressor",
    inputs: &[input("training.txt", Content::Prose(1500), 21), input("test.json", Content::Json(700), 22)],
    training: &["-c", "{inputs}/training.txt"],
    test: &["-c", "{inputs}/test.json"],
    ..PLAIN
};

const TCC: StudyProgram = StudyProgram {
    workload: script(
        "tcc",
        "The Tiny C Compiler, for x86-64",
        &[Source::Debian { package: "tcc", home: "the sources on https://repo.or.cz/tinycc.git" }],
        Script {
            tools: &[TAR, ("bzip2", "bzip2")],
            steps: &[
                ("unpacking", "tar -xf *.orig.tar.?z*"),
                (
                    "compiling",
                    "touch config.h && {compiler} {flags} -w -ffile-prefix-map=$PWD=. -DONE_SOURCE=1 \
                     -DTCC_TARGET_X86_64 -DCONFIG_TCC_SEMLOCK=0 -DTCC_VERSION='\"0.9.27\"' -o tcc tcc.c -ldl -lm",
                ),
            ],
            images: &["tcc"],
            editable: None,
        },
    ),
    kind: "compiler",
    inputs: &[input("training.c", Content::C(400), 31), input("test.c", Content::C(500), 32)],
    training: &["-c", "{inputs}/training.c", "-o", "{work}/made.o"],
    test: &["-c", "{inputs}/test.c", "-o", "{work}/made.o"],
    ..PLAIN
};

const LAME: StudyProgram = StudyProgram {
    workload: script(
        "lame",
        "LAME 3.100, MP3",
        &[Source::Debian { package: "lame", home: "lame-3.100.tar.gz on https://lame.sourceforge.io/" }],
        Script {
            tools: &[TAR, MAKE],
            steps: &[
                UNPACKING,
                ("compiling", configured!("--disable-shared --disable-gtktest --disable-decoder")),
            ],
            images: &["frontend/lame"],
            editable: None,
        },
    ),
    kind: "signal processing (floating point)",
    inputs: &[
        input("training.raw", Content::Sound(30_000), 41),
        input("test.raw", Content::Sound(40_000), 42),
    ],
    training: &["--quiet", "-r", "-s", "44.1", "-m", "m", "{inputs}/training.raw", "-"],
    test: &["--quiet", "-r", "-s", "44.1", "-m", "m", "-V", "2", "{inputs}/test.raw", "-"],
    ..PLAIN
};

const GREP: StudyProgram = StudyProgram {
    workload: script(
        "grep",
        "GNU grep 3.8",
        &[Source::Debian { package: "grep", home: "grep-3.*.tar.xz on https://ftp.gnu.org/gnu/grep/" }],
        Script {
            tools: &[TAR, ("xz", "xz-utils"), MAKE],
            steps: &[UNPACKING, ("compiling", configured!("--disable-nls --disable-perl-regexp"))],
            images: &["src/grep"],
            editable: None,
        },
    ),
    kind: "text tool",
    inputs: &[input("training.txt", Content::Prose(2000), 51), input("test.txt", Content::Prose(2000), 52)],
    training: &[
        "-n",
        "-E",
        "-e",
        "(re|con)[a-m]*tion|ble[.,]",
        "-e",
        "the (in|to)+sta",
        "{inputs}/training.txt",
    ],
    test: &["-c", "-i", "-E", "\\b(ma|per)([a-z])[a-z]*\\2|ly, .*ing", "{inputs}/test.txt"],
    ..PLAIN
};

const JQ: StudyProgram = StudyProgram {
    workload: script(
        "jq",
        "jq 1.6",
        &[Source::Debian { package: "jq", home: "jq-1.6.tar.gz on https://github.com/jqlang/jq/releases" }],
        Script {
            tools: &[TAR, ("sed", "sed")],
            steps: &[
                UNPACKING,
                (
                    "compiling",
                    // The archive has no configure script.
                    "sed 's/\\\\/\\\\\\\\/g; s/\"/\\\\\"/g; s/^/\"/; s/$/\\\\n\"/' src/builtin.jq >src/builtin.inc && \
                     echo '#define JQ_VERSION \"1.6\"' >src/version.h && rm src/inject_errors.c && \
                     {compiler} {flags} -w -ffile-prefix-map=$PWD=. -std=gnu99 -I. -Isrc -D_GNU_SOURCE -DIEEE_8087=1 \
                     -DHAVE_ISATTY -DHAVE_MEMMEM -DHAVE_TIMEGM -DHAVE_GMTIME_R -DHAVE_STRPTIME -DHAVE_MKTIME \
                     -DHAVE_GETTIMEOFDAY -DHAVE_TM_TM_GMT_OFF -DHAVE_SETLOCALE -DHAVE_PTHREAD_KEY_CREATE \
                     -o jq src/*.c -lm -lpthread",
                ),
            ],
            images: &["jq"],
            editable: None,
        },
    ),
    kind: "data tool",
    inputs: &[input("training.json", Content::Json(200), 61), input("test.json", Content::Json(250), 62)],
    training: &[
        "-s",
        "group_by(.town) | map({town: .[0].town, sum: (map(.price) | add)}) | sort_by(.sum)",
        "{inputs}/training.json",
    ],
    test: &[
        "-c",
        "select(.stock.count > 100) | {name, tags: (.tags | join(\"-\")), value: (.price * .stock.count)}",
        "{inputs}/test.json",
    ],
    ..PLAIN
};

/// The server as a single process, which reads a statement a line. It has no network, no clients and no other processes.
const POSTGRESQL: StudyProgram = StudyProgram {
    workload: Workload { title: "PostgreSQL 15, TPC-B", ..POSTGRESQL_WORKLOAD },
    kind: "database",
    prepare: Some(
        "rm -rf \"$PREPARED\" && \
         \"$NATIVE/bin/initdb\" --no-locale -E UTF8 -A trust -N -D \"$PREPARED\" && \
         \"$NATIVE/bin/postgres\" --single -F -D \"$PREPARED\" postgres <\"$INPUTS/load.sql\"",
    ),
    beside: &["share", "lib"],
    refuses_root: true,
    inputs: &[
        input("load.sql", Content::Text(include_str!("postgresql/load.sql")), 0),
        input("training.sql", Content::Transactions(120), 71),
        input("test.sql", Content::Transactions(80), 72),
    ],
    training: &[
        "--single",
        "-D",
        "{prepared}",
        "-c",
        "log_checkpoints=off",
        "postgres",
        "<{inputs}/training.sql",
    ],
    test: &["--single", "-D", "{prepared}", "-c", "log_checkpoints=off", "postgres", "<{inputs}/test.sql"],
};

/// Every program.
pub const PROGRAMS: [StudyProgram; 8] = [SQLITE, POSTGRESQL, LUA, BZIP2, TCC, LAME, GREP, JQ];

impl StudyProgram {
    /// Why this user cannot run it.
    pub fn obstacle(&self) -> Option<&'static str> {
        let is_refused = self.refuses_root && rustix::process::geteuid().is_root();
        is_refused.then_some("it does not run as root: study it as another user")
    }
}

/// The names of all programs.
pub fn names() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.workload.name).collect()
}
