//! The study of memory access patterns, with the small matrix.

use pathlength_studies::strides::{StridesStudySettings, strides};
use workloads::build::BuildFolders;

fn options(sysroot: &str) -> StridesStudySettings {
    StridesStudySettings {
        build: BuildFolders { folder: testing::builds(), sources: None },
        sysroot: sysroot.into(),
        with_misses: false,
    }
}

#[test]
fn from_sources_to_the_page() {
    let study = strides(&options("/usr/alpha-linux-gnu"), &|_| {}).unwrap();
    let elements = 511_350 * 4;
    let report = study.report().unwrap();
    assert!(study.seen.len() >= 2 && !report.tables.is_empty());
    for seen in &study.seen {
        let walk = |array, is_store| seen.walk(array, is_store).unwrap();
        // The number of references in the source, independent of loop transformations: 4 stripes with 14000 columns,
        // each with four loads more of ROWIDX than of AA. The last elements of a stripe may be unused.
        let loads = walk("aa", false).references;
        assert!((elements - 500..=elements).contains(&loads), "{loads}");
        assert_eq!(walk("rowidx", false).references, loads + 4 * 4 * 14_000);
        assert_eq!(walk("p", false).references, loads + 4 * 4 * 14_000);
        let q = [walk("q", true), walk("q", false)].map(|walk| walk.references);
        if seen.of.name == "original" {
            // Q is first set to zero.
            assert_eq!(q, [5 * 14_000, 4 * 14_000]);
            assert_eq!(walk("ytemp", true).references, 4 * 14_000);
            assert_eq!(walk("colstr", false).references, 2 * 4 * 14_000);
        } else {
            assert_eq!(q, [4 * 14_000, 3 * 14_000]);
            assert!(seen.walk("ytemp", true).is_none());
            // The end of each column, and the beginning of the first.
            assert_eq!(walk("colstr", false).references, 4 * 14_001);
            assert!(walk("colstr", false).share(1, 1, Some(1)) > 99.9);
        }
        assert!(walk("aa", false).share(1, 0, Some(16)) > 99.9);
        assert!(walk("p", false).share(2, 0, None) > 80.0, "most strides are 128 bytes and more");
    }
    let mut page = Vec::new();
    report.page.write(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for number in (2..=9).chain(11..=16) {
        assert!(page.contains(&format!("Figure {number}: ")), "{number}");
    }
    assert!(report.tables.iter().all(|table| !table.rows.is_empty()));
}

#[test]
fn without_a_c_library() {
    let error = strides(&options("/nonexistent"), &|_| {}).err().unwrap().to_string();
    assert!(error.starts_with("there is no C library for Alpha at /nonexistent/lib/libc.so.6.1: install"));
}
