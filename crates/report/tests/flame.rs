//! Flame graphs: pictures that are well-formed, in which callees lie above their caller and within it.

use analysis::call_tree::CallChains;
use analysis::export::collapsed;
use pathlength_report::FlameGraph;
use proptest::prelude::*;

fn chains(text: &str) -> CallChains {
    collapsed::read(&mut text.as_bytes()).unwrap()
}

fn svg(chains: &CallChains) -> String {
    let mut picture = Vec::new();
    FlameGraph { title: "Costs of <a> & b", chains }.write_svg(&mut picture).unwrap();
    String::from_utf8(picture).unwrap()
}

/// The frames' names, and left edge, width and upper edge of their rectangles.
fn frames(picture: &str) -> Vec<(String, [f64; 3])> {
    let document = roxmltree::Document::parse(picture).unwrap();
    let groups = document.descendants().filter(|node| node.attribute("class") == Some("frame"));
    let frame = |group: roxmltree::Node| {
        let rectangle = group.children().find(|node| node.has_tag_name("rect")).unwrap();
        let number = |name| rectangle.attribute(name).unwrap().parse().unwrap();
        (group.attribute("data-name").unwrap().to_owned(), ["x", "width", "y"].map(number))
    };
    groups.map(frame).collect()
}

#[test]
fn frames_are_as_wide_as_their_costs() {
    let frames = frames(&svg(&chains("main;std::sort<int> 30\nmain;b 60\nmain 10")));
    let widths: Vec<_> =
        frames.iter().map(|(name, [left, width, _])| (name.as_str(), *left, *width)).collect();
    assert_eq!(widths, [("main", 0.0, 1200.0), ("std::sort<int>", 720.0, 360.0), ("b", 0.0, 720.0)]);
    assert!(frames[0].1[2] > frames[1].1[2] && frames[1].1[2] == frames[2].1[2]);
}

#[test]
fn nothing_is_a_picture_too() {
    assert!(frames(&svg(&chains(""))).is_empty());
}

proptest! {
    #[test]
    fn callees_are_within_their_caller(lines in prop::collection::vec(("[a-d<&](;[a-d<&]){0,6}", 1..1000_u64), 1..40)) {
        let lines: Vec<String> = lines.iter().map(|(path, cost)| format!("{path} {cost}")).collect();
        let frames = frames(&svg(&chains(&lines.join("\n"))));
        for (_, [left, width, top]) in &frames {
            let is_below = |[x, w, y]: &[f64; 3]| (y - top - 18.0).abs() < 0.01 && x - 0.02 <= *left && left + width <= x + w + 0.02;
            let bottom = frames.iter().map(|(_, [.., y])| *y).fold(0.0, f64::max);
            prop_assert!(*top == bottom || frames.iter().any(|(_, frame)| is_below(frame)));
            let overlaps = |[x, w, y]: &[f64; 3]| y == top && *x < left + width - 0.02 && *left < x + w - 0.02;
            prop_assert_eq!(frames.iter().filter(|(_, frame)| overlaps(frame)).count(), 1);
        }
    }
}
