//! The programs of the study, as a table.

use crate::spike::{self, Content, GeneratedInput, StudyProgram};
use workloads::toolchain::USUAL;
use workloads::workload::{BuildTarget, Recipe, Script, Source, Workload};

/// A program of the study.
#[derive(Clone, Copy, Debug)]
pub struct SystemProgram {
    /// Its name.
    pub name: &'static str,
    /// What it is, and which of the slides' workloads it stands for.
    pub kind: &'static str,
    /// Its sources and its build.
    pub workload: Workload,
    /// A shell script that makes the file or folder `$PREPARED`, if one is needed. `$NATIVE` is the folder of the host's build,
    /// `$INPUTS` that of the inputs.
    pub prepare: Option<&'static str>,
    /// The files that it reads.
    pub inputs: &'static [GeneratedInput],
    /// Its arguments. `{inputs}` stands for the folder of the inputs, `{prepared}` for what was prepared. An argument that begins
    /// with `<` names its standard input.
    pub arguments: &'static [&'static str],
    /// The unit of work that is recorded, if not the whole run.
    pub unit: Option<RecordedUnits>,
    /// Whether what was prepared lies on a disk, and not in memory.
    pub is_on_disk: bool,
    /// Whether it does not run as root.
    pub refuses_root: bool,
}

/// Units of work that are recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordedUnits {
    /// The function whose calls they are.
    pub function: &'static str,
    /// What they are called.
    pub name: &'static str,
    /// Earlier ones, which are not recorded.
    pub skip: u64,
    /// How many are recorded.
    pub units: u64,
}

const LAME_DECODER: Workload = Workload {
    name: "lame-decoder",
    title: "LAME 3.100, which decodes MP3, too",
    sources: &[Source::Debian { package: "lame", home: "lame-3.100.tar.gz on https://lame.sourceforge.io/" }],
    recipe: Recipe::Script(Script {
        tools: &[("tar", "tar"), ("make", "make")],
        steps: &[
            ("unpacking", "tar -xf *.orig.tar.?z* --strip-components=1"),
            (
                "compiling",
                "./configure --quiet --build=\"$(cc -dumpmachine)\" --host=\"$({compiler} -dumpmachine)\" --disable-shared \
                 --disable-gtktest --enable-decoder CC={compiler} CFLAGS=\"{flags} -ffile-prefix-map=$PWD=.\" && make -s && \
                 find . -name '*.o' -delete",
            ),
        ],
        images: &["frontend/lame"],
        editable: None,
    }),
    program: "frontend/lame",
    unit: "main",
    gauges: &[],
    toolchains: USUAL,
};

const KERNELS: Workload = Workload {
    name: "kernels",
    title: "Loops of BYTEmark's kinds",
    sources: &[Source::Embedded { name: "kernels.c", text: include_str!("../../../../workloads/kernels.c") }],
    recipe: Recipe::Compile(&[BuildTarget {
        image: "kernels",
        sources: &["kernels.c"],
        flags: &[],
        libraries: &[],
        is_shared: false,
    }]),
    program: "kernels",
    unit: "main",
    gauges: &[],
    toolchains: USUAL,
};

const SHELL: Workload = Workload {
    name: "mksh",
    title: "The MirBSD Korn shell",
    sources: &[Source::Debian {
        package: "mksh",
        home: "mksh-R59c.tgz on http://www.mirbsd.org/MirOS/dist/mir/mksh/",
    }],
    recipe: Recipe::Script(Script {
        tools: &[("tar", "tar")],
        steps: &[
            ("unpacking", "tar -xf *.orig.tar.?z* --strip-components=1"),
            (
                "compiling",
                "CC={compiler} CFLAGS=\"{flags} -ffile-prefix-map=$PWD=.\" TARGET_OS=Linux sh Build.sh -r && rm -f *.o",
            ),
        ],
        images: &["mksh"],
        editable: None,
    }),
    program: "mksh",
    unit: "main",
    gauges: &[],
    toolchains: USUAL,
};

/// A session at the shell, and the text that it works on.
const SESSION: [GeneratedInput; 2] = [
    GeneratedInput {
        name: "session.sh",
        content: Content::Text(include_str!("../../../../workloads/session.sh")),
        seed: 0,
    },
    GeneratedInput { name: "text.txt", content: Content::Prose(40), seed: 82 },
];

/// The sound that is decoded.
const SOUND: GeneratedInput =
    GeneratedInput { name: "sound.raw", content: Content::Sound(120_000), seed: 81 };

/// A program that only reads its inputs.
const PLAIN: SystemProgram = SystemProgram {
    name: "kernels",
    kind: "loops like BYTEmark's (BYTEmark)",
    workload: KERNELS,
    prepare: None,
    inputs: &[],
    arguments: &["2"],
    unit: None,
    is_on_disk: false,
    refuses_root: false,
};

const INTERACTIVE: SystemProgram = SystemProgram {
    name: "mksh",
    kind: "interactive shell (Internet Explorer)",
    workload: SHELL,
    inputs: &SESSION,
    arguments: &["-i", "-s", "{inputs}/text.txt", "<{inputs}/session.sh"],
    ..PLAIN
};

const DECODER: SystemProgram = SystemProgram {
    name: "lame",
    kind: "MP3 decoder (CD Player)",
    workload: LAME_DECODER,
    prepare: Some(
        "\"$NATIVE/frontend/lame\" --quiet -r -s 44.1 -m m --noreplaygain \"$INPUTS/sound.raw\" \"$PREPARED\"",
    ),
    inputs: &[SOUND],
    arguments: &["--quiet", "--mp3input", "--decode", "{prepared}", "-"],
    ..PLAIN
};

/// Transactions of TPC-B in SQLite.
const TRANSACTIONS: RecordedUnits =
    RecordedUnits { function: "tpcb_transaction", name: "transaction", skip: 250, units: 200 };
/// Statements of 40 transactions of TPC-B in PostgreSQL.
const STATEMENTS: RecordedUnits =
    RecordedUnits { function: "exec_simple_query", name: "statement", skip: 140, units: 280 };

/// The program of the study of spike with this name.
fn of_spike(name: &str) -> &'static StudyProgram {
    let programs = &spike::PROGRAMS;
    programs.iter().find(|program| program.workload.name == name).expect("it is in the table of that study")
}

/// A program as the study of spike runs it.
fn as_in_spike(name: &'static str, kind: &'static str) -> SystemProgram {
    let StudyProgram { workload, prepare, inputs, test, refuses_root, .. } = *of_spike(name);
    SystemProgram { name, kind, workload, prepare, inputs, arguments: test, refuses_root, ..PLAIN }
}

/// Every program.
pub fn programs() -> Vec<SystemProgram> {
    let sqlite = SystemProgram {
        name: "sqlite",
        kind: "database, cached (Oracle)",
        workload: *Workload::named("tpcb").expect("it is in the table"),
        prepare: Some("\"$NATIVE/tpcb\" load \"$PREPARED\""),
        arguments: &["run", "{prepared}", "--mode", "cached", "--transactions", "500"],
        unit: Some(TRANSACTIONS),
        ..PLAIN
    };
    let postgresql =
        SystemProgram { unit: Some(STATEMENTS), ..as_in_spike("postgresql", "database, cached (Oracle)") };
    vec![
        PLAIN,
        as_in_spike("bzip2", "compressor (BYTEmark)"),
        as_in_spike("lua", "interpreter (BYTEmark)"),
        as_in_spike("grep", "text tool"),
        INTERACTIVE,
        DECODER,
        sqlite,
        SystemProgram {
            name: "sqlite-scaled",
            kind: "database, larger than its cache (Oracle)",
            arguments: &["run", "{prepared}", "--mode", "scaled", "--transactions", "500"],
            ..sqlite
        },
        SystemProgram { name: "sqlite-disk", kind: "database, on disk (Oracle)", is_on_disk: true, ..sqlite },
        postgresql,
        SystemProgram {
            name: "postgresql-disk",
            kind: "database, on disk (Oracle)",
            is_on_disk: true,
            ..postgresql
        },
    ]
}

/// The names of all programs.
pub fn names() -> Vec<&'static str> {
    programs().iter().map(|program| program.name).collect()
}
