//! Encodes numbers and text as bytes. Decoding does not trust its input: it never panics, and checks every length.

/// A message for users about a fault of the input, which the caller completes with the location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub &'static str);

/// Encodes a number as LEB128: seven bits a byte, the lowest first; all bytes but the last have their highest bit
/// set.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Encodes a signed difference in zigzag form, so that small differences of either sign take few bytes.
#[inline]
pub(crate) fn put_difference(bytes: &mut Vec<u8>, to: u64, from: u64) {
    let difference = to.wrapping_sub(from) as i64;
    put(bytes, (difference << 1 ^ difference >> 63) as u64);
}

/// Encodes the length of a slice, then the slice.
pub(crate) fn put_slice(bytes: &mut Vec<u8>, slice: &[u8]) {
    put(bytes, slice.len() as u64);
    bytes.extend_from_slice(slice);
}

/// A decoder at a position in a slice of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.0.split_first().ok_or(Malformed("it ends early"))?;
        self.0 = rest;
        Ok(byte)
    }

    /// Decodes what [`put`] encoded.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too long"))
    }

    /// Decodes a number that must be below a limit.
    pub fn below(&mut self, limit: u64, what: &'static str) -> Result<u64, Malformed> {
        self.number().and_then(|number| if number < limit { Ok(number) } else { Err(Malformed(what)) })
    }

    /// Decodes what [`put_difference`] encoded, and adds it to `from`.
    #[inline]
    pub fn difference(&mut self, from: u64) -> Result<u64, Malformed> {
        let number = self.number()?;
        Ok(from.wrapping_add(number >> 1 ^ (number & 1).wrapping_neg()))
    }

    pub fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed("it ends early"))?;
        let (slice, rest) = self.0.split_at_checked(length).ok_or(Malformed("it ends early"))?;
        self.0 = rest;
        Ok(slice)
    }

    /// Decodes what [`put_slice`] encoded.
    pub fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.number()?;
        self.take(length)
    }
}
