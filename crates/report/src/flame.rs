//! Flame graphs: a picture of call chains, in which a frame is as wide as its cost and lies above its caller.

use std::io::{self, Write};

use analysis::call_tree::{CallChain, CallChains};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use table::separated;

use crate::page::head;

/// The width of the picture, in pixels; a browser scales it.
const WIDTH: f64 = 1200.0;
const FRAME_HEIGHT: f64 = 18.0;
/// Room above and below the frames.
const MARGIN: f64 = 34.0;
/// Narrower frames are not drawn, until the picture is zoomed and redrawn without them.
const MIN_WIDTH: f64 = 0.1;
/// The width of a letter.
const LETTER: f64 = 6.7;

const SCRIPT: &str = include_str!("../assets/flame.js");
const STYLE: &str = "svg{font:12px ui-monospace,monospace;background:#fff}\
.frame{cursor:pointer}.frame:hover rect{stroke:#222}.frame.faded{opacity:.45}.frame.found rect{fill:#7b3fe4}\
.frame.found text{fill:#fff}rect{stroke:#fff;stroke-width:.5}text{fill:#1a1a1a;pointer-events:none}\
.title{font:600 15px system-ui,sans-serif}.note{font:12px system-ui,sans-serif;fill:#555}\
.reset{cursor:pointer;pointer-events:all;fill:#0b5cad}.reset[hidden]{display:none}\
@media(prefers-color-scheme:dark){svg{background:#14171b}.frame:hover rect{stroke:#fff}rect{stroke:#14171b}\
text.title{fill:#e6e9ed}text.note{fill:#9aa5b1}text.reset{fill:#6cb8ec}}";
/// The page around the picture.
const PAGE_STYLE: &str = "body{margin:1rem;font:14px system-ui,sans-serif;background:#fff;color:#1a1a1a}\
h1{font-size:15px;margin:0 0 .6rem;overflow-wrap:anywhere}svg{display:block;width:100%;height:auto}\
input{font:inherit;max-width:100%;box-sizing:border-box}p{margin:.6rem 0}\
@media(prefers-color-scheme:dark){body{background:#14171b;color:#e6e9ed}}";

/// A flame graph.
#[derive(Clone, Debug)]
pub struct FlameGraph<'a> {
    /// The title: one line.
    pub title: &'a str,
    /// The call chains.
    pub chains: &'a CallChains,
}

/// Where a frame lies: its left edge as a cost, and its depth.
struct FramePosition {
    left: u64,
    depth: usize,
}

impl FlameGraph<'_> {
    /// Writes the picture, which needs nothing else.
    pub fn write_svg(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", self.picture(true).into_string())
    }

    /// Writes a page with the picture and a field to search, which needs nothing else.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.title, PAGE_STYLE, None))
                body {
                    h1 { (text::printable(self.title)) }
                    p { label { "Search functions: " input #search type="search" placeholder="part of a name"; } " " output #found {} }
                    (self.picture(false))
                    p { (self.note(self.chains.total(), self.left_out())) }
                }
            }
        };
        out.write_all(page.into_string().as_bytes())
    }

    /// Whether a chain's frame is wide enough to be drawn.
    fn is_drawn(&self, chain: &CallChain) -> bool {
        chain.inclusive as f64 * WIDTH / self.chains.total().max(1) as f64 >= MIN_WIDTH
    }

    fn left_out(&self) -> usize {
        self.chains.chains.iter().filter(|chain| !self.is_drawn(chain)).count()
    }

    /// The picture; with its title and a note, unless a page has them, in which they fit any width.
    fn picture(&self, has_title: bool) -> Markup {
        let positions = self.positions();
        let total = self.chains.total();
        let frames: Vec<(&CallChain, &FramePosition)> =
            self.chains.chains.iter().zip(&positions).filter(|(chain, _)| self.is_drawn(chain)).collect();
        let levels = frames.iter().map(|(_, position)| position.depth + 1).max().unwrap_or(0);
        let height = 2.0 * MARGIN + FRAME_HEIGHT * levels as f64;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) width="100%" preserveAspectRatio="xMinYMin"
                role="img" aria-label=(text::printable(self.title)) data-total=(total) data-width=(WIDTH) data-letter=(LETTER) {
                style { (PreEscaped(STYLE)) }
                @if has_title { text.title x="6" y="20" { (text::printable(self.title)) } }
                text.note.reset x=(WIDTH - 90.0) y="20" hidden="" { "show all again" }
                @for (chain, position) in &frames { (self.frame(chain, position, height, total)) }
                @if has_title { text.note x="6" y=(height - 12.0) { (self.note(total, self.left_out())) } }
                script { (PreEscaped(format!("//<![CDATA[\n{SCRIPT}\n//]]>"))) }
            }
        }
    }

    fn frame(&self, chain: &CallChain, position: &FramePosition, height: f64, total: u64) -> Markup {
        let scale = WIDTH / total.max(1) as f64;
        let (x, width) = (position.left as f64 * scale, chain.inclusive as f64 * scale);
        let y = height - MARGIN - FRAME_HEIGHT * (position.depth + 1) as f64;
        let color = match chain.earlier {
            Some(earlier) => {
                change_color(chain.inclusive, earlier, total, self.chains.earlier_total.unwrap_or(0))
            }
            None => color(&chain.image, &chain.function),
        };
        let name = text::printable(&chain.function);
        html! {
            g.frame data-x=(position.left) data-w=(chain.inclusive) data-name=(name) {
                title { (text::printable_lines(&self.explanation(chain, total))) }
                rect x=(format!("{x:.2}")) y=(y) width=(format!("{width:.2}")) height=(FRAME_HEIGHT) fill=(color) {}
                text x=(format!("{:.2}", x + 3.0)) y=(y + 13.0) { (shortened(&name, width)) }
            }
        }
    }

    /// The explanation of a frame for a reader who points at it.
    fn explanation(&self, chain: &CallChain, total: u64) -> String {
        let number = |number: u64| separated(&number.to_string());
        let share = |part: u64| 100.0 * part as f64 / total.max(1) as f64;
        let image = if chain.image.is_empty() { String::new() } else { format!(" ({})", chain.image) };
        let mut text = format!(
            "{}{image}\n{} {}, {:.2} %\nits own: {}, {:.2} %",
            text::printable(&chain.function),
            number(chain.inclusive),
            self.chains.event,
            share(chain.inclusive),
            number(chain.own),
            share(chain.own)
        );
        if chain.calls > 0 {
            text += &format!("\ncalls: {}", number(chain.calls));
        }
        if let Some(earlier) = chain.earlier {
            let change = chain.inclusive as i64 - earlier as i64;
            let sign = if change < 0 { "−" } else { "+" };
            text += &format!("\nbefore: {}, {sign}{}", number(earlier), number(change.unsigned_abs()));
        }
        text
    }

    fn note(&self, total: u64, left_out: usize) -> String {
        let number = |number: u64| separated(&number.to_string());
        let mut text = format!("{} {}", number(total), self.chains.event);
        if let Some(earlier) = self.chains.earlier_total {
            text += &format!(", {} before; red calls grew, blue ones shrank", number(earlier));
        }
        if left_out > 0 {
            text += &format!("; {} calls are too narrow to be drawn", number(left_out as u64));
        }
        text + ". Click a frame to enlarge it."
    }

    /// Callees lie side by side above their caller, in the order of their names.
    fn positions(&self) -> Vec<FramePosition> {
        let chains = &self.chains.chains;
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); chains.len()];
        let mut roots = Vec::new();
        for (number, chain) in chains.iter().enumerate() {
            chain.parent.map_or(&mut roots, |parent| &mut callees[parent]).push(number);
        }
        let mut positions: Vec<FramePosition> =
            chains.iter().map(|_| FramePosition { left: 0, depth: 0 }).collect();
        let mut open = vec![(roots, 0, 0)];
        while let Some((mut numbers, mut left, depth)) = open.pop() {
            numbers.sort_by(|&a, &b| chains[a].function.cmp(&chains[b].function));
            for number in numbers {
                positions[number] = FramePosition { left, depth };
                open.push((std::mem::take(&mut callees[number]), left, depth + 1));
                left += chains[number].inclusive;
            }
        }
        positions
    }
}

/// As much of a name as there is room for.
fn shortened(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    match name.chars().count() {
        length if length <= room => name.into(),
        _ if room < 3 => String::new(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// A warm colour: functions of an image have the same hue.
fn color(image: &str, function: &str) -> String {
    let hash = |text: &str| text.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    let (hue, light) = (8 + hash(image) % 46, 66 + hash(function) % 14);
    format!("hsl({hue},82%,{light}%)")
}

/// Red for what grew and blue for what shrank, the stronger the more of the whole it is.
fn change_color(now: u64, earlier: u64, total: u64, earlier_total: u64) -> String {
    let change = now as f64 - earlier as f64;
    let strength = (change.abs() / total.max(earlier_total).max(1) as f64 * 10.0).min(1.0).sqrt();
    let hue = if change > 0.0 { 8 } else { 214 };
    format!("hsl({hue},{:.0}%,{:.0}%)", 85.0 * strength.max(0.08), 94.0 - 34.0 * strength)
}
