//! Extensions of RISC-V: a processor has a set of them.

use std::fmt;
use std::str::FromStr;

/// Defines the extensions: a name, and the extensions that it implies.
macro_rules! extensions {
    ($($extension:ident, $name:literal, [$($implied:ident)*];)*) => {
        /// An extension of RISC-V. The ratified ones that a program may use are here; those that only promise something, without
        /// instructions, are in [`PROMISES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum RiscvExtension { $(#[doc = $name] $extension,)* }

        impl RiscvExtension {
            /// All extensions, in the order of their names in a set.
            pub const ALL: [RiscvExtension; [$($name,)*].len()] = [$(RiscvExtension::$extension,)*];

            /// Its name in a set.
            pub fn name(self) -> &'static str {
                [$($name,)*][self as usize]
            }

            /// The extensions that a processor with it has, too.
            fn implied(self) -> &'static [RiscvExtension] {
                const IMPLIED: &[&[RiscvExtension]] = &[$(&[$(RiscvExtension::$implied,)*],)*];
                IMPLIED[self as usize]
            }
        }
    };
}

extensions! {
    I, "i", [];
    M, "m", [Zmmul];
    A, "a", [Zaamo Zalrsc];
    F, "f", [Zicsr];
    D, "d", [F];
    C, "c", [Zca];
    B, "b", [Zba Zbb Zbs];
    V, "v", [D];
    Zicbom, "zicbom", [];
    Zicbop, "zicbop", [];
    Zicboz, "zicboz", [];
    Zicond, "zicond", [];
    Zicsr, "zicsr", [];
    Zifencei, "zifencei", [];
    Zihintntl, "zihintntl", [];
    Zihintpause, "zihintpause", [];
    Zimop, "zimop", [];
    Zmmul, "zmmul", [];
    Zaamo, "zaamo", [];
    Zabha, "zabha", [Zaamo];
    Zacas, "zacas", [Zaamo];
    Zalrsc, "zalrsc", [];
    Zawrs, "zawrs", [Zalrsc];
    Zfa, "zfa", [F];
    Zfh, "zfh", [Zfhmin];
    Zfhmin, "zfhmin", [F];
    Zca, "zca", [];
    Zcb, "zcb", [Zca];
    Zcd, "zcd", [Zca D];
    Zcmop, "zcmop", [Zca];
    Zba, "zba", [];
    Zbb, "zbb", [];
    Zbc, "zbc", [];
    Zbkb, "zbkb", [];
    Zbkc, "zbkc", [];
    Zbkx, "zbkx", [];
    Zbs, "zbs", [];
}

/// Names of extensions without instructions of user mode, which a set may have in its text: they promise properties of memory,
/// caches, counters and timing that hold here, or have no effect on a program's results.
pub const PROMISES: [&str; 22] = [
    "zic64b", "ziccamoa", "ziccif", "zicclsm", "ziccrse", "zicntr", "zihpm", "za64rs", "za128rs", "zkt",
    "ztso", "zama16b", "supm", "ssnpm", "zvkt", "zvl32b", "zvl64b", "zvl128b", "zvl256b", "zvl512b", "zca64",
    "zkn",
];

/// Profiles of user mode (*RISC-V Profiles*, RVA20 to RVA23), each with the mandatory extensions that the profile before lacks.
const PROFILES: [(&str, &str); 3] = [
    ("rva20u64", "rv64imafdc_zicsr"),
    ("rva22u64", "rv64imafdcb_zicsr_zicbom_zicbop_zicboz_zihintpause_zfhmin"),
    (
        "rva23u64",
        "rv64imafdcbv_zicsr_zicbom_zicbop_zicboz_zihintpause_zfhmin_zihintntl_zicond_zimop_zcmop_zcb_zfa_zawrs",
    ),
];

/// A set of extensions: which instructions a processor has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RiscvExtensions(u64);

impl RiscvExtensions {
    /// Every extension whose instructions are implemented, which is all but vectors.
    pub const ALL: RiscvExtensions =
        RiscvExtensions(((1 << RiscvExtension::ALL.len()) - 1) & !(1 << RiscvExtension::V as u8));

    /// The set of some extensions, without what they imply.
    pub const fn of(extensions: &[RiscvExtension]) -> RiscvExtensions {
        let (mut bits, mut next) = (0, 0);
        while next < extensions.len() {
            bits |= 1 << extensions[next] as u8;
            next += 1;
        }
        RiscvExtensions(bits)
    }

    /// Whether an extension is in the set.
    pub const fn has(self, extension: RiscvExtension) -> bool {
        self.0 >> extension as u8 & 1 != 0
    }

    /// Whether some extension is in both sets.
    pub const fn meets(self, other: RiscvExtensions) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all extensions of the other set are in this one.
    pub const fn contains(self, other: RiscvExtensions) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set with an extension and what that implies.
    pub fn with(self, extension: RiscvExtension) -> RiscvExtensions {
        let added = RiscvExtensions(self.0 | 1 << extension as u8);
        extension.implied().iter().filter(|one| !self.has(**one)).fold(added, |set, &one| set.with(one))
    }

    /// Loads and stores of doubles among the compressed instructions, which `c` and `d` have together.
    fn complete(self) -> RiscvExtensions {
        use RiscvExtension::{C, D, Zcd};
        if self.has(C) && self.has(D) { self.with(Zcd) } else { self }
    }

    /// Its extensions.
    pub fn iter(self) -> impl Iterator<Item = RiscvExtension> {
        RiscvExtension::ALL.into_iter().filter(move |&one| self.has(one))
    }
}

/// The set for which most programs are compiled: `rv64gc`.
impl Default for RiscvExtensions {
    fn default() -> RiscvExtensions {
        "rv64gc".parse().expect("a set")
    }
}

/// The shortest text that is parsed to the set.
impl fmt::Display for RiscvExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RiscvExtension::*;
        let general = [I, M, A, F, D, Zicsr, Zifencei];
        let is_general = general.iter().all(|&one| self.has(one));
        let mut shown = RiscvExtensions(0);
        let mut text = String::from(if is_general { "rv64g" } else { "rv64" });
        if is_general {
            shown = general.into_iter().fold(shown, RiscvExtensions::with);
        }
        for extension in self.iter().filter(|&one| !is_general || !general.contains(&one)) {
            let others = self.iter().filter(|&one| one != extension);
            if shown.complete().has(extension)
                || others.into_iter().any(|one| one.implied().contains(&extension))
            {
                continue;
            }
            if extension.name().len() > 1 {
                text.push('_');
            }
            text.push_str(extension.name());
            shown = shown.with(extension);
        }
        f.pad(&text)
    }
}

impl fmt::Debug for RiscvExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no set of extensions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownExtensions {
    /// It names neither a profile nor RV64.
    #[error(
        "unknown RISC-V processor {0:?}: use extensions such as rv64gc_zba_zbb, or rva20u64, rva22u64 or rva23u64"
    )]
    NoBase(String),
    /// One extension in it.
    #[error("unknown extension {extension:?} in the RISC-V processor {text:?}")]
    NoExtension {
        /// The name.
        extension: String,
        /// The whole text.
        text: String,
    },
}

/// A set as compilers take it in `-march` (`rv64gc_zba_zbb`), as `Tag_RISCV_arch` has it, with versions
/// (`rv64i2p1_m2p0_zicsr2p0`), or the name of a profile with further extensions (`rva22u64_zicond`).
impl FromStr for RiscvExtensions {
    type Err = UnknownExtensions;

    fn from_str(text: &str) -> Result<RiscvExtensions, UnknownExtensions> {
        let mut parts = text.split('_').filter(|part| !part.is_empty());
        let base = parts.next().unwrap_or_default();
        let mut set = RiscvExtensions(0);
        if let Some((_, profile)) = PROFILES.iter().find(|(name, _)| *name == base) {
            set = profile.parse()?;
        } else {
            let letters = base.strip_prefix("rv64").filter(|rest| rest.starts_with(['i', 'g']));
            let letters = letters.ok_or_else(|| UnknownExtensions::NoBase(text.into()))?;
            set = add_letters(set, letters, text)?;
        }
        for part in parts {
            let first = part.chars().next().unwrap_or_default();
            let name = without_version(part);
            set = match RiscvExtension::ALL.into_iter().find(|one| one.name() == name) {
                Some(extension) => set.with(extension),
                None if PROMISES.contains(&name) => set,
                None if matches!(first, 'z' | 's' | 'x') => return Err(no_extension(part, text)),
                None => add_letters(set, part, text)?,
            };
        }
        Ok(set.complete())
    }
}

fn no_extension(extension: &str, text: &str) -> UnknownExtensions {
    UnknownExtensions::NoExtension { extension: extension.into(), text: text.into() }
}

/// The name of an extension without the version behind it: `zba` of `zba1p0`.
fn without_version(part: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match part.rsplit_once('p') {
        Some((name, minor)) if is_number(minor) => {
            let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if bare.len() < name.len() { bare } else { part }
        }
        _ => part,
    }
}

/// Adds extensions with names of one letter, each of which a version may follow.
fn add_letters(
    mut set: RiscvExtensions,
    letters: &str,
    text: &str,
) -> Result<RiscvExtensions, UnknownExtensions> {
    use RiscvExtension::*;
    let mut rest = letters;
    while let Some(letter) = rest.chars().next() {
        if letter == 'z' {
            // `rv64imaczicsr`: a longer name may follow the letters without a separator.
            let name = without_version(rest);
            let known = RiscvExtension::ALL.into_iter().find(|one| one.name() == name);
            return known.map(|one| set.with(one)).ok_or_else(|| no_extension(rest, text));
        }
        let name = letter.to_string();
        set = match RiscvExtension::ALL.into_iter().find(|one| one.name() == name) {
            Some(extension) => set.with(extension),
            None if letter == 'g' => {
                [I, M, A, F, D, Zicsr, Zifencei].into_iter().fold(set, RiscvExtensions::with)
            }
            None => return Err(no_extension(&name, text)),
        };
        rest = rest[letter.len_utf8()..].trim_start_matches(|c: char| c.is_ascii_digit());
        if let Some(minor) =
            rest.strip_prefix('p').filter(|minor| minor.starts_with(|c: char| c.is_ascii_digit()))
        {
            rest = minor.trim_start_matches(|c: char| c.is_ascii_digit());
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::RiscvExtension::*;
    use super::*;

    fn parse(text: &str) -> RiscvExtensions {
        text.parse().unwrap()
    }

    #[test]
    fn texts_of_compilers_and_of_images_are_the_same_sets() {
        let compiler = parse("rv64gc_zba_zbb");
        let image = parse(
            "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0_zifencei2p0_zmmul1p0_zba1p0_zbb1p0_zca1p0_zcd1p0",
        );
        assert_eq!(compiler, image);
        assert!(compiler.has(Zcd) && compiler.has(Zalrsc) && !compiler.has(Zbs) && !compiler.has(V));
        assert_eq!(parse("rv64imac"), parse("rv64im_a_c"));
        assert!(!parse("rv64imac").has(Zcd));
    }

    #[test]
    fn profiles_are_sets_that_grow() {
        let [old, middle, new] = ["rva20u64", "rva22u64", "rva23u64"].map(parse);
        assert!(middle.contains(old) && new.contains(middle));
        assert!(!old.has(Zba) && middle.has(Zba) && !middle.has(Zicond) && new.has(Zicond) && new.has(V));
        assert_eq!(parse("rva22u64_zicond"), middle.with(Zicond));
    }

    #[test]
    fn a_set_is_shown_as_it_is_read() {
        for text in ["rv64gc", "rv64i", "rv64imac", "rv64gcb_zicond_zfh", "rv64gc_zacas", "rv64gcv"] {
            assert_eq!(parse(text).to_string(), text);
        }
        for text in ["rva20u64", "rva22u64", "rva23u64", "rv64gc_zcb_zcmop_zabha_zbkx"] {
            assert_eq!(parse(&parse(text).to_string()), parse(text), "{text}");
        }
        assert_eq!(parse(&RiscvExtensions::ALL.to_string()), RiscvExtensions::ALL);
    }

    #[test]
    fn unknown_extensions_are_named() {
        let message = |text: &str| text.parse::<RiscvExtensions>().unwrap_err().to_string();
        assert_eq!(
            message("ev6"),
            "unknown RISC-V processor \"ev6\": use extensions such as rv64gc_zba_zbb, or rva20u64, rva22u64 or rva23u64"
        );
        assert_eq!(message("rv64gc_zbz"), "unknown extension \"zbz\" in the RISC-V processor \"rv64gc_zbz\"");
        assert_eq!(message("rv64gx"), "unknown extension \"x\" in the RISC-V processor \"rv64gx\"");
        for text in ["", "rv32gc", "rv64", "rv64gc_", "rv64gé"] {
            let _ = text.parse::<RiscvExtensions>();
        }
    }
}
