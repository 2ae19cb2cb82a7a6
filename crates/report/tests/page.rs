//! A page is one file, needs no network, and shows names unchanged.

use pathlength_report::{
    Arrangement, Chart, Error, Format, Page, PageBlock, PageFigure, PageSection, Picture, bars, differences,
    histograms, lines, render, shares, sizes, strip,
};
use serde_json::json;
use table::{Kind, Table, Value};

const HOSTILE: &str = "</script><script>alert('x')</script><!-- \"&amp; `x`";

fn table() -> Table {
    let mut table =
        Table::new("t", HOSTILE, &[(HOSTILE, Kind::Text), ("n", Kind::Count), ("m", Kind::Count)]);
    for n in 0..30_u64 {
        table.row(vec![format!("{HOSTILE}{n}").into(), n.into(), (100 - n).into()]);
    }
    table.total_row(vec!["all".into(), 435_u64.into(), 2565_u64.into()]);
    table.notes.push(HOSTILE.into());
    table
}

fn charts(table: &Table) -> Vec<Chart> {
    vec![
        bars(table, HOSTILE, &["n", "m"], Arrangement::Grouped).unwrap(),
        shares(table, HOSTILE, &["n", "m"]).unwrap(),
        differences(table, HOSTILE, "n").unwrap(),
        strip(table, HOSTILE, "n").unwrap(),
    ]
}

fn page() -> String {
    let text = || HOSTILE.to_string();
    let mut blocks = vec![PageBlock::Paragraph(text()), PageBlock::Code(text()), PageBlock::Table(table())];
    blocks.push(PageBlock::Pictures(vec![Picture { title: text(), width: 1, rgb: vec![1, 2, 3] }]));
    blocks.extend(charts(&table()).into_iter().map(PageBlock::Chart));
    let page = Page {
        title: text(),
        headline: text(),
        lead: vec![text()],
        figures: vec![PageFigure { value: text(), label: text() }],
        chart: charts(&table()).pop(),
        sections: vec![
            PageSection { heading: text(), blocks },
            PageSection { heading: "More".into(), blocks: vec![PageBlock::Table(table())] },
        ],
        provenance: vec![(text(), text())],
    };
    let mut out = Vec::new();
    page.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The page's tags, scripts' and styles' contents left out.
fn markup(page: &str) -> String {
    let mut rest = page;
    let mut markup = String::new();
    while let Some(start) = ["<script", "<style"].iter().filter_map(|tag| rest.find(tag)).min() {
        let name = if rest[start..].starts_with("<style") { "</style>" } else { "</script" };
        let open = start + rest[start..].find('>').unwrap() + 1;
        markup += &rest[..open];
        rest = &rest[open + rest[open..].find(name).unwrap()..];
    }
    markup + rest
}

#[test]
fn nothing_is_fetched() {
    let markup = markup(&page());
    assert!(markup.contains("default-src 'none'"));
    // Pictures are in the page.
    let sources: Vec<_> = markup.split("src=").skip(1).collect();
    assert!(sources.iter().all(|source| source.starts_with("\"data:image/png;base64,")), "{sources:?}");
    assert_eq!((sources.len(), markup.matches("<img").count()), (1, 1));
    for attribute in ["srcset=", "<link", "<iframe", "<object", "@import", "url("] {
        assert!(!markup.contains(attribute), "{attribute}");
    }
    let targets: Vec<_> = markup.split("href=\"").skip(1).collect();
    assert!(!targets.is_empty() && targets.iter().all(|target| target.starts_with('#')));
    assert!(!page().contains("sourceMappingURL"));
}

#[test]
fn names_are_text_and_nothing_else() {
    let page = page();
    // Five scripts of ours: data, three libraries, the page's own.
    assert_eq!(markup(&page).matches("<script").count(), 5);
    assert_eq!(page.matches("</script").count(), 5);
    assert!(!markup(&page).contains("<!--"));
    assert!(
        page.contains("&lt;/script&gt;&lt;script&gt;alert('x')&lt;/script&gt;&lt;!-- &quot;&amp;amp; `x`0")
    );
}

#[test]
fn the_page_holds_the_same_csv() {
    let page = page();
    let start = page.find("{\"charts\":").unwrap();
    let end = start + page[start..].find("</script").unwrap();
    let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
    let mut csv = Vec::new();
    render(&table(), Format::Csv, &mut csv).unwrap();
    for id in ["t", "t-2"] {
        assert_eq!(data["files"][id].as_str().unwrap().as_bytes(), csv);
        assert!(page.contains(&format!("id=\"{id}\"")));
    }
    assert_eq!(data["charts"].as_object().unwrap().len(), 5);
}

#[test]
fn code_stands_beside_the_share() {
    let columns =
        [("line", Kind::Text), ("share", Kind::Percent(1)), ("loads", Kind::Count), ("code", Kind::Code)];
    let mut table = Table::new("t", "T", &columns);
    table.row(vec!["a.c:1".into(), 12.5.into(), 7_u64.into(), "x = y;".into()]);
    let sections = vec![PageSection { heading: "H".into(), blocks: vec![PageBlock::Table(table)] }];
    let page = Page { sections, ..Page::default() };
    let mut out = Vec::new();
    page.write(&mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    for order in [
        ["line</button>", "share (%)</button>", "code</button>", "loads</button>"],
        ["a.c:1</td>", "12.5</td>", "x = y;</td>", ">7</td>"],
    ] {
        let found = order.map(|cell| page.find(cell).expect(cell));
        assert!(found.is_sorted(), "{order:?}: {found:?}");
    }
}

#[test]
fn prose_knows_emphasis() {
    for (prose, expected) in [
        ("a `b*c*` d", "a <code>b*c*</code> d"),
        ("**very *much* so**", "<strong>very <em>much</em> so</strong>"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("a ** b", "a ** b"),
        ("*open", "*open"),
        ("``", "``"),
        ("é *è* `", "é <em>è</em> `"),
        ("<b>&", "&lt;b&gt;&amp;"),
    ] {
        let mut out = Vec::new();
        Page { headline: prose.into(), ..Page::default() }.write(&mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        let shown = page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap();
        assert_eq!(shown, expected);
    }
}

#[test]
fn a_chart_leaves_out_the_total_and_names_a_missing_column() {
    for chart in charts(&table()) {
        let values = chart.spec["data"]["values"].as_array().unwrap();
        assert!(values.len() >= 30 && values.iter().all(|value| value["row"] != "all"));
    }
    let error = bars(&table(), HOSTILE, &["k"], Arrangement::Stacked).unwrap_err();
    assert!(matches!(error, Error::NoColumn { column, .. } if column == "k"));
}

#[test]
fn a_curve_has_a_point_for_each_size_that_is_known() {
    let columns = [("size", Kind::Count), ("1 way", Kind::Real(3)), ("full", Kind::Real(3))];
    let mut table = Table::new("curve", "Misses", &columns);
    table.row(vec![1024_u64.into(), 2.5.into(), 2.0.into()]);
    table.row(vec![1536_u64.into(), Value::Missing, 1.5.into()]);
    let chart = sizes(&table, "size", &["1 way", "full"], "misses").unwrap();
    let points = chart.spec["data"]["values"].as_array().unwrap();
    let points: Vec<_> = points.iter().map(|one| (&one["bytes"], &one["column"], &one["value"])).collect();
    let expected = [(1024, "1 way", 2.5), (1024, "full", 2.0), (1536, "full", 1.5)];
    let expected = expected.map(|(bytes, column, value)| (json!(bytes), json!(column), json!(value)));
    assert!(points.into_iter().eq(expected.iter().map(|(bytes, column, value)| (bytes, column, value))));
}

/// Names that do not fit into one line go to the next one, on a narrow screen, too.
#[test]
fn every_legend_says_how_many_names_fit_into_a_line() {
    let columns = [("size", Kind::Count), ("fully associative", Kind::Real(3)), ("2 ways", Kind::Real(3))];
    let mut table = Table::new("curve", "Misses", &columns);
    table.row(vec![1024_u64.into(), 2.5.into(), 2.0.into()]);
    table.row(vec![2048_u64.into(), 1.5.into(), 1.0.into()]);
    let names = ["fully associative", "2 ways"];
    let all = [
        bars(&table, "size", &names, Arrangement::Grouped).unwrap(),
        shares(&table, "size", &names).unwrap(),
        sizes(&table, "size", &names, "misses").unwrap(),
        lines(&table, "size", &names, "misses").unwrap(),
        histograms(std::slice::from_ref(&table)).unwrap().remove(0),
    ];
    for chart in all {
        let fits = chart.spec["config"]["legend"]["columns"].as_u64();
        assert!(fits.is_some_and(|fits| (2..100).contains(&fits)), "{}", chart.spec);
    }
}
