//! The layers of the workspace: a crate uses crates of its own layer or of lower ones. `ARCHITECTURE.md` describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The layers, from the lowest.
const LAYERS: [(&str, &[&str]); 8] = [
    (
        "vocabulary",
        &[
            "isa",
            "image",
            "events",
            "trace",
            "table",
            "text",
            "output-files",
            "descriptions",
            "preload-build",
            "testing",
        ],
    ),
    (
        "execute",
        &[
            "host",
            "guest-memory",
            "guest",
            "alpha",
            "riscv",
            "jit",
            "linux-user",
            "interpose",
            "engine",
            "gdb",
            "translator",
        ],
    ),
    ("record", &["qemu-stream", "qemu-user"]),
    ("model", &["machine", "adapter"]),
    ("analyse", &["analysis"]),
    ("rewrite", &["spike"]),
    ("present", &["report"]),
    (
        "drive",
        &[
            "session",
            "workloads",
            "system",
            "spike-environment",
            "spike-manager",
            "studies",
            "tools",
            "python",
            "pathlength",
        ],
    ),
];

/// A command and library on its own, which only its study uses.
const APART: (&str, &str) = ("vlm", "studies");

/// What each crate uses, but for its tests.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--locked", "--format-version", "1"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let short = |package: &Value| {
        let name = package["name"].as_str().expect("a name");
        name.strip_prefix("pathlength-").unwrap_or(name).to_string()
    };
    let packages = metadata["packages"].as_array().expect("packages");
    let names: BTreeSet<_> = packages.iter().map(short).collect();
    let used = |package: &Value| {
        let all = package["dependencies"].as_array().expect("dependencies").iter();
        all.filter(|used| used["kind"] != "dev").map(short).filter(|name| names.contains(name)).collect()
    };
    packages.iter().map(|package| (short(package), used(package))).collect()
}

/// The index of a crate's layer.
fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, crates)| crates.contains(&name))
}

/// The pairs of a crate and one that it uses of a higher layer.
fn upwards(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<(&str, &str)> {
    let pairs =
        uses.iter().flat_map(|(name, used)| used.iter().map(move |used| (name.as_str(), used.as_str())));
    let is_upwards = |&(name, used): &(&str, &str)| match (layer(name), layer(used)) {
        _ if used == APART.0 => name != APART.1,
        (Some(from), Some(to)) => from < to,
        _ => false,
    };
    pairs.filter(is_upwards).collect()
}

#[test]
fn each_crate_has_a_layer() {
    let uses = uses();
    assert!(uses.len() > 20, "{uses:?}");
    let named = LAYERS.iter().flat_map(|(_, crates)| crates.iter().copied()).chain([APART.0]);
    assert_eq!(named.collect::<BTreeSet<_>>(), uses.keys().map(String::as_str).collect());
}

#[test]
fn crates_use_crates_of_their_layer_or_of_lower_ones() {
    let uses = uses();
    assert!(upwards(&uses).is_empty(), "crates and what they use of higher layers: {:?}", upwards(&uses));
}

#[test]
fn uses_of_higher_layers_are_found() {
    let one =
        |name: &str, used: &str| BTreeMap::from([(name.to_string(), BTreeSet::from([used.to_string()]))]);
    assert_eq!(upwards(&one("isa", "machine")), [("isa", "machine")]);
    assert_eq!(upwards(&one("engine", "session")), [("engine", "session")]);
    assert_eq!(upwards(&one("session", "vlm")), [("session", "vlm")]);
    assert!(upwards(&one("analysis", "machine")).is_empty());
    assert!(upwards(&one("session", "workloads")).is_empty());
    assert!(upwards(&one("studies", "vlm")).is_empty());
}
