//! Names in files, which are bytes in any encoding, as text.

use std::borrow::Cow;

/// A name as text: bytes that are not UTF-8 are written as `\xFC` each, so that different names stay different.
pub fn text(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.into();
    }
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02X}")));
    }
    text.into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_any_encoding_stay_different() {
        for (name, expected) in
            [(&b"plain"[..], "plain"), ("größe".as_bytes(), "größe"), (b"gr\xf6\xdfe", "gr\\xF6\\xDFe")]
        {
            assert_eq!(super::text(name), expected);
        }
    }
}
