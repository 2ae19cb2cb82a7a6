//! The byte/word study as a whole, on a few transactions.

use std::collections::HashSet;
use std::path::PathBuf;

use pathlength_studies::byteword::{MODES, Mode, SCHEMES, StudySettings, byteword};
use workloads::build::BuildFolders;

fn options(sysroot: &str) -> StudySettings {
    StudySettings {
        modes: MODES.iter().map(|&mode| Mode { transactions: 40, ..mode }).collect(),
        build: BuildFolders { folder: testing::builds(), sources: None },
        sysroot: PathBuf::from(sysroot),
    }
}

#[test]
fn from_sources_to_the_page() {
    let study = byteword(&options("/usr/alpha-linux-gnu"), &|_| {}).unwrap();
    assert_eq!(study.modes.len(), MODES.len());
    for result in &study.modes {
        assert_eq!(result.times.len(), SCHEMES.len());
        let [original, byte_word] = &result.runs;
        for run in [original, byte_word] {
            assert_eq!(run.measurement.units.len(), 40);
            let mean = run.measurement.units.iter().map(|unit| unit.instructions as f64).sum::<f64>() / 40.0;
            assert!((mean - run.profile.total).abs() < 1e-6 * mean, "{mean} {}", run.profile.total);
        }
        // The transactions and pages are the same: only instructions differ, and they become fewer.
        assert!(byte_word.profile.total < original.profile.total, "{}", result.mode.name);
        assert_eq!(original.output, byte_word.output);
        assert!(!original.profile.instructions.contains_key("ldbu"));
        assert!(byte_word.profile.instructions["ldbu"] > 0.0);
        // The simulated transactions equal the counted ones.
        for (scheme, time) in SCHEMES.iter().zip(&result.times) {
            let run = &result.runs[scheme.build];
            let counted: u64 = run.measurement.units.iter().map(|unit| unit.instructions).sum();
            assert_eq!((time.units, time.instructions), (40, counted), "{}", scheme.name);
            let new = ["ldbu", "ldwu", "stb", "stw", "sextb", "sextw"];
            let new = new.iter().filter_map(|name| run.profile.instructions.get(*name)).sum::<f64>() * 40.0;
            let expected = if scheme.name == "emulation" { new.round() as u64 } else { 0 };
            assert_eq!(time.emulated, expected, "{}", scheme.name);
        }
    }
    let report = study.report().unwrap();
    let tables = report.tables;
    let names: HashSet<_> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names.len(), tables.len(), "two tables would be one file");
    let mut page = Vec::new();
    report.page.write(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(tables.len() > 10, "{names:?}");
    assert!(tables.iter().chain(&report.summary).all(|table| !table.rows.is_empty()));
    assert!(page.contains("1997") && page.contains("SQLite") && page.contains("-mno-bwx"));
    for outside in ["<script src", "<img src=\"http", "href=\"http", "url(http", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}: the page needs the network or another file");
    }
}

#[test]
fn without_a_c_library() {
    let error = byteword(&options("/nonexistent"), &|_| {}).err().unwrap().to_string();
    assert!(error.starts_with("there is no C library for Alpha at /nonexistent/lib/libc.so.6.1: install"));
}
