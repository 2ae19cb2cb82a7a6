//! What the studies concluded, beside what was found here, and whether it holds here.

use machine::{CoherenceState, ProcessorRequest, Transaction};
use table::{Kind, Table};

use super::alphaserver::{AlphaServerResults, WorkloadMeasured, shared_requests};
use super::machines::SPEEDS;
use super::pentium_pro::{BASE, BusConfiguration, CoreMeasured, PentiumProResults};
use super::workloads::WorkloadKind;

/// A conclusion.
struct SmpFinding {
    conclusion: &'static str,
    printed: &'static str,
    here: String,
    holds: bool,
}

fn table(name: &str, title: &str, findings: Vec<SmpFinding>) -> Table {
    let columns = [
        ("conclusion", Kind::Text),
        ("printed", Kind::Text),
        ("here", Kind::Text),
        ("holds here", Kind::Text),
    ];
    let mut table = Table::new(name, title, &columns);
    for SmpFinding { conclusion, printed, here, holds } in findings {
        let holds = if holds { "yes" } else { "no" };
        table.row(vec![conclusion.into(), printed.into(), here.into(), holds.into()]);
    }
    table
}

/// The conclusions of the study of the quad Pentium Pro.
pub(super) fn pentium_pro(found: &PentiumProResults) -> Table {
    let core = found.base_core();
    let stalls = 100.0 * (1.0 - core.not_overlapped.computation / core.cpi());
    let idle_retire = 100.0 * core.retired[0] as f64 / core.cycles;
    let overlapped = |core: &CoreMeasured| 100.0 * core.cpi() / core.not_overlapped.total();
    let slowest = found.core(BASE.l2, SPEEDS.len() - 1, BASE.outstanding);
    let bus = |l2, processors| found.bus(&BusConfiguration { l2, processors, ..BASE });
    let misses = ["256K", "512K", "1M"]
        .map(|l2| bus(l2, 4).requests(&ProcessorRequest::ALL, &[CoherenceState::Invalid]));
    let gains = [misses[0] - misses[1], misses[1] - misses[2]];
    let dirty = ["256K", "512K", "1M"].map(|l2| bus(l2, 4).dirty_share());
    let [two, four] = [2, 4].map(|processors| bus("1M", processors).dirty_share());
    let one_request = found.core("256K", 0, 1).cpi() / found.core("256K", 0, BASE.outstanding).cpi();
    let scaling = bus("1M", 4).throughput() / bus("1M", 1).throughput();
    let [alone, loaded] = [1, 4].map(|processors| bus("1M", processors).memory_latency());
    let requests = &bus("1M", 4).0.memory().counts().requests;
    let store_hits = requests.all(ProcessorRequest::Store)
        - requests.get(ProcessorRequest::Store, CoherenceState::Invalid);
    let exclusive =
        100.0 * requests.get(ProcessorRequest::Store, CoherenceState::Exclusive) as f64 / store_hits as f64;
    let msi = found.bus(&BusConfiguration { protocol: "msi", ..BASE });
    let more = 100.0 * msi.operations() / bus("1M", 4).operations() - 100.0;
    let code = 100.0 * requests.get(ProcessorRequest::Fetch, CoherenceState::Invalid) as f64
        / requests.all(ProcessorRequest::Fetch) as f64;
    let [executed, missed] = core.counts.targets;
    let findings = vec![
        SmpFinding {
            conclusion: "stalls dominate the cycles",
            printed: "62 % of the database's",
            here: format!("{stalls:.0} %"),
            holds: stalls > 50.0,
        },
        SmpFinding {
            conclusion: "in most cycles no instruction retires",
            printed: "62.8 % of the cycles",
            here: format!("{idle_retire:.0} %"),
            holds: idle_retire > 50.0,
        },
        SmpFinding {
            conclusion: "out-of-order execution hides some of the latencies: less is measured than the components' sum",
            printed: "67 % of the sum with 1 MB",
            here: format!("{:.0} %", overlapped(core)),
            holds: overlapped(core) < 90.0,
        },
        SmpFinding {
            conclusion: "it hides no larger share of a longer latency",
            printed: "about the same for all memories",
            here: format!("{:.0} % with 190 ns, {:.0} % with 470 ns", overlapped(core), overlapped(slowest)),
            holds: overlapped(slowest) > overlapped(core) - 5.0,
        },
        SmpFinding {
            conclusion: "each doubling of L2 avoids about half the misses that the one before has avoided",
            printed: "20, 11 and 7 misses in 1,000 instructions",
            here: format!("{:.1}, {:.1} and {:.1}", misses[0], misses[1], misses[2]),
            holds: (0.3..0.7).contains(&(gains[1] / gains[0])),
        },
        SmpFinding {
            conclusion: "1 MB holds the instructions",
            printed: "1 % of the fetches from L2 miss",
            here: format!("{code:.1} %"),
            holds: code < 2.0,
        },
        SmpFinding {
            conclusion: "more than one outstanding request hardly helps",
            printed: "CPI 2.79 with one, 2.74 with four",
            here: format!("{:.1} % more cycles with one", 100.0 * one_request - 100.0),
            holds: one_request < 1.03,
        },
        SmpFinding {
            conclusion: "512 entries do not suffice for the branch target buffer",
            printed: "55.6 % of the branches miss it",
            here: format!("{:.1} %", 100.0 * missed as f64 / executed as f64),
            holds: missed as f64 > 0.3 * executed as f64,
        },
        SmpFinding {
            conclusion: "throughput scales well",
            printed: "3.4 times with four processors",
            here: format!("{scaling:.2} times"),
            holds: scaling > 3.0,
        },
        SmpFinding {
            conclusion: "a modest load of the bus makes memory slower",
            printed: "58 to 95 cycles, from one to four processors",
            here: format!("{alone:.0} to {loaded:.0} cycles"),
            holds: loaded > 1.1 * alone,
        },
        SmpFinding {
            conclusion: "larger caches have more misses to lines that are dirty elsewhere",
            printed: "5.3, 11.1 and 21.5 %",
            here: format!("{:.1}, {:.1} and {:.1} %", dirty[0], dirty[1], dirty[2]),
            holds: dirty[0] < dirty[1] && dirty[1] < dirty[2],
        },
        SmpFinding {
            conclusion: "so have more processors",
            printed: "10.0 % with two, 21.5 % with four",
            here: format!("{two:.1} % with two, {four:.1} % with four"),
            holds: two < four,
        },
        SmpFinding {
            conclusion: "stores hardly ever hit a line in the state E",
            printed: "0.7 % of the stores that hit",
            here: format!("{exclusive:.1} %"),
            holds: exclusive < 5.0,
        },
        SmpFinding {
            conclusion: "so MSI would do: it does not need many more bus operations",
            printed: "not measured",
            // Time decides which processor executes a transaction, so that there may be fewer.
            here: format!("{:.1} % {}", more.abs(), if more < 0.0 { "fewer" } else { "more" }),
            holds: more < 5.0,
        },
    ];
    table("findings-pentium-pro", "The study's conclusions, on the quad Pentium Pro", findings)
}

/// The conclusions of the study on AlphaServers.
pub(super) fn alphaserver(found: &AlphaServerResults) -> Table {
    let of = |kind| found.workloads.iter().filter(move |one| one.kind == kind);
    let commercial = of(WorkloadKind::Commercial).next().expect("there is one");
    let technical = || found.workloads.iter().filter(|one| one.kind != WorkloadKind::Commercial);
    let compare = |value: &dyn Fn(&WorkloadMeasured) -> f64, unit: &str| {
        let (least, most) = range(technical().map(value));
        format!("{:.2}{unit} against {least:.2} to {most:.2}{unit}", value(commercial))
    };
    let most = |kind, value: &dyn Fn(&WorkloadMeasured) -> f64| range(of(kind).map(value)).1;
    let cpi = |one: &WorkloadMeasured| one.cores.cpi;
    let wide = |one: &WorkloadMeasured| 100.0 * (one.cores.issued[2] + one.cores.issued[3]) / one.cores.cpi;
    let frozen = |one: &WorkloadMeasured| one.cores.frozen / one.cores.dry;
    let barriers = |one: &WorkloadMeasured| 100.0 * one.cores.barriers / one.cores.cpi;
    let misses = |name: &'static str| move |one: &WorkloadMeasured| one.caches.per_thousand(name);
    let shared = |one: &WorkloadMeasured| shared_requests(&one.bus);
    let lines = |one: &WorkloadMeasured| one.bus.per_thousand(Transaction::Memory);
    let use_of_bus = |one: &WorkloadMeasured| one.bus.utilization();
    let above = |value: &dyn Fn(&WorkloadMeasured) -> f64| {
        technical().filter(|one| value(one) >= value(commercial)).count()
    };
    let all = technical().count();
    let rates = most(WorkloadKind::Rates, &shared);
    let parallel = most(WorkloadKind::Parallel, &shared);
    let findings = vec![
        SmpFinding {
            conclusion: "the CPI of commercial workloads is higher than that of the majority of technical ones",
            printed: "some technical ones have as high a one",
            here: compare(&cpi, ""),
            holds: 2 * above(&cpi) <= all,
        },
        SmpFinding {
            conclusion: "there is no issue of three or four instructions, which needs floating point",
            printed: "none",
            here: compare(&wide, " % of the cycles"),
            holds: wide(commercial) < 1.0,
        },
        SmpFinding {
            conclusion: "more stalls are of data (frozen) than of instructions (dry)",
            printed: "frozen higher than dry",
            here: format!("{:.2} times as many", frozen(commercial)),
            holds: frozen(commercial) > 1.0,
        },
        SmpFinding {
            conclusion: "memory barriers cost more than in technical workloads",
            printed: "high in commercial, lower in parallel, little else",
            here: compare(&barriers, " % of the cycles"),
            holds: above(&barriers) == 0,
        },
        SmpFinding {
            conclusion: "the instruction cache misses more than in technical workloads with floating point",
            printed: "higher in commercial (and SPECint95)",
            here: compare(&misses("icache"), " in 1,000 instructions"),
            holds: above(&misses("icache")) == 0,
        },
        SmpFinding {
            conclusion: "the data cache misses less",
            printed: "higher in SPECfp95",
            here: compare(&misses("dcache"), " in 1,000 instructions"),
            holds: 2 * above(&misses("dcache")) > all,
        },
        SmpFinding {
            conclusion: "the board cache misses less",
            printed: "higher in SPECfp95",
            here: compare(&misses("bcache"), " in 1,000 instructions"),
            holds: 2 * above(&misses("bcache")) > all,
        },
        SmpFinding {
            conclusion: "requests on the bus are shared: dirty reads and invalidations",
            printed: "high in commercial, also in several parallel ones",
            here: compare(&shared, " % of the requests"),
            holds: shared(commercial) > 10.0,
        },
        SmpFinding {
            conclusion: "rates share nothing, parallel workloads do",
            printed: "no sharing; high sharing in several",
            here: format!("at most {rates:.2} % of the requests against {parallel:.2} %"),
            holds: rates < 1.0 && parallel > rates,
        },
        SmpFinding {
            conclusion: "rates need the bandwidth of the bus, commercial workloads do not",
            printed: "lower bus traffic than technical multistream",
            here: format!(
                "{:.1} lines from memory in 1,000 instructions and {:.0} % of the bus, against up to {:.1} and {:.0} %",
                lines(commercial),
                use_of_bus(commercial),
                most(WorkloadKind::Rates, &lines),
                most(WorkloadKind::Rates, &use_of_bus)
            ),
            holds: use_of_bus(commercial) < most(WorkloadKind::Rates, &use_of_bus),
        },
    ];
    table(
        "findings-alphaserver",
        "The conclusions about commercial and technical workloads, on an AlphaServer",
        findings,
    )
}

/// The least and the greatest of some numbers.
fn range(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), one| (least.min(one), most.max(one)))
}
