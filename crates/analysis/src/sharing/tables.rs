//! The counts of the whole machine as tables.

use machine::{CoherenceState, DeviceCounts, SharingClass, TransitionCause};

use super::SharingAnalysis;
use table::{Kind, Table, Value};

/// Misses by class, and operations on the bus.
pub fn summary(sharing: &SharingAnalysis) -> Table {
    let per_unit = (sharing.units() > 0).then_some(("per unit", Kind::Real(1)));
    let columns: Vec<_> =
        [("what", Kind::Text), ("count", Kind::Count), ("per 1,000 instructions", Kind::Real(3))]
            .into_iter()
            .chain(per_unit)
            .collect();
    let (threads, processors) = (sharing.threads(), sharing.memory.processors());
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let title =
        format!("Coherent caches of {}, {}", plural(processors, "processor"), plural(threads, "thread"));
    let mut table = Table::new("summary", title, &columns);
    let counts = sharing.counts();
    let misses = |class| counts.misses_of(class);
    let rows = [
        ("instructions", sharing.instructions),
        ("loads", counts.loads),
        ("stores", counts.stores),
        ("cold misses", misses(SharingClass::Cold)),
        ("capacity and conflict misses", misses(SharingClass::Replacement)),
        ("true sharing misses", misses(SharingClass::True)),
        ("false sharing misses", misses(SharingClass::False)),
        ("reads", counts.reads),
        ("reads for ownership", counts.reads_for_ownership),
        ("upgrades", counts.upgrades),
        ("write-backs", counts.write_backs),
        ("all operations on the bus", counts.operations()),
        ("of these avoidable", counts.needless()),
        ("transfers from cache to cache", counts.transfers),
        ("updates of memory by transfers", counts.memory_updates),
        ("copies invalidated", counts.invalidations.all),
        ("upgrades avoided by Exclusive", counts.silent_upgrades),
    ];
    let on_nodes = sharing.nodes().map(|nodes| {
        let counts = nodes.counts();
        [
            ("operations on the interconnect", counts.operations()),
            ("requests that the far caches served", counts.far_hits.iter().sum()),
            ("requests that they did not", counts.far_misses.iter().sum()),
            ("requests to the node's own memory", counts.local.iter().sum()),
        ]
    });
    let devices = sharing.devices();
    let of_devices = (*devices != DeviceCounts::default()).then_some([
        ("lines read by devices", devices.reads),
        ("of these supplied by caches", devices.supplied),
        ("lines written by devices", devices.writes),
        ("of these put into caches", devices.placed),
        ("copies that they invalidated", devices.invalidated),
    ]);
    let counted =
        rows.into_iter().chain(on_nodes.into_iter().flatten()).chain(of_devices.into_iter().flatten());
    let counted = counted.map(|(what, count)| (what.to_string(), count));
    let of_tlbs = sharing.tlbs.misses().map(|(name, misses)| (format!("TLB misses of {name}"), misses));
    for (what, count) in counted.chain(of_tlbs) {
        let per = |whole: u64| Value::from(count as f64 / whole as f64);
        let row =
            [what.into(), count.into(), Value::from(1000.0 * count as f64 / sharing.instructions as f64)];
        table.row(row.into_iter().chain((sharing.units() > 0).then(|| per(sharing.units()))).collect());
    }
    table.notes.push(
        "avoidable: operations that would not occur if no two processors used different bytes of a line."
            .into(),
    );
    table
}

/// How often copies of lines changed from one state to another, by cause.
pub fn state_changes(sharing: &SharingAnalysis) -> Table {
    let columns =
        [("cause", Kind::Text), ("before", Kind::Text), ("after", Kind::Text), ("changes", Kind::Count)];
    let mut table = Table::new("states", "Changes of state of cache lines", &columns);
    let cause_name = |cause| match cause {
        TransitionCause::Load => "load",
        TransitionCause::Store => "store",
        TransitionCause::BusRead => "read by another processor",
        TransitionCause::BusInvalidate => "store by another processor",
        TransitionCause::Eviction => "eviction",
    };
    let state_name = |state| match state {
        CoherenceState::Invalid => "invalid",
        CoherenceState::Shared => "shared",
        CoherenceState::Exclusive => "exclusive",
        CoherenceState::Owned => "owned",
        CoherenceState::Modified => "modified",
    };
    for cause in TransitionCause::ALL {
        for before in CoherenceState::ALL {
            for after in CoherenceState::ALL {
                let changes = sharing.counts().states.get(cause, before, after);
                if changes > 0 {
                    let names = [cause_name(cause), state_name(before), state_name(after)];
                    table.row(names.map(Value::from).into_iter().chain([changes.into()]).collect());
                }
            }
        }
    }
    table
}
