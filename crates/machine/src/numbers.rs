//! Lines, or pages, by small numbers.

use std::collections::HashMap;

/// Gives lines small numbers, so that lists of them are short. Memory is numbered in pieces as they are asked for; lines
/// that lie together in one have numbers that do.
#[derive(Debug)]
pub struct Numbers {
    /// The numbers of pieces, from 1 on.
    pieces: HashMap<u64, u32>,
    /// Some of them, by the low bits of the piece.
    likely: Likely,
    /// How many there are before those are left out that nobody needs.
    enough: usize,
}

type Likely = Box<[(u64, u32); 256]>;

/// A line that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its small number: not 0.
    pub number: u32,
    /// The low bits of its number in memory, which select its set.
    pub low: u32,
}

/// Lines of a piece, as a power of two.
const PIECE: u32 = 6;
/// The bits of a number that say which line of its piece it is.
const IN_PIECE: u32 = (1 << PIECE) - 1;
/// Pieces that cost so little that none is left out.
const FEW: usize = 1 << 14;

impl Numbers {
    /// None so far.
    pub fn new() -> Numbers {
        Numbers { pieces: HashMap::new(), likely: nothing_likely(), enough: FEW }
    }

    /// The line with a number in memory.
    #[inline(always)]
    pub fn line(&mut self, line: u64) -> Line {
        let (piece, low) = (line >> PIECE, line as u32);
        let (likely, number) = self.likely[piece as usize % self.likely.len()];
        let number = if likely == piece { number } else { self.look_up(piece) };
        Line { number: number << PIECE | low & IN_PIECE, low }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, piece: u64) -> u32 {
        let next = self.pieces.len() as u32 + 1;
        assert!(next <= u32::MAX >> PIECE, "caches hold lines of less than {next} pieces of memory");
        let number = *self.pieces.entry(piece).or_insert(next);
        self.likely[piece as usize % self.likely.len()] = (piece, number);
        number
    }

    /// Whether some pieces should be left out.
    pub fn are_many(&self) -> bool {
        self.pieces.len() >= self.enough
    }

    /// Leaves out pieces of which no line is held: `tell_held` tells the numbers of all that are.
    pub fn leave_out(&mut self, tell_held: impl FnOnce(&mut dyn FnMut(u32))) -> Renumbered {
        let mut pieces = vec![0; self.pieces.len() + 1];
        tell_held(&mut |number| pieces[(number >> PIECE) as usize] = 1);
        let mut next = 0;
        for piece in pieces.iter_mut().filter(|piece| **piece != 0) {
            next += 1;
            *piece = next;
        }
        self.pieces.retain(|_, number| {
            *number = pieces[*number as usize];
            *number != 0
        });
        self.likely = nothing_likely();
        self.enough = FEW.max(2 * self.pieces.len());
        Renumbered { pieces }
    }
}

fn nothing_likely() -> Likely {
    Box::new([(u64::MAX, 0); 256])
}

/// How the numbers of lines that are held have changed.
#[derive(Debug)]
pub struct Renumbered {
    /// The numbers of pieces, by those that they had.
    pieces: Vec<u32>,
}

impl Renumbered {
    /// What a number is now.
    pub fn number(&self, number: u32) -> u32 {
        self.pieces[(number >> PIECE) as usize] << PIECE | number & IN_PIECE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Lines keep their numbers, and those that are held keep apart when others are left out.
        #[test]
        fn each_line_has_its_number(lines in prop::collection::vec((0..1u64 << 57, 0..300u64, any::<bool>()), 1..50)) {
            let mut numbers = Numbers::new();
            let lines: Vec<_> = lines.into_iter().flat_map(|(far, near, held)| [(far, held), (near, held)]).collect();
            let mut of = HashMap::new();
            for &(line, held) in &lines {
                let Line { number, low } = numbers.line(line);
                prop_assert!(number != 0 && low == line as u32);
                let (first, is_held) = of.entry(line).or_insert((number, false));
                prop_assert_eq!(*first, number);
                *is_held |= held;
            }
            let held: HashMap<u64, u32> = of.into_iter().filter(|(_, (_, held))| *held).map(|(line, (number, _))| (line, number)).collect();
            let pieces: std::collections::HashSet<u64> = held.keys().map(|line| line >> PIECE).collect();
            let renumbered = numbers.leave_out(|tell| held.values().for_each(|&number| tell(number)));
            prop_assert_eq!(numbers.pieces.len(), pieces.len());
            let mut seen = HashMap::new();
            for &(line, _) in &lines {
                let number = numbers.line(line).number;
                prop_assert_eq!(*seen.entry(number).or_insert(line), line);
                if let Some(&before) = held.get(&line) {
                    prop_assert_eq!(renumbered.number(before), number);
                }
            }
        }
    }
}
