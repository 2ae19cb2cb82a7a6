//! Whether the kernel can keep what the registry promises.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::error::Result;
use crate::mount::Mount;
use crate::pool::Pool;
use crate::region::SHARING_UNIT;
use crate::registry::{PageTables, Registry};
use crate::{Size, usage};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A program may fail or be killed.
    Alarm,
    /// Something is not as the registry says, and nothing is lost.
    Warning,
    /// Something could be better.
    Note,
}

/// A finding, and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlmFinding {
    /// How much it matters.
    pub severity: Severity,
    /// A sentence.
    pub text: String,
}

/// All findings, the worst first.
pub fn check(registry: &Registry) -> Result<Vec<VlmFinding>> {
    let mounts: Vec<_> =
        Mount::all()?.into_iter().filter(|mount| mount.point.starts_with(&registry.mounts)).collect();
    let mut findings = check_pools(registry, &mounts)?;
    for entry in &registry.entries {
        findings.extend(check_entry(registry, &entry.name, &mounts)?);
    }
    for mount in &mounts {
        let name = mount.point.file_name().unwrap_or_default().to_string_lossy();
        if registry.entry(&name).is_err() {
            findings.push(VlmFinding {
                severity: Severity::Warning,
                text: format!(
                    "`{name}` has {} of reserved memory and no entry in the registry: run `vlm free {name}`",
                    mount.size
                ),
            });
        }
    }
    findings.sort_by_key(|finding| finding.severity);
    Ok(findings)
}

fn check_pools(registry: &Registry, mounts: &[Mount]) -> Result<Vec<VlmFinding>> {
    let mut findings = Vec::new();
    let mounted = mounts.iter().map(|mount| mount.page_size);
    let sizes: BTreeSet<Size> = registry.entries.iter().map(|entry| entry.page_size).chain(mounted).collect();
    for size in sizes {
        let counts = Pool::open(size, None)?.counts()?;
        let mut found = |severity, text| findings.push(VlmFinding { severity, text });
        if let Some(problem) = counts.lost_reserve(size) {
            found(Severity::Alarm, problem);
        }
        let promised: u64 =
            mounts.iter().filter(|mount| mount.page_size == size).map(|mount| mount.reserve.bytes()).sum();
        let pool = (counts.total - counts.surplus) * size.bytes();
        if promised > pool {
            found(
                Severity::Alarm,
                format!(
                    "sections have reserves of {} in pages of {size}, and the pool has only {}: it was made smaller; raise \
                     vm.nr_hugepages by {}",
                    Size(promised),
                    Size(pool),
                    (promised - pool).div_ceil(size.bytes())
                ),
            );
        }
        if counts.overcommit > 0 {
            found(
                Severity::Warning,
                format!(
                    "vm.nr_overcommit_hugepages is {} for pages of {size}, which can cost sections their reserves: set it to 0",
                    counts.overcommit
                ),
            );
        }
    }
    Ok(findings)
}

fn check_entry(registry: &Registry, name: &str, mounts: &[Mount]) -> Result<Vec<VlmFinding>> {
    let entry = registry.entry(name)?;
    let point = registry.mount_point(name);
    // Removes what is left of users that are gone, which is no finding; other users may not look at all.
    let _ = usage(registry, name);
    let mut findings = Vec::new();
    let mut found = |severity, text| findings.push(VlmFinding { severity, text });
    match mounts.iter().rev().find(|mount| mount.point == point) {
        None => found(
            Severity::Warning,
            format!("the memory of section `{name}` is not reserved: run `vlm apply {name}`"),
        ),
        Some(mount) if !mount.matches(entry) => found(
            Severity::Warning,
            format!(
                "section `{name}` has {} reserved in pages of {}, and the registry says {} in pages of {}: run `vlm free \
                 {name}` and `vlm apply {name}`",
                mount.reserve, mount.page_size, entry.size, entry.page_size
            ),
        ),
        Some(_) => {
            let length = fs::metadata(point.join("section")).map(|metadata| Size(metadata.size()));
            if let Ok(length) = length.as_ref().map(|length| *length)
                && length != entry.size
            {
                found(
                    Severity::Alarm,
                    format!(
                        "section `{name}` was truncated to {length} of {}: programs that use it are killed when they touch the \
                         rest; end them and create the section anew",
                        entry.size
                    ),
                );
            }
        }
    }
    let rest = entry.size.bytes() % SHARING_UNIT as u64;
    if entry.page_tables == PageTables::Shared && entry.page_size == Size::mib(2) && rest != 0 {
        found(
            Severity::Note,
            format!("section `{name}`: only whole GiB share page tables; its last {} do not", Size(rest)),
        );
    }
    Ok(findings)
}
