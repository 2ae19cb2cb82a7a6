//! The study's tables.

use table::{Kind, Table, Value};

use super::composite::{TESTS, ViewerResult};
use super::growth::{CONDITION_NAMES, LibrarySize};
use super::runs::SYSTEMS;
use super::stages::{self, CompositeRate, StageTimes};
use super::vertices::{
    CONDITIONS, ChangeCost, ClockRate, EXACT, HOST, PATHS, VARIANTS, VariantCost, VertexCost, cases,
};

fn count(value: f64) -> Value {
    Value::Integer(value.round() as i64)
}

fn optional(value: Option<f64>, form: impl Fn(f64) -> Value) -> Value {
    value.map_or(Value::Missing, form)
}

/// The machines on which vertices were measured: the Alphas, the one with exact traps, and the host if there is one.
fn machines(all: &[VertexCost]) -> Vec<&'static str> {
    let known = [SYSTEMS[0].label, SYSTEMS[1].label, EXACT, HOST];
    known.into_iter().filter(|machine| all.iter().any(|one| one.machine == *machine)).collect()
}

/// The cost of the same vertex by both paths.
pub(super) fn pair<'v>(
    all: &'v [VertexCost],
    conditions: &str,
    mode: &str,
    machine: &str,
) -> Option<[&'v VertexCost; 2]> {
    let find = |path: &str| {
        all.iter().find(|one| {
            (one.conditions, one.mode, one.machine, one.path) == (conditions, mode, machine, path)
        })
    };
    Some([find(PATHS[0])?, find(PATHS[1])?])
}

/// The cost of a vertex by everything.
pub(super) fn vertices(all: &[VertexCost]) -> Table {
    let columns = [
        ("conditions", Kind::Text),
        ("mode", Kind::Text),
        ("machine", Kind::Text),
        ("path", Kind::Text),
        ("instructions a vertex", Kind::Count),
        ("cycles a vertex", Kind::Count),
        ("instruction misses a 1,000", Kind::Count),
        ("data misses a 1,000", Kind::Count),
        ("M vertices/s", Kind::Real(2)),
    ];
    let mut table = Table::new(
        "vertices",
        "The cost of a vertex: user instructions, cycles, and misses of the first caches.",
        &columns,
    );
    for one in all {
        table.row(vec![
            one.conditions.into(),
            one.mode.into(),
            one.machine.into(),
            one.path.into(),
            optional(one.instructions, count),
            optional(one.cycles, count),
            optional(one.instruction_misses, count),
            optional(one.data_misses, count),
            Value::Real(one.rate),
        ]);
    }
    table.notes.push(
        "Calls of the program, validation and the assembly of triangles, which are culled, are included."
            .into(),
    );
    table
}

/// Rates of special paths in immediate mode, a row for each of the conditions.
pub(super) fn rates(all: &[VertexCost]) -> Table {
    let machines = machines(all);
    let columns: Vec<_> = [("conditions", Kind::Text)]
        .into_iter()
        .chain(machines.iter().map(|&machine| (machine, Kind::Real(2))))
        .collect();
    let mut table = Table::new("rates", "Special paths, immediate mode: M vertices/s.", &columns);
    for (_, name) in CONDITIONS {
        let rate = |machine: &&str| {
            optional(pair(all, name, "immediate", machine).map(|[_, special]| special.rate), Value::Real)
        };
        table.row([name.into()].into_iter().chain(machines.iter().map(rate)).collect());
    }
    table
}

/// The generic path's rate as a share of the special one's.
pub(super) fn shares(all: &[VertexCost]) -> Table {
    let machines = machines(all);
    let columns: Vec<_> = [("conditions", Kind::Text), ("mode", Kind::Text)]
        .into_iter()
        .chain(machines.iter().map(|&machine| (machine, Kind::Percent(0))))
        .collect();
    let mut table =
        Table::new("shares", "The generic path's rate as a share of the special path's.", &columns);
    for (_, conditions, mode) in cases() {
        let share = |machine: &&str| {
            let pair = pair(all, conditions, mode, machine);
            optional(pair.map(|[generic, special]| 100.0 * generic.rate / special.rate), Value::Real)
        };
        table.row([conditions.into(), mode.into()].into_iter().chain(machines.iter().map(share)).collect());
    }
    table.notes.push(
        "The paper: under certain conditions the generic path drives the hardware at no more than 33 % of its maximum rate.".into(),
    );
    table
}

/// Rates by clock.
pub(super) fn clocks(all: &[ClockRate]) -> Table {
    let columns = [("MHz", Kind::Count), (PATHS[0], Kind::Real(3)), (PATHS[1], Kind::Real(3))];
    let mut table = Table::new("clocks", "Lit vertices on a 21164 by its clock: M/s.", &columns);
    for one in all {
        let [generic, special] = one.rates.map(Value::Real);
        table.row(vec![u64::from(one.mhz).into(), generic, special]);
    }
    table.notes.push("The outer cache and memory keep their time.".into());
    table
}

/// The cost of a change of state.
pub(super) fn validation(all: &[ChangeCost]) -> Table {
    let columns = [
        ("machine", Kind::Text),
        ("path", Kind::Text),
        ("instructions a change", Kind::Count),
        ("cycles a change", Kind::Count),
        ("instructions a vertex", Kind::Count),
        ("cycles a vertex", Kind::Count),
        ("vertices that cost as much", Kind::Real(1)),
    ];
    let title = "A change of the material with its validation and a primitive, and a lit vertex, from primitives of 12 and of 192 vertices.";
    let mut table = Table::new("validation", title, &columns);
    for one in all {
        table.row(vec![
            one.machine.into(),
            one.path.into(),
            count(one.change[0]),
            count(one.change[1]),
            count(one.vertex[0]),
            count(one.vertex[1]),
            Value::Real(one.change[1] / one.vertex[1]),
        ]);
    }
    table
}

/// Variants that alternate.
pub(super) fn variants(all: &[VariantCost]) -> Table {
    let columns = [
        ("variants", Kind::Count),
        ("vertices a change", Kind::Count),
        ("path", Kind::Text),
        ("instructions a vertex", Kind::Count),
        ("cycles a vertex", Kind::Count),
        ("instruction misses a vertex", Kind::Real(2)),
    ];
    let mut table = Table::new("variants", "Variants that alternate, on the 21164 at 400 MHz.", &columns);
    for one in all {
        table.row(vec![
            u64::from(one.variants).into(),
            one.every.into(),
            one.path.into(),
            count(one.instructions),
            count(one.cycles),
            Value::Real(one.instruction_misses),
        ]);
    }
    table.notes.push(
        "The change of conditions is counted with the vertices: it costs the same on both paths.".into(),
    );
    table
}

/// The generic path's cycles less the special one's for a vertex, by variants: a chart's table.
pub(super) fn gains(all: &[VariantCost]) -> Table {
    let columns = [
        ("variants", Kind::Text),
        ("12 vertices a change", Kind::Count),
        ("96 vertices a change", Kind::Count),
    ];
    let mut table = Table::new("gains", "Cycles a vertex that special paths save.", &columns);
    for variants in VARIANTS {
        let gain = |every: u64| {
            let of = |path: &str| {
                let is_same =
                    |one: &&VariantCost| (one.variants, one.every, one.path) == (variants, every, path);
                all.iter().find(is_same).map_or(0.0, |one| one.cycles)
            };
            count(of(PATHS[0]) - of(PATHS[1]))
        };
        table.row(vec![variants.to_string().into(), gain(12), gain(96)]);
    }
    table
}

/// The library's growth.
pub(super) fn sizes(all: &[LibrarySize]) -> Table {
    let columns = [
        ("conditions", Kind::Count),
        ("added condition", Kind::Text),
        ("nominal variants", Kind::Count),
        ("distinct", Kind::Count),
        ("used by the viewer", Kind::Count),
        ("its vertices covered", Kind::Percent(0)),
        ("text on Alpha, KB", Kind::Real(1)),
        ("to compile, s", Kind::Real(1)),
        ("text on the host, KB", Kind::Real(1)),
        ("to compile there, s", Kind::Real(1)),
    ];
    let mut table = Table::new("sizes", "Special paths by the number of conditions.", &columns);
    for one in all {
        let added = one.conditions.checked_sub(1).map_or("", |index| CONDITION_NAMES[index as usize]);
        let of = |compiled: Option<super::growth::CompiledPaths>| {
            let text = optional(compiled.map(|paths| paths.text as f64 / 1000.0), Value::Real);
            [text, optional(compiled.map(|paths| paths.seconds), Value::Real)]
        };
        let [alpha_text, alpha_seconds] = of(one.alpha);
        let [text, seconds] = of(one.native);
        table.row(vec![
            u64::from(one.conditions).into(),
            added.into(),
            (1u64 << one.conditions).into(),
            (one.distinct as u64).into(),
            (one.used as u64).into(),
            Value::Real(one.coverage),
            alpha_text,
            alpha_seconds,
            text,
            seconds,
        ]);
    }
    table.notes.push("Seconds are the compiler's processor time on this host.".into());
    table
}

/// The viewer's tests.
pub(super) fn tests(all: &[ViewerResult]) -> Table {
    let machine_columns: Vec<String> = SYSTEMS
        .iter()
        .flat_map(|system| {
            ["client", "generic", "special", "drawn in software"]
                .map(|part| format!("{}: {part}, M cycles", system.label))
        })
        .collect();
    let first = [
        ("test", Kind::Text),
        ("weight", Kind::Percent(0)),
        ("vertices", Kind::Count),
        ("triangles", Kind::Count),
        ("vectors", Kind::Count),
        ("changes of state", Kind::Count),
        ("fragments", Kind::Count),
    ];
    let columns: Vec<_> =
        first.into_iter().chain(machine_columns.iter().map(|name| (name.as_str(), Kind::Real(2)))).collect();
    let mut table = Table::new("tests", "A frame of each of the viewer's tests.", &columns);
    for (test, result) in TESTS.iter().zip(all) {
        let work = &result.work;
        let mut row = vec![test.title.into(), Value::Real(test.weight)];
        row.extend(
            [work.vertices, work.triangles, work.vectors, work.changes, work.fragments].map(Value::from),
        );
        for cycles in &result.cycles {
            let [generic, special] = cycles.geometry;
            row.extend(
                [cycles.client, generic, special, cycles.drawn].map(|cycles| Value::Real(cycles / 1e6)),
            );
        }
        table.row(row);
    }
    table.notes.push("Models and weights are our own. *Generic* and *special* have the client's cycles, too, but nothing is drawn.".into());
    table
}

/// Composites.
pub(super) fn composites(all: &[CompositeRate]) -> Table {
    let columns = [
        ("machine", Kind::Text),
        ("device", Kind::Text),
        ("path", Kind::Text),
        ("composite, frames/s", Kind::Real(1)),
    ];
    let mut table =
        Table::new("composites", "The weighted geometric mean of the tests' frames a second.", &columns);
    for one in all {
        table.row(vec![
            one.machine.into(),
            one.device.as_str().into(),
            one.path.into(),
            Value::Real(one.rate),
        ]);
    }
    table.notes.push("It is in the manner of CDRS, but its models, tests and weights are our own: the numbers cannot be compared.".into());
    table
}

/// The three stages.
pub(super) fn stages(all: &[StageTimes]) -> Table {
    let columns = [
        ("device", Kind::Text),
        ("machine", Kind::Text),
        ("path", Kind::Text),
        ("test", Kind::Text),
        ("client, ms", Kind::Real(2)),
        ("library, ms", Kind::Real(2)),
        ("bus, ms", Kind::Real(2)),
        ("device, ms", Kind::Real(2)),
        ("frames/s", Kind::Real(1)),
        ("limited by", Kind::Text),
    ];
    let mut table = Table::new(
        "stages",
        "A frame as three stages that work side by side, with described devices.",
        &columns,
    );
    for one in all {
        table.row(vec![
            one.device.as_str().into(),
            one.machine.into(),
            PATHS[one.path].into(),
            one.test.into(),
            Value::Real(one.client),
            Value::Real(one.library),
            Value::Real(one.bus),
            Value::Real(one.raster),
            Value::Real(1000.0 / one.frame()),
            one.limit().into(),
        ]);
    }
    table
}

/// The devices.
pub(super) fn devices() -> Table {
    let columns = [
        ("device", Kind::Text),
        ("M triangles/s", Kind::Real(1)),
        ("M vectors/s", Kind::Real(1)),
        ("M texels/s", Kind::Real(0)),
        ("M pixels/s", Kind::Real(0)),
        ("DMA, MB/s", Kind::Real(0)),
        ("bytes a vertex", Kind::Real(0)),
    ];
    let mut table = Table::new("devices", "Devices, as data/graphics/ describes them.", &columns);
    for device in stages::devices() {
        let rates = [
            device.triangles_per_second,
            device.vectors_per_second,
            device.texels_per_second,
            device.pixels_per_second,
        ];
        let mut row: Vec<Value> = vec![device.title.as_str().into()];
        row.extend(rates.map(|rate| Value::Real(rate / 1e6)));
        row.extend([device.dma_megabytes_per_second, device.bytes_per_vertex].map(Value::Real));
        table.row(row);
    }
    table
        .notes
        .push("The paper has triangles, vectors and texels; pixels, DMA and bytes are assumed.".into());
    table
}
