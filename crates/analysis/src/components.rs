//! Components: the parts of a program that functions belong to, by rules in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::names::FunctionName;
use crate::profile::Profile;
use table::{Kind, Table};

/// The rules that come with Pathlength, by name.
const BUILT_IN: [(&str, &str); 3] = [
    ("sqlite", include_str!("../../../data/components/sqlite.toml")),
    ("postgresql", include_str!("../../../data/components/postgresql.toml")),
    ("linux", include_str!("../../../data/components/linux.toml")),
];

/// Rules by which functions belong to components.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// Patterns of images: a run with such an image has these components.
    #[serde(default)]
    images: Vec<Pattern>,
    /// The rules. Of a function whose file of source is known, the first rule with this file decides, if there is one; or else
    /// the first that has the function.
    #[serde(default, rename = "component")]
    rules: Vec<ComponentRule>,
    /// Kinds of processes, by functions that no others execute. The first rule with a function that a process has executed
    /// decides.
    #[serde(default, rename = "process")]
    processes: Vec<ProcessRule>,
}

/// A kind of processes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessRule {
    /// Its name.
    kind: String,
    /// Patterns of functions.
    functions: Vec<Pattern>,
}

/// The code that belongs to a component.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentRule {
    /// The component's name.
    name: String,
    /// Patterns of the files in which functions are defined, as debug information names them.
    #[serde(default)]
    sources: Vec<Pattern>,
    /// Patterns of functions; none: any function, if there are no patterns of files.
    #[serde(default)]
    functions: Vec<Pattern>,
    /// Patterns of images; none: any image.
    #[serde(default)]
    images: Vec<Pattern>,
}

/// A name in which `*` stands for any characters, and `?` for one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "String")]
struct Pattern(WildMatch);

impl From<String> for Pattern {
    fn from(text: String) -> Pattern {
        Pattern(WildMatch::new(&text))
    }
}

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum ComponentsError {
    /// No such rules.
    #[error(
        "no components are called '{}': name a file of rules, or {}",
        .0.display(), BUILT_IN.map(|(name, _)| name).join(", ")
    )]
    Unknown(PathBuf),
    /// The file cannot be read.
    #[error("cannot read the components in {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The host's reason.
        error: std::io::Error,
    },
    /// The file is not as it should be.
    #[error("{}: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
}

impl Components {
    /// Rules by their name, or in a file.
    pub fn find(name: &Path) -> Result<Components, ComponentsError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| Path::new(known) == name) {
            return Ok(parse(text).expect("built-in rules are valid"));
        }
        let text = std::fs::read_to_string(name).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ComponentsError::Unknown(name.into()),
            _ => ComponentsError::Unreadable { path: name.into(), error },
        })?;
        parse(&text).map_err(|reason| ComponentsError::Invalid { path: name.into(), reason })
    }

    /// The built-in rules for a run with these images, or else none.
    pub fn of_images<'a>(images: impl Iterator<Item = &'a str> + Clone) -> Components {
        let all = BUILT_IN.iter().map(|(_, text)| parse(text).expect("built-in rules are valid"));
        let mut fitting = all.filter(|rules| images.clone().any(|image| matches(&rules.images, image)));
        fitting.next().unwrap_or_default()
    }

    /// The component of a function that is defined in a file, if that is known: its image's name, if there is no rule for it.
    pub fn of<'a>(&'a self, function: &'a FunctionName, file: Option<&str>) -> &'a str {
        let fits = |patterns: &[Pattern], name: &str| patterns.is_empty() || matches(patterns, name);
        let has_image = |rule: &&ComponentRule| fits(&rule.images, &function.image);
        let rules = || self.rules.iter().filter(has_image);
        let by_file = file.and_then(|file| rules().find(|rule| matches(&rule.sources, file)));
        let by_function = || {
            // Of a function that the compiler has split or specialized, the name in the source.
            let source_name = function.function.split('.').next().unwrap_or_default();
            let is_of_files = |rule: &ComponentRule| rule.functions.is_empty() && !rule.sources.is_empty();
            rules().find(|rule| !is_of_files(rule) && fits(&rule.functions, source_name))
        };
        by_file.or_else(by_function).map_or(&function.image, |rule| &rule.name)
    }

    /// The number of the first rule for processes with a function. The least of all functions that a process has executed decides
    /// its kind.
    pub(crate) fn process_rule(&self, function: &FunctionName) -> Option<usize> {
        self.processes.iter().position(|rule| matches(&rule.functions, &function.function))
    }

    /// The kind of processes that the rule of this number is for.
    pub(crate) fn process_kind(&self, rule: usize) -> &str {
        &self.processes[rule].kind
    }

    /// Whether some rule names files of source.
    pub fn have_sources(&self) -> bool {
        self.rules.iter().any(|rule| !rule.sources.is_empty())
    }

    /// Instructions by component.
    pub fn sums<'a>(&'a self, profile: &'a Profile) -> BTreeMap<&'a str, f64> {
        let mut sums = BTreeMap::new();
        for (function, instructions) in &profile.functions {
            let file = profile.sources.get(function).map(String::as_str);
            *sums.entry(self.of(function, file)).or_default() += instructions;
        }
        sums
    }
}

/// Instructions by component: the largest first.
pub fn component_shares(name: &str, title: &str, profile: &Profile, components: &Components) -> Table {
    let columns = [("component", Kind::Text), ("instructions", Kind::Count), ("share", Kind::Percent(1))];
    let mut table = Table::new(name, title, &columns);
    let row =
        |name: &str, n: f64| vec![name.into(), (n.round() as u64).into(), (100.0 * n / profile.total).into()];
    let mut rows: Vec<_> = components.sums(profile).into_iter().collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    rows.into_iter().for_each(|(name, n)| table.row(row(name, n)));
    table.total_row(row("total", profile.total));
    table
}

/// Instructions by component in two profiles: what costs most in the first one comes first.
pub fn component_differences(
    name: &str,
    title: &str,
    labels: [&str; 2],
    profiles: [&Profile; 2],
    components: &Components,
) -> Table {
    let columns = [
        ("component", Kind::Text),
        (labels[0], Kind::Count),
        (labels[1], Kind::Count),
        ("delta", Kind::Delta),
        ("% delta", Kind::Change(1)),
        ("share of the delta", Kind::Percent(1)),
    ];
    let mut table = Table::new(name, title, &columns);
    let [a, b] = profiles.map(|profile| components.sums(profile));
    let whole = profiles[1].total - profiles[0].total;
    let row = |name: &str, a: f64, b: f64| {
        let counts = [a, b].map(|n| (n.round() as u64).into());
        let changes = [((b - a).round() as i64).into(), (100.0 * (b / a - 1.0)).into()];
        let share = (100.0 * (b - a) / whole).into();
        std::iter::once(name.into()).chain(counts).chain(changes).chain([share]).collect()
    };
    let mut rows: Vec<(&str, f64, f64)> = Vec::new();
    for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
        let of = |sums: &BTreeMap<&str, f64>| sums.get(name).copied().unwrap_or(0.0);
        rows.push((name, of(&a), of(&b)));
    }
    rows.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    rows.into_iter().for_each(|(name, a, b)| table.row(row(name, a, b)));
    table.total_row(row("total", profiles[0].total, profiles[1].total));
    table
}

fn matches(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|Pattern(pattern)| pattern.matches(name))
}

fn parse(text: &str) -> Result<Components, String> {
    let components: Components =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    match components
        .rules
        .iter()
        .find(|rule| rule.functions.is_empty() && rule.images.is_empty() && rule.sources.is_empty())
    {
        Some(rule) => Err(format!("the component '{}' has no sources, functions or images", rule.name)),
        None => Ok(components),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(image: &str, function: &str) -> FunctionName {
        FunctionName { image: image.into(), function: function.into() }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = Components::find(Path::new("sqlite")).unwrap();
        let of = |image, name| rules.of(&function(image, name), None).to_owned();
        assert_eq!(of("libsqlite3.so", "sqlite3VdbeSorterWrite"), "sorter");
        assert_eq!(of("libsqlite3.so", "sqlite3VdbeExec"), "virtual machine");
        assert_eq!(of("libsqlite3.so", "balance_nonroot"), "B-tree");
        assert_eq!(of("libsqlite3.so", "sqlite3RunParser"), "compiler of SQL");
        assert_eq!(of("libc.so.6.1", "walk"), "C library");
        assert_eq!(of("bank", "main"), "bank");
        // A part of a function belongs where the function does.
        assert_eq!(of("bank", "sqlite3WalUndo.part.0"), "write-ahead log");
    }

    #[test]
    fn functions_of_a_kernel_have_components() {
        let rules = Components::find(Path::new("linux")).unwrap();
        let of = |image, name| rules.of(&function(image, name), None).to_owned();
        for (name, component) in [
            ("__copy_user", "copy"),
            ("csum_and_copy_from_user", "copy with checksum"),
            ("do_csum", "checksum"),
            ("skb_segment", "segmentation"),
            ("tcp_gso_segment", "segmentation"),
            ("tulip_start_xmit", "driver"),
            ("e1000_clean_rx_irq", "driver"),
            ("tcp_sendmsg_locked", "TCP"),
            ("ip_queue_xmit", "IP"),
            ("__alloc_skb", "socket buffers"),
            ("kmem_cache_alloc", "memory management"),
            ("try_to_wake_up", "scheduler"),
            ("do_entInt", "interrupts and timers"),
            ("entSys", "system calls"),
            ("start_kernel", "vmlinux"),
        ] {
            assert_eq!(of("vmlinux", name), component, "{name}");
        }
        assert_eq!(of("transfer", "memcpy"), "transfer");
    }

    #[test]
    fn rules_are_chosen_by_images() {
        assert_eq!(Components::of_images(["a", "libc.so.6.1"].into_iter()), Components::default());
        let rules = Components::of_images(["a", "libsqlite3.so.0"].into_iter());
        assert_eq!(rules, Components::find(Path::new("sqlite")).unwrap());
    }

    #[test]
    fn files_decide_before_functions() {
        let rules = Components::find(Path::new("postgresql")).unwrap();
        let of = |name, file| rules.of(&function("postgres", name), file).to_owned();
        assert_eq!(of("heap_insert", None), "heap");
        assert_eq!(of("heap_insert", Some("/src/postgresql/src/backend/access/heap/heapam.c")), "heap");
        assert_eq!(
            of("heap_form_tuple", Some("./source/src/backend/access/common/heaptuple.c")),
            "tuples and relations"
        );
        assert_eq!(of("XLogInsert", Some("/x/src/backend/access/transam/xloginsert.c")), "write-ahead log");
        assert_eq!(
            of("StartTransaction", Some("/x/src/backend/access/transam/xact.c")),
            "transactions and snapshots"
        );
        // A function without a rule, in a file without one.
        assert_eq!(of("something", Some("/elsewhere/x.c")), "rest of the server");
        assert_eq!(of("something", None), "rest of the server");
    }

    #[test]
    fn processes_are_of_the_kind_whose_functions_they_execute() {
        let rules = Components::find(Path::new("postgresql")).unwrap();
        let of = |names: &[&str]| {
            let functions: Vec<_> = names.iter().map(|name| function("postgres", name)).collect();
            let rule = functions.iter().filter_map(|function| rules.process_rule(function)).min();
            rule.map(|rule| rules.process_kind(rule).to_string())
        };
        assert_eq!(of(&["PostmasterMain", "CheckpointerMain"]).as_deref(), Some("checkpointer"));
        assert_eq!(of(&["PostmasterMain", "PostgresMain"]).as_deref(), Some("backend"));
        assert_eq!(of(&["PostmasterMain"]).as_deref(), Some("postmaster"));
        assert_eq!(of(&["main"]), None);
    }

    #[test]
    fn bad_rules_are_errors() {
        let of = |text: &str| parse(text).unwrap_err();
        assert!(of("[[component]]\nname = 'x'").contains("no sources, functions or images"));
        assert!(of("[[component]]\nfunctions = ['x']").contains("name"));
        assert!(of("[[component]]\nname = 'x'\nfunction = ['x']").contains("function"));
        assert!(of("]").contains("line 1"));
        let missing = Components::find(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(missing.contains("name a file of rules, or sqlite, postgresql"), "{missing}");
    }
}
