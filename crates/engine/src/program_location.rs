//! Locations in a program, as users name them.

use events::LoadedImage;
use image::{Symbol, SymbolPattern};
use serde::{Deserialize, Serialize};

use crate::platform::guest_of;

/// A symbol as users name it, of any image or of one: `name` or `image!name`, mangled or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(String);

impl Name {
    /// Of a user's text.
    pub fn new(text: &str) -> Name {
        Name(text.into())
    }

    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The name without the image.
    pub fn symbol(&self) -> String {
        SymbolPattern::new(&self.0).name().into()
    }

    /// Whether the image may have the symbol, judged by its file name or the part of that before a dot.
    pub fn may_be_in(&self, image: &LoadedImage) -> bool {
        let file = image.path.file_name().unwrap_or_default();
        SymbolPattern::new(&self.0).may_be_in(&file.to_string_lossy())
    }

    /// The symbols of an image that have the name.
    pub fn symbols_in<'i>(&self, file: &'i image::Image) -> Vec<&'i Symbol> {
        file.find(&SymbolPattern::new(&self.0))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An address in a program: `symbol`, `symbol+offset`, `image!symbol+offset`, `0xaddress`; or the number of
/// an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLocation(LocationKind);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum LocationKind {
    Address(u64),
    Instruction(u64),
    Symbol { name: Name, offset: u64 },
}

/// Why a text is no location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' names no place: give a symbol, symbol+0x10, image!symbol, an address as 0x120001000, a number of \
     instructions, or a time as 20ms"
)]
pub struct NoLocation(String);

impl std::str::FromStr for ProgramLocation {
    type Err = NoLocation;

    fn from_str(text: &str) -> Result<ProgramLocation, NoLocation> {
        let wrong = || NoLocation(text.to_string());
        if text.is_empty() {
            return Err(wrong());
        }
        if let Some(digits) = text.strip_prefix("0x") {
            let address = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
            return Ok(ProgramLocation(LocationKind::Address(address)));
        }
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            return parse_instructions(text)
                .map(|number| ProgramLocation(LocationKind::Instruction(number)))
                .ok_or_else(wrong);
        }
        let (name, offset) = match text.rsplit_once('+') {
            None => (text, 0),
            Some((name, offset)) => match parse_offset(offset) {
                Some(offset) => (name, offset),
                // Operators of C++.
                None if name.trim_end_matches('+').ends_with("operator") => (text, 0),
                None => return Err(wrong()),
            },
        };
        Ok(ProgramLocation(LocationKind::Symbol { name: Name::new(name), offset }))
    }
}

/// A number of instructions, or a time of the program's clock, which an instruction advances by a nanosecond.
fn parse_instructions(text: &str) -> Option<u64> {
    let plain = text.replace(['_', ','], "");
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let Some((number, nanoseconds)) =
        units.iter().find_map(|(unit, each)| Some((plain.strip_suffix(unit)?, each)))
    else {
        return plain.parse().ok();
    };
    let time = number.parse::<f64>().ok()? * nanoseconds;
    (time.is_finite() && time < u64::MAX as f64).then_some(time.round() as u64)
}

fn parse_offset(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl std::fmt::Display for ProgramLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match &self.0 {
            LocationKind::Address(address) => write!(f, "{address:#x}"),
            LocationKind::Instruction(number) => write!(f, "instruction {number}"),
            LocationKind::Symbol { name, offset } => {
                f.write_str(&name.0)?;
                if *offset > 0 { write!(f, "+{offset:#x}") } else { Ok(()) }
            }
        }
    }
}

impl ProgramLocation {
    /// The number of instructions, if the location is one.
    pub fn instructions(&self) -> Option<u64> {
        match self.0 {
            LocationKind::Instruction(number) => Some(number),
            _ => None,
        }
    }

    /// The address, if the location is an absolute one.
    pub fn address(&self) -> Option<u64> {
        match self.0 {
            LocationKind::Address(address) => Some(address),
            _ => None,
        }
    }

    /// The name of the symbol, if there is one.
    pub fn symbol(&self) -> Option<&str> {
        match &self.0 {
            LocationKind::Symbol { name, .. } => Some(&name.0),
            _ => None,
        }
    }

    /// Whether an image has the symbol.
    pub fn is_in(&self, image: &LoadedImage, file: &image::Image) -> bool {
        !self.addresses_in(image, file).is_empty()
    }

    /// The addresses of the location in a mapped image: all entries, if it is a function.
    pub fn addresses_in(&self, image: &LoadedImage, file: &image::Image) -> Vec<u64> {
        match &self.0 {
            LocationKind::Symbol { name, offset } if name.may_be_in(image) => {
                let mask = !(file.instruction_set().code_alignment() - 1);
                let address = |at: u64| at.wrapping_add(image.bias).wrapping_add(*offset) & mask;
                let ways = if *offset == 0 { 2 } else { 1 };
                let symbols = name.symbols_in(file).into_iter();
                let addresses = symbols.flat_map(|symbol| entries(file, symbol.address).take(ways));
                addresses.map(address).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The instruction word at a link-time address of an image.
pub fn word_at(file: &image::Image, address: u64) -> Option<u32> {
    let code = file.code().iter().find(|code| (code.address..code.end()).contains(&address))?;
    let start = code.file.start + (address - code.address) as usize;
    let bytes = file.bytes().get(start..start + 4)?;
    let word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    // What follows a shorter instruction is not part of it.
    Some(if file.instruction_set().length(word) == 2 { word & 0xffff } else { word })
}

/// The entries of a function: its address, and the second one of some.
pub fn entries(file: &image::Image, address: u64) -> impl Iterator<Item = u64> {
    let (word, guest) = (|at| word_at(file, at), guest_of(file.instruction_set()));
    let second = word(address)
        .zip(word(address + 4))
        .is_some_and(|(first, second)| guest.has_second_entry(first, second));
    std::iter::once(address).chain(second.then_some(address + guest.instruction_set().second_entry()))
}

#[cfg(test)]
mod tests {
    use super::ProgramLocation;

    #[test]
    fn a_nanosecond_is_an_instruction() {
        let instructions =
            |text: &str| text.parse::<ProgramLocation>().ok().map(|location| location.instructions());
        assert_eq!(instructions("1_000"), Some(Some(1000)));
        assert_eq!(instructions("250ns"), Some(Some(250)));
        assert_eq!(instructions("2.5us"), Some(Some(2500)));
        assert_eq!(instructions("20ms"), Some(Some(20_000_000)));
        assert_eq!(instructions("0.5s"), Some(Some(500_000_000)));
        assert_eq!(instructions("main"), Some(None));
        for wrong in ["1.5", "3m", "1e400s", "5 s x", "20mss"] {
            assert_eq!(instructions(wrong), None, "{wrong}");
        }
    }
}
