//! Static analysis: the instructions of images, and the differences between the images of two builds.

use crate::mix::{self, Mix};
use image::Image;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use table::{Kind, Table, Value};

/// The six instructions that the byte/word extension added, in the paper's order.
pub const BYTE_WORD: [&str; 6] = ["ldbu", "ldwu", "stb", "stw", "sextb", "sextw"];

/// The static figures of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageStatics {
    /// The file's name.
    pub image: String,
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of the sections that hold instructions.
    pub text_bytes: u64,
    /// Size of the functions: text without linkage stubs and the padding between functions.
    pub code_bytes: u64,
    /// Number of functions.
    pub functions: u64,
    /// The instructions in the functions.
    pub mix: Mix,
    /// Integer no-operations among them.
    pub nops: u64,
    /// `unop`s among them; unknown of the 1997 images.
    pub unops: Option<u64>,
    /// `fnop`s among them; unknown of the 1997 images.
    pub fnops: Option<u64>,
}

impl ImageStatics {
    /// Counts the instructions of an image.
    pub fn of(image: &Image) -> ImageStatics {
        let mut functions = image.functions().iter().peekable();
        let mut covered = 0;
        let instructions = image.code().iter().flat_map(|code| image.instructions(code));
        let in_functions = instructions.filter(|&(address, _)| {
            while let Some(function) = functions.next_if(|function| function.address <= address) {
                covered = function.end().max(covered);
            }
            address < covered
        });
        let set = image.instruction_set();
        let mut code_bytes = 0;
        let words = in_functions.map(|(_, word)| word).inspect(|&word| code_bytes += set.length(word));
        let mix = mix::count(set, words);
        let of = |name| mix.get(name).copied().unwrap_or(0);
        ImageStatics {
            image: image.name(),
            file_bytes: image.bytes().len() as u64,
            text_bytes: image.code().iter().map(|code| code.file.len() as u64).sum(),
            code_bytes,
            functions: image.functions().len() as u64,
            nops: of("nop"),
            unops: Some(of("unop")),
            fnops: Some(of("fnop")),
            mix,
        }
    }

    fn of_instruction(&self, name: &str) -> u64 {
        self.mix.get(name).copied().unwrap_or(0)
    }

    /// The columns of Tables 7 to 10.
    fn measures(&self) -> Vec<ImageFigure> {
        let byte_word: u64 = BYTE_WORD.iter().map(|name| self.of_instruction(name)).sum();
        let mut measures = vec![
            ImageFigure::count("file bytes", self.file_bytes),
            ImageFigure::count("text bytes", self.text_bytes),
            ImageFigure::count("code bytes", self.code_bytes),
            ImageFigure::count("functions", self.functions),
            ImageFigure::count("byte/word", byte_word),
            ImageFigure::share("byte/word %", byte_word, self.code_bytes / 4),
        ];
        for name in BYTE_WORD {
            let count = self.of_instruction(name);
            measures.push(ImageFigure::count(name, count));
            measures.push(ImageFigure::share(&format!("{name} %"), count, byte_word));
        }
        measures.extend([
            ImageFigure::count("nops", self.nops),
            ImageFigure::count("unops", self.unops),
            ImageFigure::count("fnops", self.fnops),
            ImageFigure::count("trapb", self.of_instruction("trapb")),
        ]);
        measures
    }
}

/// One figure of an image.
struct ImageFigure {
    name: String,
    percent: bool,
    value: Option<f64>,
}

impl ImageFigure {
    fn count(name: &str, count: impl Into<Option<u64>>) -> ImageFigure {
        ImageFigure { name: name.into(), percent: false, value: count.into().map(|count| count as f64) }
    }

    /// A share of 0 is 0, as in the paper.
    fn share(name: &str, part: u64, whole: u64) -> ImageFigure {
        let value = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
        ImageFigure { name: name.into(), percent: true, value: Some(value) }
    }
}

/// An image in two builds: the original one, and the one compared with it.
pub type Pair = (ImageStatics, ImageStatics);

/// The images of two builds could not be matched.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} images cannot be compared with {1}; give as many of one build as of the other")]
pub struct PairError(usize, usize);

/// Matches the images of two builds: by name if every image of `a` has its namesake in `b`,
/// otherwise by position.
pub fn pair(a: Vec<ImageStatics>, b: Vec<ImageStatics>) -> Result<Vec<Pair>, PairError> {
    if a.len() != b.len() {
        return Err(PairError(a.len(), b.len()));
    }
    let namesake = |image: &ImageStatics| b.iter().find(|other| other.image == image.image).cloned();
    let namesakes: Option<Vec<_>> = a.iter().map(namesake).collect();
    Ok(a.into_iter().zip(namesakes.unwrap_or(b)).collect())
}

/// Every table that compares two builds: Tables 6 to 10.
pub fn comparison(a: Vec<ImageStatics>, b: Vec<ImageStatics>) -> Result<Vec<Table>, PairError> {
    let tables = [
        images("images-baseline", "Images of the baseline", &a),
        images("images-build", "Images of the build", &b),
    ];
    let pairs = pair(a, b)?;
    let comparisons = [
        differences("image-differences", "Build minus baseline", &pairs),
        changes("image-changes", "Build against baseline, in percent", &pairs),
        instruction_differences("instruction-differences", "Instructions, build minus baseline", &pairs),
    ];
    Ok(tables.into_iter().chain(comparisons).collect())
}

/// The images of one build (Tables 7 and 8).
pub fn images(name: &str, title: &str, images: &[ImageStatics]) -> Table {
    let mut table = table(name, title, Kind::Count, Kind::Percent(2));
    for image in images {
        let values = image.measures().into_iter().map(|measure| match measure.value {
            Some(value) if !measure.percent => Value::Integer(value as i64),
            value => value.into(),
        });
        table.row(std::iter::once(image.image.as_str().into()).chain(values).collect());
    }
    table
}

/// The differences of each image, build minus baseline (Table 9); shares differ by
/// percentage points.
pub fn differences(name: &str, title: &str, pairs: &[Pair]) -> Table {
    compare(name, title, pairs, Kind::Delta, Kind::Change(2), |a, b, percent| {
        if percent { Value::from(b - a) } else { Value::Integer((b - a) as i64) }
    })
}

/// By how many percent each image of the build differs from that of the baseline (Table 10).
pub fn changes(name: &str, title: &str, pairs: &[Pair]) -> Table {
    compare(name, title, pairs, Kind::Change(3), Kind::Change(3), |a, b, _| mix::change(a, b))
}

fn compare(
    name: &str,
    title: &str,
    pairs: &[Pair],
    count: Kind,
    percent: Kind,
    cell: fn(f64, f64, bool) -> Value,
) -> Table {
    let mut table = table(name, title, count, percent);
    for (a, b) in pairs {
        let measures = a.measures().into_iter().zip(b.measures());
        let values = measures.map(|(a, b)| match (a.value, b.value) {
            (Some(x), Some(y)) => cell(x, y, a.percent),
            _ => Value::Missing,
        });
        table.row(std::iter::once(b.image.as_str().into()).chain(values).collect());
    }
    table
}

/// An empty table with a column for each measure.
fn table(name: &str, title: &str, count: Kind, percent: Kind) -> Table {
    let measures = ImageStatics::default().measures();
    let columns = measures.iter().map(|measure| {
        let kind = if measure.percent { percent } else { count };
        (measure.name.as_str(), kind)
    });
    let columns: Vec<_> = std::iter::once(("image", Kind::Text)).chain(columns).collect();
    Table::new(name, title, &columns)
}

/// The differences in the number of each instruction, by image; only instructions with
/// a difference, the largest first (Table 6).
pub fn instruction_differences(name: &str, title: &str, pairs: &[Pair]) -> Table {
    let mut columns = vec![("instruction", Kind::Text)];
    columns.extend(pairs.iter().map(|(_, b)| (b.image.as_str(), Kind::Delta)));
    let mut table = Table::new(name, title, &columns);
    let mut rows: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (index, (a, b)) in pairs.iter().enumerate() {
        for &name in a.mix.keys().chain(b.mix.keys()) {
            let row = rows.entry(name).or_insert_with(|| vec![0; pairs.len()]);
            row[index] = mix::minus(b.of_instruction(name), a.of_instruction(name));
        }
    }
    let mut rows: Vec<_> = rows.into_iter().filter(|(_, row)| row.iter().any(|&delta| delta != 0)).collect();
    rows.sort_by_key(|(_, row)| Reverse(row.iter().map(|delta| delta.unsigned_abs()).sum::<u64>()));
    for (name, row) in rows {
        table.row(std::iter::once(name.into()).chain(row.into_iter().map(Value::from)).collect());
    }
    table
}
