//! Commands by the question that they answer.

/// Questions with their commands, in the order in which the reference lists them.
pub const QUESTIONS: [(&str, &[&str]); 8] = [
    ("Measure", &["run", "count", "calls", "units", "annotate", "objects", "faults", "sample"]),
    ("Record", &["trace", "system", "qemu", "branch-log"]),
    ("Look", &["show", "strides", "export", "check"]),
    ("Simulate", &["caches", "mrc", "time", "sharing", "machines"]),
    ("Compare", &["compare", "static"]),
    ("Improve", &["spike"]),
    ("Studies", &["study", "build"]),
    ("Installation", &["doctor", "completions", "man"]),
];
