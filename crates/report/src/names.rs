//! Names for files, fields and anchors.

/// The name with nothing in it that means something in a path or an address.
pub(crate) fn slug(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}

/// The name, or the first numbered one that is not taken.
pub(crate) fn unused(name: String, separator: char, taken: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.clone();
    let mut number = 1;
    while taken(&candidate) {
        number += 1;
        candidate = format!("{name}{separator}{number}");
    }
    candidate
}
