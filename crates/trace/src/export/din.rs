//! Dinero's `.din` format: a line for each access, with a label and an address in hexadecimal.

use std::io::{self, BufWriter, Write};

/// Dinero's labels of accesses.
const READ: u8 = b'0';
const WRITE: u8 = b'1';
const FETCH: u8 = b'2';

/// Size of the output buffer in bytes.
const BUFFER: usize = 64 << 10;

/// Writes the fetch of each instruction, followed by its access to data.
///
/// ```
/// let mut text = Vec::new();
/// let mut din = pathlength_trace::export::Din::new(&mut text, true);
/// din.fetch(0x120001000)?;
/// din.access(true, 0x11ffff0)?;
/// din.finish()?;
/// assert_eq!(text, b"2 120001000\n1 11ffff0\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Din<W: Write> {
    out: BufWriter<W>,
    has_fetches: bool,
}

impl<W: Write> Din<W> {
    /// Writes to `out`, with or without fetches.
    pub fn new(out: W, has_fetches: bool) -> Din<W> {
        Din { out: BufWriter::with_capacity(BUFFER, out), has_fetches }
    }

    /// An instruction is fetched.
    #[inline]
    pub fn fetch(&mut self, address: u64) -> io::Result<()> {
        if self.has_fetches { self.line(FETCH, address) } else { Ok(()) }
    }

    /// The instruction that was fetched last accesses memory.
    #[inline]
    pub fn access(&mut self, is_store: bool, address: u64) -> io::Result<()> {
        self.line(if is_store { WRITE } else { READ }, address)
    }

    /// Writes the rest.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn line(&mut self, label: u8, address: u64) -> io::Result<()> {
        let digits = (64 - address.leading_zeros()).div_ceil(4).max(1) as usize;
        let mut line = [b' '; 19];
        line[0] = label;
        for digit in 0..digits {
            line[1 + digits - digit] = b"0123456789abcdef"[(address >> (4 * digit) & 15) as usize];
        }
        line[2 + digits] = b'\n';
        self.out.write_all(&line[..3 + digits])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_back_equal(accesses in proptest::collection::vec((0_u8..3, any::<u64>(), 0_u32..64), 0..50)) {
            let accesses: Vec<(u8, u64)> =
                accesses.into_iter().map(|(label, address, shift)| (label, address >> shift)).collect();
            let mut text = Vec::new();
            let mut din = Din::new(&mut text, true);
            for &(label, address) in &accesses {
                match label {
                    2 => din.fetch(address).unwrap(),
                    label => din.access(label == 1, address).unwrap(),
                }
            }
            din.finish().unwrap();
            let text = String::from_utf8(text).unwrap();
            let read = text.lines().map(|line| {
                let (label, address) = line.split_once(' ').unwrap();
                (label.parse().unwrap(), u64::from_str_radix(address, 16).unwrap())
            });
            prop_assert_eq!(read.collect::<Vec<(u8, u64)>>(), accesses);
        }
    }
}
