//! Builds workloads with the real compilers.

mod graphics;
mod network;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use pathlength_workloads::build::{Build, BuildFolders, BuildProgress, Error, build, build_patched};
use pathlength_workloads::toolchain::{BYTE_WORD, NATIVE, ORIGINAL, Toolchain, USUAL};
use pathlength_workloads::workload::{BuildTarget, EditableSources, Recipe, Script, Source, Workload};

const LIBRARY: &str = "int half(short *p) { return *p / 2; }\n";
const PROGRAM: &str = "int half(short *); int main(void) { short four = 4; return half(&four) - 2; }\n";

/// A library and a program, as `tpcb`, but compiled in a moment.
const SMALL: Workload = Workload {
    name: "small",
    title: "A library and a program",
    sources: &[
        Source::Embedded { name: "half.c", text: LIBRARY },
        Source::Embedded { name: "small.c", text: PROGRAM },
    ],
    recipe: Recipe::Compile(&[
        BuildTarget {
            image: "libhalf.so",
            sources: &["half.c"],
            flags: &["-fPIC", "-shared", "-Wl,-soname,libhalf.so"],
            libraries: &[],
            is_shared: true,
        },
        BuildTarget {
            image: "small",
            sources: &["small.c"],
            flags: &["-Wl,-rpath,$ORIGIN"],
            libraries: &["-L.", "-lhalf"],
            is_shared: false,
        },
    ]),
    program: "small",
    unit: "half",
    gauges: &[],
    toolchains: USUAL,
};

fn options(folder: &Path) -> BuildFolders {
    BuildFolders { folder: folder.into(), sources: None }
}

fn error(workload: &Workload, toolchain: Toolchain) -> (tempfile::TempDir, Error) {
    let folder = tempfile::tempdir().unwrap();
    let error = build(workload, &[toolchain], &options(folder.path()), &|_| {}).unwrap_err();
    (folder, error)
}

#[test]
fn builds_differ_only_in_their_switches() {
    let folder = tempfile::tempdir().unwrap();
    let builds = build(&SMALL, &[ORIGINAL, BYTE_WORD, NATIVE], &options(folder.path()), &|_| {}).unwrap();
    let names: Vec<_> = builds.iter().map(|build| build.name).collect();
    assert_eq!(names, ["original", "byte-word", "native"]);
    let neutral = |command: &String| command.replace("-mcpu=ev56 -mbwx", "-mcpu=ev5 -mno-bwx");
    assert_eq!(builds[0].commands, builds[1].commands.iter().map(neutral).collect::<Vec<_>>());
    assert_ne!(fs::read(&builds[0].images[0]).unwrap(), fs::read(&builds[1].images[0]).unwrap());
    assert!(std::process::Command::new(&builds[2].program).status().unwrap().success());
}

#[test]
fn same_build_twice_has_the_same_bytes_and_is_made_once_in_a_folder() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, other] = folders
        .each_ref()
        .map(|folder| build(&SMALL, &[ORIGINAL], &options(folder.path()), &|_| {}).unwrap().remove(0));
    for (a, b) in one.images.iter().zip(&other.images) {
        assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap(), "{}", a.display());
    }
    let seen = Mutex::new(Vec::new());
    let again =
        build(&SMALL, &[ORIGINAL], &options(folders[0].path()), &|event| seen.lock().unwrap().push(event));
    assert_eq!(again.unwrap(), [one]);
    assert_eq!(*seen.lock().unwrap(), [BuildProgress::Done { build: "original" }]);
}

/// Two workloads at the same time, with both toolchains: each library is compiled once.
#[test]
fn workloads_share_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let other = Workload { name: "other", ..SMALL };
    let compiled = Mutex::new(Vec::new());
    let made = |workload| {
        let progress = |event| {
            if let BuildProgress::Step { build, what, .. } = event {
                compiled.lock().unwrap().push((build, what));
            }
        };
        build(workload, &[ORIGINAL, BYTE_WORD], &options(folder.path()), &progress).unwrap()
    };
    let (one, two) = std::thread::scope(|scope| {
        let two = scope.spawn(|| made(&other));
        (made(&SMALL), two.join().unwrap())
    });
    for (one, two) in one.iter().zip(&two) {
        assert_ne!(one.folder, two.folder);
        assert_eq!(fs::read(&one.images[0]).unwrap(), fs::read(&two.images[0]).unwrap());
    }
    let mut compiled = compiled.into_inner().unwrap();
    compiled.sort();
    let twice = |build| [(build, "libhalf.so"), (build, "small"), (build, "small")];
    assert_eq!(compiled, [twice("byte-word"), twice("original")].concat());
}

#[test]
fn commands_shown_make_the_same_build_in_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let build = build(&SMALL, &[BYTE_WORD], &options(folder.path()), &|_| {}).unwrap().remove(0);
    let copy = tempfile::tempdir().unwrap();
    for source in ["half.c", "small.c"] {
        fs::copy(build.program.with_file_name(source), copy.path().join(source)).unwrap();
    }
    for command in &build.commands {
        let status = std::process::Command::new("sh").args(["-c", command]).current_dir(&copy).status();
        assert!(status.unwrap().success(), "{command}");
    }
    for image in &build.images {
        let copied = copy.path().join(image.file_name().unwrap());
        assert_eq!(fs::read(image).unwrap(), fs::read(copied).unwrap());
    }
}

#[test]
fn changed_source_is_another_build() {
    let folder = tempfile::tempdir().unwrap();
    let changed = Workload {
        sources: &[
            Source::Embedded { name: "half.c", text: "int half(short *p) { return *p >> 1; }\n" },
            Source::Embedded { name: "small.c", text: PROGRAM },
        ],
        ..SMALL
    };
    let program =
        |workload| build(workload, &[ORIGINAL], &options(folder.path()), &|_| {}).unwrap().remove(0).program;
    assert_ne!(program(&SMALL), program(&changed));
}

#[test]
fn missing_compiler_says_what_to_install() {
    let (_folder, error) = error(&SMALL, Toolchain { compiler: "alpha-none-gcc", ..ORIGINAL });
    assert!(matches!(error, Error::NoTool { .. }), "{error}");
    assert!(error.to_string().contains("apt-get install gcc-alpha-linux-gnu"), "{error}");
}

#[test]
fn rejected_source_shows_the_compilers_words_and_leaves_nothing() {
    let broken = Workload { sources: &[Source::Embedded { name: "half.c", text: "int half( {" }], ..SMALL };
    let (folder, error) = error(&broken, ORIGINAL);
    assert!(error.to_string().contains("half.c:1:"), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("small")).unwrap().count(), 0);
}

#[test]
fn missing_source_says_where_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = BuildFolders { sources: Some(folder.path().join("nowhere")), ..options(folder.path()) };
    let error = build(Workload::named("tpcb").unwrap(), &[NATIVE], &options, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("sqlite.org"), "{error}");
}

#[test]
fn sources_come_from_a_folder_if_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("answer.c"), "int main(void) { return 0; }\n").unwrap();
    let workload = Workload {
        sources: &[Source::Package { package: "none", files: &["deep/answer.c"], home: "elsewhere" }],
        recipe: Recipe::Compile(&[BuildTarget {
            image: "answer",
            sources: &["answer.c"],
            flags: &[],
            libraries: &[],
            is_shared: false,
        }]),
        program: "answer",
        ..SMALL
    };
    let options = BuildFolders { sources: Some(folder.path().into()), ..options(folder.path()) };
    let builds = build(&workload, &[NATIVE], &options, &|_| {}).unwrap();
    assert!(std::process::Command::new(&builds[0].program).status().unwrap().success());
}

/// A workload whose sources have their own build script.
const SCRIPTED: Workload = Workload {
    sources: &[Source::Embedded { name: "small.c", text: "int main(void) { return 0; }\n" }],
    recipe: Recipe::Script(Script {
        tools: &[("sh", "dash")],
        steps: &[
            ("unpacking", "mkdir bin && mv small.c bin/main.c"),
            ("compiling", "cd bin && {compiler} {flags} -o small main.c"),
        ],
        images: &["bin/small"],
        editable: Some(EditableSources { folder: "bin", prepared: 1 }),
    }),
    program: "bin/small",
    ..SMALL
};

#[test]
fn script_makes_its_images_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Mutex::new(Vec::new());
    let see = |event| seen.lock().unwrap().push(event);
    let build = build(&SCRIPTED, &[NATIVE], &options(folder.path()), &see).unwrap().remove(0);
    let step = |doing| BuildProgress::Step { build: "native", doing, what: SMALL.title };
    let done = BuildProgress::Done { build: "native" };
    assert_eq!(*seen.lock().unwrap(), [step("unpacking"), step("compiling"), done]);
    assert_eq!(build.images, std::slice::from_ref(&build.program));
    assert!(std::process::Command::new(&build.program).status().unwrap().success());
}

/// Sources with a makefile that leaves absolute links, as PostgreSQL's: what is kept can be built again where it lies, and with a patch
/// only what changes is compiled.
#[test]
fn kept_sources_are_built_again_and_with_patches() {
    const MADE: Workload = Workload {
        sources: &[
            Source::Embedded { name: "half.h", text: "#define HALF 2\n" },
            Source::Embedded {
                name: "half.c",
                text: "#include \"linked.h\"\nint half(int x) { return x / HALF; }\n",
            },
            Source::Embedded {
                name: "small.c",
                text: "#include <stdio.h>\nint half(int);\nint main(void) { printf(\"%d\\n\", half(12)); }\n",
            },
            Source::Embedded {
                name: "makefile",
                text: "small: small.o half.o\n\t$(CC) -o $@ $^\nhalf.o: include/linked.h half.h\n\
                       include/linked.h:\n\tmkdir -p include && ln -s $(CURDIR)/half.h $@\n\
                       %.o: %.c\n\techo $@ >> compiled\n\t$(CC) -Iinclude -c $<\n",
            },
        ],
        recipe: Recipe::Script(Script {
            tools: &[("make", "make")],
            steps: &[
                ("unpacking", "mkdir -p tree && mv half.h half.c small.c makefile tree"),
                ("compiling", "make -s -C tree CC={compiler}"),
                ("installing", "mkdir -p bin && cp tree/small bin"),
            ],
            images: &["bin/small"],
            editable: Some(EditableSources { folder: "tree", prepared: 1 }),
        }),
        program: "bin/small",
        ..SMALL
    };
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let printed = |build: &Build| {
        String::from_utf8(std::process::Command::new(&build.program).output().unwrap().stdout).unwrap()
    };
    let patch = folder.path().join("third.patch");
    fs::write(&patch, "--- a/half.h\n+++ b/half.h\n@@ -1 +1 @@\n-#define HALF 2\n+#define HALF 3\n").unwrap();
    let patched = || build_patched(&MADE, &[NATIVE], &options, std::slice::from_ref(&patch), &|_| {});
    let third = patched().unwrap().remove(0);
    let half = build(&MADE, &[NATIVE], &options, &|_| {}).unwrap().remove(0);
    assert_eq!((printed(&half).as_str(), printed(&third).as_str()), ("6\n", "4\n"));
    assert_ne!(half.folder, third.folder);
    assert_eq!(third.sources.last().map(String::as_str), Some("1.patch"));
    let compiled = |build: &Build| fs::read_to_string(build.folder.join("tree/compiled")).unwrap();
    assert_eq!(compiled(&third).strip_prefix(&compiled(&half)), Some("half.o\n"));
    // The kept tree, by hand.
    let tree = half.folder.join("tree");
    assert_eq!(fs::read_link(tree.join("include/linked.h")).unwrap(), Path::new("../../tree/half.h"));
    fs::write(tree.join("half.h"), "#define HALF 4\n").unwrap();
    assert!(std::process::Command::new("make").arg("-sC").arg(&tree).status().unwrap().success());
    assert_eq!(std::process::Command::new(tree.join("small")).output().unwrap().stdout, b"3\n");
    // A patch that does not fit says so, and leaves nothing.
    let before = fs::read_dir(folder.path().join("small")).unwrap().count();
    fs::write(&patch, "--- a/half.h\n+++ b/half.h\n@@ -1 +1 @@\n-#define HALF 5\n+#define HALF 3\n").unwrap();
    let error = patched().unwrap_err().to_string();
    assert!(error.contains("Hunk #1 FAILED"), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("small")).unwrap().count(), before);
    // Sources that are compiled without a makefile.
    fs::write(
        &patch,
        format!("--- a/half.c\n+++ b/half.c\n@@ -1 +1 @@\n-{LIBRARY}+int half(short *p) {{ return *p; }}\n"),
    )
    .unwrap();
    let whole = build_patched(&SMALL, &[NATIVE], &options, std::slice::from_ref(&patch), &|_| {});
    let status = std::process::Command::new(&whole.unwrap()[0].program).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn missing_tool_of_a_script_says_what_to_install() {
    let Recipe::Script(script) = SCRIPTED.recipe else { unreachable!() };
    let script = Script { tools: &[("sh", "dash"), ("no-such-tool", "its-package")], ..script };
    let (_folder, error) = error(&Workload { recipe: Recipe::Script(script), ..SCRIPTED }, NATIVE);
    assert!(error.to_string().contains("apt-get install its-package"), "{error}");
}

#[test]
fn failing_step_stops_the_script_and_shows_what_it_said() {
    let steps = &[("failing", "echo reason >&2; false; touch late"), ("late", "echo late >&2; false")];
    let script = Recipe::Script(Script { tools: &[], steps, images: &[], editable: None });
    let (folder, error) = error(&Workload { recipe: script, ..SCRIPTED }, NATIVE);
    assert!(error.to_string().ends_with("\nreason"), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("small")).unwrap().count(), 0);
}

#[test]
fn debian_archive_is_found_in_a_named_folder() {
    let folder = tempfile::tempdir().unwrap();
    let options = BuildFolders { sources: Some(folder.path().into()), ..options(folder.path()) };
    let workload = Workload {
        sources: &[Source::Debian { package: "little", home: "https://example.org/little" }],
        recipe: Recipe::Script(Script {
            tools: &[],
            steps: &[("", "cp little* copy")],
            images: &["copy"],
            editable: None,
        }),
        ..SCRIPTED
    };
    let make = || build(&workload, &[NATIVE], &options, &|_| {});
    assert!(make().unwrap_err().to_string().contains("https://example.org/little"));
    fs::write(folder.path().join("little_1.debian.tar.xz"), "packaging").unwrap();
    fs::write(folder.path().join("little_1.orig.tar.xz"), "original").unwrap();
    let build = make().unwrap().remove(0);
    assert_eq!(build.sources, ["little_1.orig.tar.xz"]);
    assert_eq!(fs::read_to_string(&build.images[0]).unwrap(), "original");
}

/// TPC-B with a small bank has the effects that its specification requires.
#[test]
fn tpcb_is_consistent_and_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(Workload::named("tpcb").unwrap(), &[NATIVE], &options(&testing::builds()), &|_| {})
        .unwrap()
        .remove(0)
        .program;
    let bank = folder.path().join("bank");
    let tpcb = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&program);
        let output = command.arg(arguments[0]).arg(&bank).args(&arguments[1..]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let mut summaries = Vec::new();
    for _ in 0..2 {
        assert_eq!(tpcb(&["load", "--branches", "2", "--accounts-per-branch", "500"]).0, Some(0));
        let (status, summary) = tpcb(&["run", "--transactions", "300", "--checkpoint-every", "50"]);
        assert_eq!(status, Some(0), "{summary}");
        assert!(summary.contains("transactions: 300\n") && summary.contains("page misses: 0\n"), "{summary}");
        summaries.push(summary);
    }
    assert_eq!(summaries[0], summaries[1]);
    assert_eq!(tpcb(&["check"]).0, Some(0));
    let other = tpcb(&["run", "--transactions", "300", "--seed", "2"]).1;
    assert_ne!(summaries[0], other);
}
