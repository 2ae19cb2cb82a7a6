//! ATM's adaptation layer 5 (ITU-T I.363.5): a packet becomes cells of 48 bytes, the last of which ends with a trailer of 8 bytes.
//!
//! The trailer has the user's and a reserved byte (zero here), the packet's length, and the CRC-32 of everything before it with
//! the polynomial of Ethernet, most significant bit first.

/// The bytes of a cell's payload.
pub const CELL_PAYLOAD: usize = 48;
/// The bytes of a cell.
pub const CELL: usize = 53;
/// The bytes of the trailer.
pub const TRAILER: usize = 8;
/// The longest packet, whose length must fit the trailer.
pub const LONGEST: usize = 65_535;

/// A cell's payload.
pub type CellPayload = [u8; CELL_PAYLOAD];

/// The number of cells of a packet.
///
/// ```
/// use pathlength_adapter::aal5::cells;
/// assert_eq!([0, 40, 41, 1528, 1529].map(cells), [1, 1, 2, 32, 33]);
/// ```
pub fn cells(bytes: usize) -> usize {
    (bytes + TRAILER).div_ceil(CELL_PAYLOAD)
}

/// A CRC of AAL5 over the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc(u32);

const POLYNOMIAL: u32 = 0x04c1_1db7;
/// The number of bytes that the CRC takes in a step.
const STEP: usize = 8;
/// The change that a byte makes to the checksum, by the number of zero bytes that follow it.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 1 << 31 == 0 { 0 } else { POLYNOMIAL };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before << 8) ^ tables[0][(before >> 24) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

impl Default for Crc {
    fn default() -> Crc {
        Crc(!0)
    }
}

impl Crc {
    /// Adds bytes, by slicing: eight at a time.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
        let mut steps = bytes.chunks_exact(STEP);
        for step in &mut steps {
            let first = crc ^ u32::from_be_bytes([step[0], step[1], step[2], step[3]]);
            crc = 0;
            for (index, byte) in first.to_be_bytes().iter().chain(&step[4..]).enumerate() {
                crc ^= TABLES[STEP - 1 - index][usize::from(*byte)];
            }
        }
        for byte in steps.remainder() {
            crc = (crc << 8) ^ TABLES[0][usize::from((crc >> 24) as u8 ^ byte)];
        }
        self.0 = crc;
    }

    /// The CRC, as the trailer has it.
    ///
    /// ```
    /// let mut crc = pathlength_adapter::aal5::Crc::default();
    /// crc.add(b"123456789");
    /// assert_eq!(crc.value(), 0xfc89_1918); // CRC-32/BZIP2's check value
    /// ```
    pub fn value(self) -> u32 {
        !self.0
    }
}

/// Makes a packet's cells, one after another, from parts of its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segmenter {
    crc: Crc,
}

impl Segmenter {
    /// The next cell. `rest` are the bytes of the packet that no cell has yet, of which `length` are in the whole packet. Gives
    /// the cell, the number of bytes taken, and whether the cell is the packet's last.
    pub fn next(&mut self, rest: &[u8], length: usize) -> (CellPayload, usize, bool) {
        let mut cell = [0; CELL_PAYLOAD];
        let taken = rest.len().min(CELL_PAYLOAD);
        cell[..taken].copy_from_slice(&rest[..taken]);
        let is_last = rest.len() + TRAILER <= CELL_PAYLOAD;
        if !is_last {
            self.crc.add(&cell);
            return (cell, taken, false);
        }
        let trailer = CELL_PAYLOAD - TRAILER;
        cell[trailer + 2..trailer + 4].copy_from_slice(&(length as u16).to_be_bytes());
        self.crc.add(&cell[..CELL_PAYLOAD - 4]);
        cell[CELL_PAYLOAD - 4..].copy_from_slice(&self.crc.value().to_be_bytes());
        *self = Segmenter::default();
        (cell, taken, true)
    }
}

/// All cells of a packet.
///
/// # Panics
///
/// If the packet is longer than [`LONGEST`].
pub fn segment(packet: &[u8]) -> Vec<CellPayload> {
    assert!(packet.len() <= LONGEST, "a packet of {} bytes has no length in AAL5's trailer", packet.len());
    let mut segmenter = Segmenter::default();
    let (mut all, mut rest) = (Vec::with_capacity(cells(packet.len())), packet);
    loop {
        let (cell, taken, is_last) = segmenter.next(rest, packet.len());
        all.push(cell);
        rest = &rest[taken..];
        if is_last {
            return all;
        }
    }
}

/// The sums over the cells of a packet that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reassembly {
    crc: Crc,
    cells: usize,
    sum: u64,
}

/// Why cells are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReassemblyError {
    /// The CRC is another one.
    Crc,
    /// The length does not fit the number of cells.
    Length,
}

impl Reassembly {
    /// Adds a cell that is not the packet's last.
    pub fn add(&mut self, cell: &CellPayload) {
        self.crc.add(cell);
        self.sum += ones_complement(cell);
        self.cells += 1;
    }

    /// Adds the last cell. Gives the packet's length and the one's complement sum of all payloads without the trailer, which
    /// DART's packet descriptors have.
    pub fn finish(mut self, cell: &CellPayload) -> Result<(usize, u16), ReassemblyError> {
        let (before, crc) = cell.split_at(CELL_PAYLOAD - 4);
        self.crc.add(before);
        let length = usize::from(u16::from_be_bytes([before[before.len() - 2], before[before.len() - 1]]));
        if self.crc.value().to_be_bytes() != crc {
            return Err(ReassemblyError::Crc);
        }
        if cells(length) != self.cells + 1 {
            return Err(ReassemblyError::Length);
        }
        let sum = self.sum + ones_complement(&cell[..CELL_PAYLOAD - TRAILER]);
        Ok((length, folded(sum)))
    }
}

/// The sum of 16-bit words in network order, not folded. An odd last byte is the first of its word.
fn ones_complement(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).sum()
}

/// The sum with its carries added.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Internet's one's complement sum of bytes.
pub fn internet_sum(bytes: &[u8]) -> u16 {
    folded(ones_complement(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CRC bit by bit.
    fn plain_crc(bytes: &[u8]) -> u32 {
        let mut crc = !0_u32;
        for bit in bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)) {
            let out = crc >> 31 ^ u32::from(bit);
            crc = crc << 1 ^ if out == 1 { POLYNOMIAL } else { 0 };
        }
        !crc
    }

    #[test]
    fn the_crc_is_that_of_single_bits() {
        let mut random = fastrand::Rng::with_seed(1);
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let mut crc = Crc::default();
            let (first, second) = bytes.split_at(random.usize(..=length));
            crc.add(first);
            crc.add(second);
            assert_eq!(crc.value(), plain_crc(&bytes), "{length}");
        }
    }

    #[test]
    fn packets_of_all_lengths_are_reassembled() {
        let mut random = fastrand::Rng::with_seed(2);
        for length in (0..300).chain([1528, 1529, 9180, LONGEST]) {
            let packet: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let all = segment(&packet);
            assert_eq!(all.len(), cells(length));
            let mut reassembly = Reassembly::default();
            let (last, others) = all.split_last().unwrap();
            others.iter().for_each(|cell| reassembly.add(cell));
            assert_eq!(reassembly.finish(last), Ok((length, internet_sum(&packet))));
            assert_eq!(all.concat()[..length], packet);
        }
    }

    /// Every single error of a bit is found, and a lost cell.
    #[test]
    fn damaged_packets_are_refused() {
        let all = segment(&[7; 100]);
        for bit in 0..all.len() * CELL_PAYLOAD * 8 {
            let mut bytes = all.concat();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut reassembly = Reassembly::default();
            let cells: Vec<CellPayload> =
                bytes.chunks(CELL_PAYLOAD).map(|cell| cell.try_into().unwrap()).collect();
            cells[..2].iter().for_each(|cell| reassembly.add(cell));
            assert_eq!(reassembly.finish(&cells[2]), Err(ReassemblyError::Crc), "bit {bit}");
        }
        let mut reassembly = Reassembly::default();
        reassembly.add(&all[0]);
        assert_eq!(reassembly.finish(&all[2]), Err(ReassemblyError::Crc));
    }
}
