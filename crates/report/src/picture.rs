//! Pictures of a page, as PNG within its HTML.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// A picture with a title below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The subject (prose).
    pub title: String,
    /// Pixels in a row.
    pub width: u32,
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Reads a PPM file (`P6`) with 255 as its largest value; none if the bytes are not one.
    pub fn from_ppm(title: &str, bytes: &[u8]) -> Option<Picture> {
        let mut rest = bytes;
        let mut word = || {
            let end = rest.iter().position(u8::is_ascii_whitespace)?;
            let (word, after) = (std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
            rest = after;
            Some(word)
        };
        let (kind, width, height, most) = (word()?, word()?, word()?, word()?);
        let (width, height): (u32, u32) = (width.parse().ok()?, height.parse().ok()?);
        let length = usize::try_from(u64::from(width) * u64::from(height)).ok()?.checked_mul(3)?;
        let is_valid = kind == "P6" && most == "255" && length > 0 && rest.len() == length;
        is_valid.then(|| Picture { title: title.into(), width, rgb: rest.into() })
    }

    /// Rows of pixels.
    pub(crate) fn height(&self) -> u32 {
        (self.rgb.len() / 3) as u32 / self.width.max(1)
    }

    /// The file as a URL.
    pub(crate) fn data_url(&self) -> io::Result<String> {
        Ok(format!("data:image/png;base64,{}", STANDARD.encode(self.png()?)))
    }

    /// The file (PNG specification, sections 5 and 11): 8 bits a channel, each byte as its difference to the pixel on its left.
    fn png(&self) -> io::Result<Vec<u8>> {
        const SUB: u8 = 1;
        let mut header = [self.width.to_be_bytes(), self.height().to_be_bytes()].concat();
        header.extend([8, 2, 0, 0, 0]);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        for row in self.rgb.chunks_exact(3 * self.width as usize) {
            let left = [0; 3].iter().chain(row);
            let differences: Vec<u8> =
                row.iter().zip(left).map(|(byte, left)| byte.wrapping_sub(*left)).collect();
            encoder.write_all(&[SUB])?;
            encoder.write_all(&differences)?;
        }
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in [(b"IHDR", header), (b"IDAT", encoder.finish()?), (b"IEND", Vec::new())] {
            let mut sum = Crc::new();
            sum.update(kind);
            sum.update(&data);
            file.extend((data.len() as u32).to_be_bytes());
            file.extend(kind);
            file.extend(data);
            file.extend(sum.sum().to_be_bytes());
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn a_png_file_has_the_pixels_of_its_picture() {
        let rgb: Vec<u8> = (0..36).map(|byte| byte * 7).collect();
        let ppm = [b"P6\n4 3\n255\n", &rgb[..]].concat();
        let picture = Picture::from_ppm("four by three", &ppm).unwrap();
        assert_eq!((picture.width, picture.height()), (4, 3));
        let file = picture.png().unwrap();
        let at = file.windows(4).position(|window| window == b"IDAT").unwrap();
        let length = u32::from_be_bytes(file[at - 4..at].try_into().unwrap()) as usize;
        let mut rows = Vec::new();
        ZlibDecoder::new(&file[at + 4..at + 4 + length]).read_to_end(&mut rows).unwrap();
        let mut found = Vec::new();
        for row in rows.chunks(13) {
            for index in 0..12 {
                let left: u8 = if index < 3 { 0 } else { found[found.len() - 3] };
                found.push(row[1 + index].wrapping_add(left));
            }
        }
        assert_eq!(found, rgb);
    }

    #[test]
    fn other_files_are_no_pictures() {
        for bytes in
            [&b"P6\n4 3\n255\nshort"[..], b"P5\n1 1\n255\nabc", b"P6\n0 3\n255\n", b"", b"P6\nx y\n255\nabc"]
        {
            assert_eq!(Picture::from_ppm("none", bytes), None);
        }
    }
}
