//! What a document in Markdown has: headings, links, and prose.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A document, taken apart.
#[derive(Debug, Default)]
pub struct Document {
    /// The anchors of headings, as code hosts and mdBook make them.
    pub anchors: Vec<String>,
    /// Targets of links and pictures.
    pub links: Vec<String>,
    /// Paragraphs and items of lists; neither code nor tables.
    pub paragraphs: Vec<Paragraph>,
}

/// A paragraph, or an item of a list.
#[derive(Debug, PartialEq)]
pub struct Paragraph {
    /// Its words, without marks.
    pub text: String,
    /// Where it lies in the source.
    pub range: Range<usize>,
}

impl Document {
    pub fn parse(source: &str) -> Document {
        let mut document = Document::default();
        let mut reader =
            Reader { document: &mut document, heading: None, paragraph: None, is_no_prose: false };
        for (event, range) in Parser::new_ext(source, Options::ENABLE_TABLES).into_offset_iter() {
            reader.read(event, range);
        }
        reader.end();
        document
    }
}

struct Reader<'d> {
    document: &'d mut Document,
    heading: Option<String>,
    paragraph: Option<Paragraph>,
    /// Whether the text is of a table or of code.
    is_no_prose: bool,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.document.links.push(dest_url.to_string());
            }
            Event::Start(Tag::Heading { .. }) => {
                self.end();
                self.heading = Some(String::new());
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = self.heading.take().unwrap_or_default();
                self.document.add_anchor(&heading);
            }
            Event::Start(Tag::Table(_) | Tag::CodeBlock(_)) => {
                self.end();
                self.is_no_prose = true;
            }
            Event::End(TagEnd::Table | TagEnd::CodeBlock) => self.is_no_prose = false,
            Event::Start(Tag::Paragraph | Tag::Item) | Event::End(TagEnd::Paragraph | TagEnd::Item) => {
                self.end()
            }
            Event::Text(text) => self.add(&text, range),
            // A full stop in code ends no sentence.
            Event::Code(code) => self.add(&code.replace(['.', '!', '?'], "_"), range),
            Event::SoftBreak | Event::HardBreak => self.add(" ", range),
            _ => {}
        }
    }

    fn add(&mut self, text: &str, range: Range<usize>) {
        if let Some(heading) = &mut self.heading {
            heading.push_str(text);
        } else if !self.is_no_prose {
            let start = range.start;
            let paragraph =
                self.paragraph.get_or_insert(Paragraph { text: String::new(), range: start..start });
            paragraph.text.push_str(text);
            paragraph.range.end = range.end;
        }
    }

    fn end(&mut self) {
        self.document.paragraphs.extend(self.paragraph.take());
    }
}

impl Document {
    fn add_anchor(&mut self, heading: &str) {
        let kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
        let anchor: String = heading.to_lowercase().chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        // The second heading of a name has -1 behind it.
        let repeated = self.anchors.iter().filter(|other| **other == anchor).count();
        self.anchors.push(match repeated {
            0 => anchor,
            number => format!("{anchor}-{number}"),
        });
    }
}

impl Paragraph {
    /// Numbers of words of the sentences, with their first words.
    pub fn sentences(&self) -> Vec<(usize, String)> {
        let mut sentences = vec![Vec::new()];
        for word in self.text.split_whitespace() {
            let end = word.trim_end_matches(['"', '”', '\'', ')', ']']);
            if let Some(sentence) = sentences.last_mut() {
                sentence.push(word);
            }
            if end.ends_with(['.', '!', '?']) {
                sentences.push(Vec::new());
            }
        }
        sentences.retain(|words| !words.is_empty());
        sentences.iter().map(|words| (words.len(), words[..words.len().min(8)].join(" "))).collect()
    }
}

#[test]
fn a_document_is_taken_apart() {
    let source = "\
# Why `perf stat`'s counts differ

One sentence. Another (with `a.b. c`), and [a link](FAQ.md#why)!

- an item
  of two lines
- another one

| a | table |
|---|---|
| with | prose. |

    pathlength count. Not prose.
";
    let document = Document::parse(source);
    assert_eq!(document.anchors, ["why-perf-stats-counts-differ"]);
    assert_eq!(document.links, ["FAQ.md#why"]);
    let texts: Vec<&str> = document.paragraphs.iter().map(|paragraph| &*paragraph.text).collect();
    assert_eq!(
        texts,
        ["One sentence. Another (with a_b_ c), and a link!", "an item of two lines", "another one"]
    );
    let sentences = document.paragraphs[0].sentences();
    assert_eq!(sentences, [(2, "One sentence.".into()), (7, "Another (with a_b_ c), and a link!".into())]);
    assert_eq!(&source[document.paragraphs[1].range.clone()], "an item\n  of two lines");
}
