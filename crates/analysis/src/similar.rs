//! Names that a misspelt one may mean.

/// How alike two names must be, by Jaro and Winkler's measure, and how many are suggested.
const LIKENESS: f64 = 0.85;
const MAX_SUGGESTIONS: usize = 3;

/// Those names that resemble `wanted`, the most similar first; some at most.
pub fn similar(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let likeness = |name: &str| match is_last_part(wanted, name) {
        true => 1.0,
        false => strsim::jaro_winkler(wanted, name),
    };
    let mut names: Vec<(f64, String)> = names.into_iter().map(|name| (likeness(&name), name)).collect();
    names.retain(|(likeness, _)| *likeness > LIKENESS);
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    names.dedup_by(|a, b| a.1 == b.1);
    names.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

/// The end of an error's sentence: whether one of these names is meant, or what to do if there are none.
pub fn hint(similar: &[String], otherwise: &str) -> String {
    match similar {
        [] => format!("; {otherwise}"),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

/// Whether a name is another one without the namespaces, as `add` or `Store::add` are `app::Store::add(int)`.
fn is_last_part(wanted: &str, name: &str) -> bool {
    let name = if wanted.contains('(') { name } else { name.split('(').next().unwrap_or(name) };
    name.strip_suffix(wanted).is_some_and(|before| before.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_comes_first() {
        let names = ["by_columns", "main", "by_rows", "by_row", "app::by_rws(int)"].map(String::from);
        assert_eq!(similar("by_rws", names.clone()), ["app::by_rws(int)", "by_rows", "by_row"]);
        assert_eq!(similar("printf", names), [""; 0]);
    }
}
