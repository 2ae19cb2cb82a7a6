//! Writes a sample page with every kind of element: `cargo run --example sample_page -- page.html`.

use std::path::PathBuf;

use pathlength_report::{
    Arrangement, Page, PageBlock, PageFigure, PageSection, bars, differences, shares, strip, write_file,
};
use table::{Kind, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("name the file to write")?);
    let mut groups = Table::new(
        "groups",
        "Instructions of a cached transaction, by group",
        &[
            ("group", Kind::Text),
            ("1997 original", Kind::Count),
            ("1997 byte-word", Kind::Count),
            ("original", Kind::Count),
            ("byte-word", Kind::Count),
        ],
    );
    let names = [
        "integer loads",
        "integer stores",
        "byte loads",
        "branches",
        "jumps",
        "arithmetic",
        "logic",
        "shift",
        "other",
    ];
    for (number, name) in (1_u64..).zip(names) {
        let cell = |seed: u64| (1000 + (number * seed) % 9700).into();
        groups.row(vec![name.into(), cell(7919), cell(6007), cell(5087), cell(4993)]);
    }

    let mut functions = Table::new(
        "functions",
        "Functions that grew and shrank",
        &[
            ("function", Kind::Text),
            ("address", Kind::Address),
            ("change", Kind::Delta),
            ("relative", Kind::Change(1)),
        ],
    );
    for number in 0..60_i64 {
        let change = 400 - (number * 37) % 801;
        let name =
            if number == 3 { "<script>alert(1)</script>".into() } else { format!("sqlite3_step_{number}") };
        let relative = (number % 9 > 0).then_some(change as f64 / 90.0);
        functions.row(vec![
            name.into(),
            (0x1_2000_0000 + number * 64).into(),
            change.into(),
            relative.into(),
        ]);
    }
    functions.total_row(vec!["all".into(), None::<i64>.into(), (-3170_i64).into(), (-5.4).into()]);
    functions.notes.push("A dash stands where the function exists in *one* build only.".into());
    let mut few = functions.clone();
    few.rows.truncate(14);
    few.total = false;

    let mut lengths = Table::new(
        "lengths",
        "Path length of each transaction",
        &[("build", Kind::Text), ("instructions", Kind::Count)],
    );
    for number in 0..60_u64 {
        let noise = (number * 7919) % 613;
        lengths.row(vec!["original".into(), (58_500 + noise + number % 7 * 40).into()]);
        lengths.row(vec!["byte-word".into(), (55_300 + noise + number % 5 * 30).into()]);
    }
    let mut means = Table::new(
        "means",
        "Instructions per transaction",
        &[("build", Kind::Text), ("instructions", Kind::Count)],
    );
    means.row(vec!["original".into(), 58_812_u64.into()]);
    means.row(vec!["byte-word".into(), 55_641_u64.into()]);

    let years = ["1997 original", "1997 byte-word", "original", "byte-word"];
    let page = Page {
        title: "The byte and word study".into(),
        headline: "Six small instructions shorten a database transaction by 5.4 %.".into(),
        lead: vec!["A computer that can read **single bytes** from memory does the same work in fewer steps. This page counts the steps, one by one, in a real database.".into()],
        figures: [("58,812", "instructions a transaction *without* them"), ("55,641", "instructions a transaction *with* them"), ("−5.4 %", "path length"), ("−8.1 %", "size of the program")]
            .map(|(value, label)| PageFigure { value: value.into(), label: label.into() })
            .into(),
        chart: Some(bars(&means, "build", &["instructions"], Arrangement::Grouped)?.captioned("Shorter is better.")),
        sections: vec![
            PageSection {
                heading: "What the instructions do".into(),
                blocks: vec![
                    PageBlock::Paragraph("Each bar is one transaction's instructions, divided by *group*; `ldbu` loads a byte.".into()),
                    PageBlock::Chart(shares(&groups, "group", &years)?),
                    PageBlock::Chart(bars(&groups, "group", &years[2..], Arrangement::Grouped)?.titled("grouped", "The same, in numbers")),
                    PageBlock::Table(groups.clone()),
                ],
            },
            PageSection {
                heading: "Where they help".into(),
                blocks: vec![
                    PageBlock::Chart(differences(&few, "function", "change")?.captioned("Blue shrank, red grew.")),
                    PageBlock::Table(functions),
                    PageBlock::Chart(strip(&lengths, "build", "instructions")?),
                    PageBlock::Code("pathlength study byteword --mode cached\npathlength count --unit tpcb_transaction ./tpcb".into()),
                ],
            },
        ],
        provenance: vec![
            ("command".into(), "pathlength study byteword --database sqlite --mode cached".into()),
            ("compiler".into(), "alpha-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0".into()),
        ],
    };
    write_file(&path, |out| page.write(out))?;
    Ok(())
}
