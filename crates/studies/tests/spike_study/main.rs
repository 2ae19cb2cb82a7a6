//! The study of Spike on one small program, whose procedures are known.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use pathlength_studies::spike::{
    Content, GeneratedInput, PROGRAMS, SpikeProgramResult, SpikeStudy, SpikeStudyError, SpikeStudyProgress,
    SpikeStudySettings, StudyProgram, spike,
};
use spike::hot_cold::HotColdCategory;
use spike::statistics::{self, ProcedureStatistics};
use workloads::build::BuildFolders;
use workloads::toolchain::USUAL;
use workloads::workload::{BuildTarget, Recipe, Source, Workload};

const SOURCE: Source = Source::Embedded { name: "small.c", text: include_str!("small.c") };

const TARGET: BuildTarget =
    BuildTarget { image: "small", sources: &["small.c"], flags: &[], libraries: &[], is_shared: false };

const SMALL: StudyProgram = StudyProgram {
    workload: Workload {
        name: "small",
        title: "A small program",
        sources: &[SOURCE],
        recipe: Recipe::Compile(&[TARGET]),
        program: "small",
        unit: "main",
        gauges: &[],
        toolchains: USUAL,
    },
    kind: "test",
    prepare: Some("sort \"$INPUTS/test.txt\" >\"$PREPARED\""),
    beside: &[],
    refuses_root: false,
    inputs: &[
        GeneratedInput { name: "training.txt", content: Content::Prose(500), seed: 1 },
        GeneratedInput { name: "test.txt", content: Content::Prose(700), seed: 2 },
    ],
    training: &["{inputs}/training.txt"],
    test: &["{prepared}"],
};

/// The same program with another name, and made of other parts.
const fn small(
    name: &'static str,
    sources: &'static [Source],
    targets: &'static [BuildTarget],
) -> StudyProgram {
    let workload = Workload { name, sources, recipe: Recipe::Compile(targets), ..SMALL.workload };
    StudyProgram { workload, ..SMALL }
}

fn study(program: StudyProgram, build: BuildFolders) -> Result<SpikeStudy, SpikeStudyError> {
    let sysroot = "/usr/alpha-linux-gnu".into();
    spike(&SpikeStudySettings { programs: vec![program], build, sysroot }, &|_| {})
}

fn folders() -> BuildFolders {
    BuildFolders { folder: testing::builds(), sources: None }
}

/// The instructions of a function that make its frame, save and restore, by the tools of GNU; each is executed once a call
/// in the functions of the test.
fn overhead_by_objdump(image: &Path, function: &str) -> u64 {
    let output =
        Command::new("alpha-linux-gnu-objdump").args(["-d", "--no-show-raw-insn"]).arg(image).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let body = text.split(&format!("<{function}>:\n")).nth(1).unwrap().split("\n\n").next().unwrap();
    // What follows the return is the rare path.
    let frequent = body.split("\tret").next().unwrap();
    let is_overhead = |line: &&str| {
        let save = ["ra,", "s0,", "s1,", "s2,", "s3,", "s4,", "s5,", "fp,"];
        let is_memory = ["stq\t", "ldq\t"].iter().any(|name| line.contains(name)) && line.contains("(sp)");
        let is_saved = save.iter().any(|register| line.contains(&format!("\t{register}")));
        is_memory && is_saved || line.contains("lda\tsp,") && line.contains("(sp)")
    };
    frequent.lines().filter(is_overhead).count() as u64
}

#[test]
fn from_sources_to_the_page() {
    let steps = Mutex::new(Vec::new());
    let settings = SpikeStudySettings {
        programs: vec![SMALL],
        build: folders(),
        sysroot: "/usr/alpha-linux-gnu".into(),
    };
    let study = spike(&settings, &|step| match step {
        SpikeStudyProgress::Building(..) | SpikeStudyProgress::Preparing(_) => {}
        SpikeStudyProgress::Training(name) => steps.lock().unwrap().push((name, "training")),
        SpikeStudyProgress::Measuring(name, variant) => steps.lock().unwrap().push((name, variant)),
    })
    .unwrap();
    let steps = steps.into_inner().unwrap();
    // The original is trained, the compiler, and the build with its feedback; ten variants are measured.
    assert_eq!((steps.len(), steps[0], steps[1]), (13, ("small", "training"), ("small", "original")));
    assert_eq!(
        steps[9..].iter().map(|step| step.1).collect::<Vec<_>>(),
        ["training", "training", "GCC", "GCC and Spike"]
    );

    let one = &study.programs[0];
    let original = &one.variants[0];
    // What the rare path needs is not executed any more.
    let last = one.variants.last().unwrap();
    assert!(last.instructions < original.instructions, "{last:?} {original:?}");
    assert!(one.variants.iter().all(|variant| variant.cycles.iter().all(|&cycles| cycles > 0)));

    the_compiler_has_learnt(one);
    let procedures = statistics::of_program(&one.profiled, 0);
    let named = |name: &str| -> &ProcedureStatistics {
        procedures.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} was not executed"))
    };
    let calls = {
        let head = one.profiled.procedures.iter().find(|one| one.name == "hundred").unwrap().blocks[0];
        one.profiled.blocks[head as usize].count
    };
    let words =
        SMALL.inputs[0].bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
    assert_eq!(calls, words as u64);
    // A loop of 100 iterations; none at all.
    assert!((named("hundred").trip_count - 100.0).abs() < 1e-9, "{:?}", named("hundred"));
    assert!(["leaf", "often", "framed"].iter().all(|name| named(name).trip_count == 1.0));
    assert_eq!(
        ["leaf", "hundred", "often", "framed"].map(|name| named(name).is_leaf),
        [true, true, false, false]
    );
    for name in ["framed", "often"] {
        let expected = overhead_by_objdump(&one.build.program, name);
        assert!(expected >= 4, "{name}: {expected}");
        // The rare path of `often` saves nothing more.
        assert_eq!(named(name).overhead, expected * calls, "{name}");
    }
    assert_eq!((named("leaf").overhead, named("hundred").overhead), (0, 0));
    // The rare path is separated, and the frequent one needs neither its frame nor its registers.
    let number = one.profiled.procedures.iter().position(|one| one.name == "often").unwrap() as u32;
    let outcome = one.hot_cold.outcomes.iter().find(|one| one.procedure == number).unwrap();
    assert_eq!(outcome.category, HotColdCategory::Optimized);
    assert!(outcome.hot_size < outcome.size && outcome.reduction.adjustments >= 2 * calls * 99 / 100);

    let report = study.report().unwrap();
    for table in report.tables {
        assert!(!table.rows.is_empty(), "{}", table.name);
    }
    let mut page = Vec::new();
    report.page.write(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for figure in ["1", "3", "4", "5", "6", "10", "11", "15", "16", "17", "18", "19", "20"] {
        let is_there = [format!("Figure {figure})"), format!("Figures 2 and {figure})")];
        assert!(is_there.iter().any(|text| page.contains(text)), "Figure {figure}");
    }
}

/// What was counted reached the compiler, and Spike optimizes the result.
fn the_compiler_has_learnt(one: &SpikeProgramResult) {
    let build = &one.feedback_build;
    let code = |image: &Path| {
        let dump = Command::new("alpha-linux-gnu-objdump").args(["-d", "-j", ".text"]).arg(image).output();
        String::from_utf8(dump.unwrap().stdout).unwrap().split("Disassembly").nth(1).unwrap().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let again = |profile: &[u8]| {
        fs::write(folder.path().join("small.c"), include_str!("small.c")).unwrap();
        fs::write(folder.path().join("small.gcda"), profile).unwrap();
        let command = format!("{} -Werror=missing-profile -Werror=coverage-mismatch", build.commands[0]);
        let status = Command::new("sh").args(["-c", &command]).current_dir(&folder).output().unwrap().status;
        status.success().then(|| code(&folder.path().join("small")))
    };
    let profile = fs::read(build.folder.join("small.gcda")).unwrap();
    assert_eq!(again(&profile).unwrap(), code(&build.program));
    assert!(again(b"").is_none(), "the compiler does not look for the profile in its folder");
    let [gcc, both] = [&one.feedback[0], &one.feedback[1]];
    assert!(gcc.instructions < one.variants[0].instructions && both.instructions < gcc.instructions);
}

#[test]
fn shares_of_a_figure_are_complete() {
    let study = study(small("small-figures", &[SOURCE], &[TARGET]), folders()).unwrap();
    let tables = study.report().unwrap().tables;
    let real = |value: &table::Value| match value {
        table::Value::Real(value) => *value,
        other => panic!("{other:?} is no share"),
    };
    let find = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
    // Every executed instruction is in one category.
    for row in &find("figure-15-coverage").rows {
        let sum: f64 = row[1..].iter().map(real).sum();
        assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    }
    // Cumulative distributions rise; `hundred` has most instructions, in a loop of 100 iterations.
    let loops = &find("figure-3-loops").rows;
    let shares: Vec<f64> = loops.iter().map(|row| real(&row[1])).collect();
    assert!(shares.is_sorted() && shares[0] < 30.0 && shares[shares.len() - 1] > 90.0, "{shares:?}");
    let at = |bound: &str| loops.iter().position(|row| row[0] == bound.into()).unwrap();
    assert!(shares[at("< 128")] - shares[at("< 64")] > 50.0, "{shares:?}");
}

const FAILING: StudyProgram =
    StudyProgram { training: &["{inputs}/nothing"], ..small("small-failing", &[SOURCE], &[TARGET]) };
const TELLING: StudyProgram =
    small("small-telling", &[SOURCE], &[BuildTarget { flags: &["-DDEPENDS_ON_ITS_ADDRESS"], ..TARGET }]);
const ABSENT: StudyProgram = small(
    "small-absent",
    &[SOURCE, Source::Debian { package: "no-such-package", home: "the sources on example.org" }],
    &[TARGET],
);

#[test]
fn a_program_that_writes_something_else_is_an_error() {
    let error = study(TELLING, folders()).err().expect("the layout changes what it writes").to_string();
    assert!(
        error.starts_with("small-telling, layout: standard output of the optimized program is not"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_studied_is_named() {
    let error = study(FAILING, folders()).err().unwrap().to_string();
    assert_eq!(error.trim_end(), "small-failing, training: exit status 3\nsmall: there is no input");

    let folder = tempfile::tempdir().unwrap();
    let sources = Some(folder.path().to_path_buf());
    let error = study(ABSENT, BuildFolders { sources, ..folders() }).err().unwrap().to_string();
    assert!(
        error.starts_with("small-absent cannot be built (--programs selects others): cannot read the source"),
        "{error}"
    );
    assert!(error.contains("the sources on example.org"), "{error}");

    let settings =
        SpikeStudySettings { programs: vec![SMALL], build: folders(), sysroot: "/nonexistent".into() };
    let error = spike(&settings, &|_| {}).err().unwrap().to_string();
    assert!(error.starts_with("there is no C library for Alpha at /nonexistent/lib/libc.so.6.1"), "{error}");
}

/// Otherwise the study would not say how well profiles of other inputs do.
#[test]
fn training_and_test_differ() {
    for program in &PROGRAMS {
        let name = program.workload.name;
        assert_ne!(program.training, program.test, "{name}");
        let bytes: Vec<_> = program.inputs.iter().map(GeneratedInput::bytes).collect();
        assert!(bytes.iter().all(|one| bytes.iter().filter(|other| *other == one).count() == 1), "{name}");
    }
}
