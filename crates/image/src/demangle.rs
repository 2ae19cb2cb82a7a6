//! Demangles C++ and Rust symbols, and matches the names that users give to functions.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use wildmatch::WildMatch;

/// Longer symbols and longer names are left as they are: compilers seldom make such, damaged files do.
const LONGEST_SYMBOL: usize = 1 << 14;
const LONGEST_NAME: usize = 1 << 14;
/// The greatest depth of nesting: threads' stacks have room for it.
const DEEPEST: u32 = 96;
/// The suffixes that optimizing compilers append to copies and parts of a function.
const CLONES: [&str; 8] = ["constprop", "isra", "part", "cold", "lto_priv", "localalias", "llvm", "clone"];
/// Those of a function's parts that no call enters.
const PARTS: [&str; 2] = [".cold", ".part."];

/// The name of a symbol in its source's language: C++'s with parameters, without the type that it returns;
/// Rust's without the hash. Symbols that are not mangled, or cannot be demangled, stay unchanged.
pub fn demangle(symbol: &str) -> Cow<'_, str> {
    let (stem, clone) = split_clone(symbol);
    match DemangledForm::Shown.of(stem) {
        Some(name) if clone.is_empty() => name.into(),
        Some(name) => format!("{name} [clone {clone}]").into(),
        None => symbol.into(),
    }
}

/// How much of a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DemangledForm {
    /// All that the symbol says.
    Full,
    /// As tables show it.
    Shown,
    /// Without parameters.
    Plain,
}

impl DemangledForm {
    /// The name of a symbol without what marks a clone; none if it is not mangled.
    fn of(self, symbol: &str) -> Option<String> {
        if symbol.len() > LONGEST_SYMBOL || !is_mangled(symbol) {
            return None;
        }
        let mut name = Bounded(String::new());
        if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
            let written =
                if self == DemangledForm::Full { write!(name, "{rust}") } else { write!(name, "{rust:#}") };
            return written.ok().map(|()| name.0);
        }
        if let Some((prefix, target)) = thunk(symbol) {
            return Some(format!("{prefix}{}", self.of(&format!("_Z{target}"))?));
        }
        if self == DemangledForm::Shown {
            let (full, plain) = (DemangledForm::Full.of(symbol)?, DemangledForm::Plain.of(symbol)?);
            let shown = full.find(&plain).map(|at| &full[at..]).filter(|shown| depth(shown) == 0);
            return Some(shown.unwrap_or(&full).into());
        }
        let parse = ParseOptions::default().recursion_limit(DEEPEST);
        let (parsed, rest) = BorrowedSymbol::with_tail_and_options(symbol.as_bytes(), &parse).ok()?;
        let options = DemangleOptions::new().recursion_limit(DEEPEST);
        let options =
            if self == DemangledForm::Plain { options.no_return_type().no_params() } else { options };
        parsed.structured_demangle(&mut name, &options).ok()?;
        rest.is_empty().then_some(name.0)
    }
}

/// The text before the function's name in the name of a thunk of C++, and the encoding of the function that it goes to:
/// `_ZThn16_` and `_ZTv0_n24_` precede it (Itanium C++ ABI, 5.1.4.5).
fn thunk(symbol: &str) -> Option<(&'static str, &str)> {
    let offset = |text| -> Option<&str> {
        let digits = str::trim_start_matches(text, |c: char| c == 'n' || c.is_ascii_digit());
        digits.strip_prefix('_')
    };
    match symbol.strip_prefix("_ZTh").and_then(offset) {
        Some(target) => Some(("non-virtual thunk to ", target)),
        None => Some(("virtual thunk to ", symbol.strip_prefix("_ZTv").and_then(offset).and_then(offset)?)),
    }
}

/// Whether a name is one that compilers of C++ and Rust make.
fn is_mangled(symbol: &str) -> bool {
    ["_Z", "_R", "__Z", "___Z"].iter().any(|start| symbol.starts_with(start))
}

/// A symbol and what marks it as a clone: `foo` and `.constprop.0`.
fn split_clone(symbol: &str) -> (&str, &str) {
    let is_clone = |&(at, _): &(usize, &str)| {
        let rest = &symbol[at + 1..];
        at > 0 && CLONES.contains(&rest.split('.').next().unwrap_or(rest))
    };
    let at = symbol.match_indices('.').find(is_clone).map_or(symbol.len(), |(at, _)| at);
    symbol.split_at(at)
}

/// Text that may not become too long: a few bytes of a hostile symbol can stand for gigabytes.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// How a user names a function or a variable: `NAME` or `IMAGE!NAME`.
///
/// The name is the symbol itself, or its name in the source's language, with or without parameters, template
/// arguments and spaces; `*` stands for any part of it. So it can be the name of several functions. The compiler's clones of a
/// function have its name.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolPattern {
    image: Option<String>,
    name: String,
    /// The name without spaces.
    key: String,
    /// Its last part, if all symbols of this name contain that.
    identifier: Option<String>,
    /// If it has a `*`, except in names of operators and at the end of pointers' types.
    wildcard: Option<WildMatch>,
}

impl SymbolPattern {
    /// Of a user's text.
    pub fn new(text: &str) -> SymbolPattern {
        let (image, name) = split_image(text);
        let key = key(name);
        let identifier = last_identifier(&key).map(String::from);
        let stem = without_parameters(&key);
        let has_wildcard = stem.contains('*') && !stem.contains("operator");
        let wildcard = has_wildcard.then(|| WildMatch::new(&key));
        SymbolPattern { image: image.map(String::from), name: name.into(), key, identifier, wildcard }
    }

    /// The name without the image.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an image of this file name can have the symbol: names of images may end at a dot.
    pub fn may_be_in(&self, image: &str) -> bool {
        self.image.as_deref().is_none_or(|wanted| is_image(image, wanted))
    }

    /// Whether it is a name of the symbol.
    pub fn matches(&self, symbol: &str) -> bool {
        self.is_name_of(symbol)
            || self.wildcard.as_ref().is_some_and(|wildcard| {
                wildcard.matches(split_clone(symbol).0) || matches_wildcard(wildcard, &demangle(symbol))
            })
    }

    /// The same, where `*` is that of a pointer's type: `put<char*>`.
    fn is_name_of(&self, symbol: &str) -> bool {
        if symbol == self.name {
            return true;
        }
        let (stem, clone) = split_clone(symbol);
        if !clone.is_empty() && stem == self.name {
            return true;
        }
        if !is_mangled(stem) || is_mangled(&self.name) || !self.may_be_name_of(stem) {
            return false;
        }
        let forms = [DemangledForm::Plain, DemangledForm::Shown, DemangledForm::Full]
            .into_iter()
            .filter_map(|form| form.of(stem));
        let mut keys = forms.map(|name| key(&name));
        let plain = keys.next();
        plain.is_some_and(|plain| {
            self.key == plain
                || self.key == without_last_arguments(&plain)
                || self.key == without_arguments(&plain)
        }) || keys.any(|key| key == self.key || without_qualifiers(&key) == self.key)
            || !clone.is_empty() && key(&demangle(symbol)) == self.key
    }

    /// Whether it is a name of the symbol, and calls enter there: not at a part of a function.
    pub fn matches_entry(&self, symbol: &str) -> bool {
        let (stem, clone) = split_clone(symbol);
        let is_part = PARTS.iter().any(|part| clone.contains(part));
        (!is_part || symbol == self.name || stem == symbol) && self.matches(symbol)
    }

    /// Whether it is a name of the function that tables show by this one ([`demangle`]).
    pub fn matches_shown(&self, shown: &str) -> bool {
        if self.is_name_of(shown) || is_mangled(&self.name) && demangle(&self.name) == shown {
            return true;
        }
        if self.wildcard.as_ref().is_some_and(|wildcard| matches_wildcard(wildcard, shown)) {
            return true;
        }
        let stem = shown_stem(shown);
        let plain = without_parameters(&stem);
        [&*key(shown), &*stem, without_qualifiers(&stem), plain, without_last_arguments(plain)]
            .contains(&&*self.key)
            || without_arguments(plain) == self.key
    }

    /// A quick test that nearly all other symbols fail.
    fn may_be_name_of(&self, symbol: &str) -> bool {
        self.identifier.as_ref().is_none_or(|identifier| symbol.contains(identifier))
    }
}

/// The [`key`] of a shown name without the mark of a clone.
fn shown_stem(shown: &str) -> String {
    key(shown.split(" [clone ").next().unwrap_or(shown))
}

/// Whether a name that tables show matches with or without its parameters.
fn matches_wildcard(wildcard: &WildMatch, shown: &str) -> bool {
    let stem = shown_stem(shown);
    wildcard.matches(without_parameters(&stem)) || wildcard.matches(&stem)
}

/// Whether an image's file name is this one, or begins with it up to a dot.
pub fn is_image(file_name: &str, wanted: &str) -> bool {
    file_name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The image and the name of `IMAGE!NAME`. C++ and Rust have `!` in names, too: within brackets and in operators.
fn split_image(text: &str) -> (Option<&str>, &str) {
    match text.split_once('!') {
        Some((image, name)) if depth(image) <= 0 && !image.ends_with("operator") && !name.is_empty() => {
            (Some(image), name)
        }
        _ => (None, text),
    }
}

/// How many brackets are open at the end of a text.
fn depth(text: &str) -> i32 {
    text.replace("->", "").chars().fold(0, |depth, c| match c {
        '<' | '(' | '[' | '{' => depth + 1,
        '>' | ')' | ']' | '}' => depth - 1,
        _ => depth,
    })
}

/// Equivalent spellings of different demanglers, without spaces.
const ABBREVIATIONS: [(&str, &str); 7] = [
    ("std::basic_string<char,std::char_traits<char>,std::allocator<char>>", "std::string"),
    ("std::string::basic_string", "std::string::string"),
    ("std::string::~basic_string", "std::string::~string"),
    ("std::basic_ostream<char,std::char_traits<char>>", "std::ostream"),
    ("std::basic_istream<char,std::char_traits<char>>", "std::istream"),
    ("std::basic_iostream<char,std::char_traits<char>>", "std::iostream"),
    ("decltype(nullptr)", "std::nullptr_t"),
];

/// A name in the form in which names are compared: without spaces.
fn key(name: &str) -> String {
    let key = name.chars().filter(|c| !c.is_whitespace()).collect();
    ABBREVIATIONS.iter().fold(key, |key: String, (long, short)| key.replace(long, short))
}

/// The last part of a name, if it is an identifier that its symbol spells out. Constructors have none of their own.
fn last_identifier(key: &str) -> Option<&str> {
    let name = key.split('(').next().unwrap_or(key);
    let mut parts = name.rsplit("::");
    let (last, before) = (parts.next()?, parts.next());
    let is_identifier = !last.is_empty() && last.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let class = before.map(|before| before.split('<').next().unwrap_or(before));
    (is_identifier && class != Some(last) && !last.starts_with("operator")).then_some(last)
}

/// `f(int)const` as `f(int)`.
fn without_qualifiers(key: &str) -> &str {
    let qualifiers = ["const", "volatile", "&"];
    let mut rest = key;
    while let Some(shorter) = qualifiers.iter().find_map(|qualifier| rest.strip_suffix(qualifier)) {
        rest = shorter;
    }
    if rest.ends_with(')') { rest } else { key }
}

/// Where the bracket opens that a text's last closing one closes.
fn last_opening(text: &str, opening: char, closing: char) -> Option<usize> {
    let mut depth = 0;
    let found = text.char_indices().rev().find(|&(_, c)| {
        depth += i32::from(c == closing) - i32::from(c == opening);
        depth == 0
    });
    found.map(|(at, _)| at)
}

/// `f(int) const` as `f`.
fn without_parameters(key: &str) -> &str {
    let call = without_qualifiers(key);
    if !call.ends_with(')') {
        return key;
    }
    let start = last_opening(call, '(', ')');
    match start {
        Some(at) if at > 0 && !call.ends_with("(anonymousnamespace)") => &call[..at],
        _ => key,
    }
}

/// `f<int>` as `f`, `ns::box<int>::put<long>` as `ns::box<int>::put`.
fn without_last_arguments(key: &str) -> &str {
    if !key.ends_with('>') || is_operator(key) {
        return key;
    }
    let start = last_opening(key, '<', '>');
    start.map_or(key, |at| key[..at].trim_end_matches("::"))
}

/// `ns::box<int>::put<long>` as `ns::box::put`.
fn without_arguments(key: &str) -> String {
    let mut name = String::new();
    let (body, operator) = key.split_at(key.rfind("operator").unwrap_or(key.len()));
    let mut depth = 0;
    for c in body.chars() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => name.push(c),
            _ => {}
        }
    }
    // Rust writes f::<T>.
    let name = name.replace("::::", "::");
    let name = if operator.is_empty() { name.trim_end_matches("::") } else { &name };
    if name.is_empty() || name.starts_with("::") { key.into() } else { format!("{name}{operator}") }
}

/// Whether a name ends in an operator of `<` and `>`.
fn is_operator(key: &str) -> bool {
    key.rfind("operator").is_some_and(|at| key[at + 8..].chars().all(|c| "<>=-".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_and_others_stay() {
        let names = [
            ("_ZNK3app5Store3addEi", "app::Store::add(int) const"),
            ("_ZN3app7biggestIiEET_S1_S1_", "app::biggest<int>(int, int)"),
            ("_ZN3app12_GLOBAL__N_16hiddenEi", "app::(anonymous namespace)::hidden(int)"),
            (
                "_ZN3app12_GLOBAL__N_16hiddenEi.constprop.0",
                "app::(anonymous namespace)::hidden(int) [clone .constprop.0]",
            ),
            ("_ZN3app5StoreC1Ev.part.0.cold", "app::Store::Store() [clone .part.0.cold]"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar"),
            ("main", "main"),
            ("work.constprop.0", "work.constprop.0"),
            ("_Zebra", "_Zebra"),
            ("_R", "_R"),
        ];
        for (symbol, name) in names {
            assert_eq!(demangle(symbol), name);
        }
    }

    #[test]
    fn users_name_symbols_in_many_ways() {
        let add = "_ZNK3app5Store3addEi";
        let put = "_ZN3app3BoxISt6vectorIiSaIiEEE3putIlEEvS3_T_";
        let rust = "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE";
        let yes = [
            ("app::Store::add", add),
            ("app::Store::add(int)const", add),
            ("app::Store::add(int) const", add),
            ("app::Store::add(int)", add),
            (add, add),
            ("prog!app::Store::add", add),
            ("app::Box::put", put),
            ("app::Box<std::vector<int, std::allocator<int> > >::put", put),
            ("app::Box<std::vector<int,std::allocator<int>>>::put<long>", put),
            ("app::biggest", "_ZN3app7biggestIiEET_S1_S1_"),
            ("app::biggest<int>", "_ZN3app7biggestIiEET_S1_S1_"),
            ("int app::biggest<int>(int, int)", "_ZN3app7biggestIiEET_S1_S1_"),
            ("app::Store::operator<", "_ZNK3app5StoreltERKS0_"),
            ("app::Store::operator!", "_ZNK3app5StorentEv"),
            ("prog!app::Store::operator!", "_ZNK3app5StorentEv"),
            ("app::operator+", "_ZN3appplERKNS_5StoreEi"),
            ("app::Store::Store", "_ZN3app5StoreC1Ev"),
            ("app::Store::~Store", "_ZN3app5StoreD2Ev"),
            ("core::fmt::Formatter::pad", rust),
            ("core::fmt::Formatter::pad::h0123456789abcdef", rust),
            ("foo::bar", "_RNvCskwGfYPst2Cb_3foo3bar"),
            ("work", "work"),
            ("work", "work.constprop.0"),
            ("app::hidden", "_ZN3app6hiddenEi.isra.0"),
            ("app::hidden(int) [clone .isra.0]", "_ZN3app6hiddenEi.isra.0"),
        ];
        for (text, symbol) in yes {
            assert!(SymbolPattern::new(text).matches(symbol), "{text} {symbol}");
        }
        let no = [
            ("app::Store::add(long)", add),
            ("add", add),
            ("Store::add", add),
            ("_ZNK3app5Store3addEl", add),
            ("app::Box<int>::put", put),
            ("app::Store::operator<=", "_ZNK3app5StoreltERKS0_"),
            ("app::Store", "_ZN3app5StoreC1Ev"),
            ("work", "work.c"),
            ("work", "works.constprop.0"),
            ("work.constprop.1", "work.constprop.0"),
        ];
        for (text, symbol) in no {
            assert!(!SymbolPattern::new(text).matches(symbol), "{text} {symbol}");
        }
        // Tables show neither the type that a function returns nor Rust's hash.
        let is_shown = |text: &str| !text.starts_with("int ") && !text.contains("::h0");
        for (text, symbol) in yes.into_iter().filter(|(text, _)| is_shown(text)) {
            assert!(SymbolPattern::new(text).matches_shown(&demangle(symbol)), "{text} {symbol}");
        }
        for (text, symbol) in no {
            assert!(!SymbolPattern::new(text).matches_shown(&demangle(symbol)), "{text} {symbol}");
        }
        let wild = |text: &str, symbol: &str| {
            let pattern = SymbolPattern::new(text);
            assert_eq!(pattern.matches(symbol), pattern.matches_shown(&demangle(symbol)), "{text} {symbol}");
            pattern.matches(symbol)
        };
        assert!(wild("app::Store::*", add) && wild("*add*", add) && wild("wo*", "work.constprop.0"));
        assert!(!wild("app::*::sub", add) && !wild("w*k", "works") && !wild("app::operator*", add));
        assert!(SymbolPattern::new("work").matches_entry("work.isra.0"));
        assert!(!SymbolPattern::new("work").matches_entry("work.part.0"));
        assert!(SymbolPattern::new("work.part.0").matches_entry("work.part.0"));
    }

    #[test]
    fn exclamation_marks_in_names_are_no_images() {
        assert_eq!(split_image("libc.so!qsort"), (Some("libc.so"), "qsort"));
        assert_eq!(split_image("prog (2)!main"), (Some("prog (2)"), "main"));
        assert_eq!(split_image("a!b::operator!="), (Some("a"), "b::operator!="));
        for name in ["b::operator!=", "<! as core::fmt::Debug>::fmt", "call::<fn() -> !>", "main", "main!"] {
            assert_eq!(split_image(name), (None, name));
        }
    }

    /// Such symbols stand for names of exponential length, nest deeper than a stack is, or are just long.
    #[test]
    fn hostile_symbols_stay_as_they_are_and_take_no_time() {
        let repeated = |step: &str, times: usize| step.repeat(times);
        let doubling: String = ('0'..='9').chain('A'..='Z').map(|c| format!("St4pairIS{c}_S{c}_E")).collect();
        let symbols = [
            format!("_Z1fI{}i{}Evv", repeated("1aI", 5000), repeated("E", 5000)),
            format!("_Z1f1aI{doubling}E"),
            format!("_Z1f{}i", repeated("P", 10_000)),
            format!("_Z{}", repeated("1a", 20_000)),
            format!("_RIC3foo{}", repeated("TB0_B0_", 2000)),
            format!("_Z1fDp{}", repeated("J", 3000)),
            format!("_Z1f{}", repeated("PFi", 4000)),
            format!("_ZN{}", repeated("1aIX", 4000)),
        ];
        let start = std::time::Instant::now();
        for symbol in &symbols {
            assert!(demangle(symbol).len() <= LONGEST_NAME.max(symbol.len()));
            SymbolPattern::new("a").matches(symbol);
        }
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
