//! The environments of runs in words.

use trace::EnvironmentSummary;

use table::separated;

/// How large an environment is.
pub fn describe_environment(environment: &EnvironmentSummary) -> String {
    let number =
        |n: u64, what: &str| format!("{} {what}{}", separated(&n.to_string()), if n == 1 { "" } else { "s" });
    match environment.len() as u64 {
        0 => "empty".into(),
        variables => format!("{}, {}", number(variables, "variable"), number(environment.bytes(), "byte")),
    }
}

/// How the environments of two runs differ, with a label for each; none if they do not, or if one is not known.
pub fn environment_difference(
    labels: [&str; 2],
    environments: [Option<&EnvironmentSummary>; 2],
) -> Option<String> {
    let [Some(a), Some(b)] = environments else { return None };
    let mut parts = Vec::new();
    let mut part = |names: Vec<&str>, what: String| {
        if !names.is_empty() {
            parts.push(format!("{what}: {}", names.join(", ")));
        }
    };
    part(a.changed(b).collect(), "other values".into());
    part(a.without(b).collect(), format!("only in {}", labels[0]));
    part(b.without(a).collect(), format!("only in {}", labels[1]));
    (!parts.is_empty())
        .then(|| format!("The environments differ, which changes counts; {}.", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let of = |words: &[&str]| EnvironmentSummary::new(&words.iter().map(Into::into).collect::<Vec<_>>());
        let (a, b) = (of(&["HOME=/a", "TERM=x"]), of(&["HOME=/b", "LANG=C", "USER=u"]));
        let difference = |a, b| environment_difference(["old", "new"], [a, b]);
        assert_eq!(difference(Some(&a), Some(&a)), None);
        assert_eq!(difference(Some(&a), None), None);
        assert_eq!(
            difference(Some(&a), Some(&b)).unwrap(),
            "The environments differ, which changes counts; other values: HOME; only in old: TERM; only in new: LANG, \
             USER."
        );
        assert_eq!(describe_environment(&of(&[])), "empty");
        assert_eq!(describe_environment(&of(&["A=1"])), "1 variable, 4 bytes");
    }
}
