//! The machines that come with the crate.

use descriptions::Descriptions;

/// The machines that come with the crate: their names, and their files.
pub(super) const MACHINES: Descriptions = Descriptions { kind: "machine", files: &KNOWN };

const KNOWN: [(&str, &str); 16] = [
    ("alpha21264", include_str!("../../../../data/machines/alpha21264.toml")),
    ("alphaserver4100", include_str!("../../../../data/machines/alphaserver4100.toml")),
    ("alphaserver8400", include_str!("../../../../data/machines/alphaserver8400.toml")),
    ("alphastation500", include_str!("../../../../data/machines/alphastation500.toml")),
    ("alphastation500-ev5", include_str!("../../../../data/machines/alphastation500-ev5.toml")),
    ("av20000", include_str!("../../../../data/machines/av20000.toml")),
    ("dec3000", include_str!("../../../../data/machines/dec3000.toml")),
    ("origin200", include_str!("../../../../data/machines/origin200.toml")),
    ("origin200-core", include_str!("../../../../data/machines/origin200-core.toml")),
    ("pentium-pro", include_str!("../../../../data/machines/pentium-pro.toml")),
    ("pentium-pro-core", include_str!("../../../../data/machines/pentium-pro-core.toml")),
    ("present-day", include_str!("../../../../data/machines/present-day.toml")),
    ("present-day-core", include_str!("../../../../data/machines/present-day-core.toml")),
    ("present-day-numa", include_str!("../../../../data/machines/present-day-numa.toml")),
    ("qemu", include_str!("../../../../data/machines/qemu.toml")),
    ("r10000", include_str!("../../../../data/machines/r10000.toml")),
];

/// The names of the machines that come with the crate.
pub fn names() -> String {
    MACHINES.names()
}
