//! Tables of Linux's transfers.

use std::collections::BTreeSet;

use table::{Kind, Table, Value};

use super::measured::{LinuxTransfer, MACHINE};

/// The components of the ladder's columns; all others are its last one.
const SHOWN: [&str; 5] = ["copy", "copy with checksum", "checksum", "segmentation", "driver"];
/// Functions of each transfer that have rows.
const FUNCTIONS: usize = 25;

/// Instructions of both programs' kernel for a packet and a byte.
pub fn ladder(transfers: &[LinuxTransfer]) -> Table {
    let mut columns = vec![
        ("interfaces and call", Kind::Text),
        ("packets", Kind::Count),
        ("kernel, instructions a packet", Kind::Real(0)),
        ("kernel, instructions a byte", Kind::Real(2)),
    ];
    columns.extend(SHOWN.map(|name| (name, Kind::Real(2))));
    columns.extend([("other", Kind::Real(2)), ("programs, instructions a byte", Kind::Real(2))]);
    let title =
        "Linux 6.1: instructions to send and to receive a byte of 1 MiB, of both programs and the kernel.";
    let mut table = Table::new("linux-ladder", title, &columns);
    for transfer in transfers {
        let total = transfer.total()[0];
        let programs = transfer.component("transfer")[0];
        let (bytes, packets) = (transfer.part.bytes as f64, transfer.part.packets());
        let kernel = (total - programs) as f64;
        let shown = SHOWN.map(|name| transfer.component(name)[0]);
        let other = kernel - shown.iter().sum::<u64>() as f64;
        let mut row: Vec<Value> = vec![
            transfer.step.name().into(),
            packets.into(),
            (kernel / packets as f64).into(),
            (kernel / bytes).into(),
        ];
        row.extend(shown.map(|count| Value::from(count as f64 / bytes)));
        row.extend([Value::from(other / bytes), Value::from(programs as f64 / bytes)]);
        table.row(row);
    }
    table.notes.push(
        "Packets are those of the sender's card in both directions. Without segmentation by the card the kernel divides large \
         segments itself; without lists of buffers it copies while it does."
            .into(),
    );
    for transfer in transfers {
        if let Some([copied, calls]) = transfer.part.copied {
            table.notes.push(format!(
                "{}: the kernel says of {copied} of {calls} calls that it copied the data.",
                transfer.step.name()
            ));
        }
    }
    table
}

/// The components of all transfers, by name.
pub fn component_names(transfers: &[LinuxTransfer]) -> BTreeSet<&str> {
    transfers.iter().flat_map(|one| one.components.iter().map(|(name, _)| name.as_str())).collect()
}

/// All counts by component of the kernel.
pub fn components(transfers: &[LinuxTransfer]) -> Table {
    let names = component_names(transfers);
    let mut table = Table::new(
        "linux-components",
        format!("Linux by component: instructions, and misses of the caches of {MACHINE}."),
        &[
            ("interfaces and call", Kind::Text),
            ("component", Kind::Text),
            ("instructions a packet", Kind::Real(1)),
        ],
    );
    add_count_columns(&mut table, transfers);
    for transfer in transfers {
        let packets = transfer.part.packets() as f64;
        for name in &names {
            let counts = transfer.component(name);
            let mut row: Vec<Value> =
                vec![transfer.step.name().into(), (*name).into(), (counts[0] as f64 / packets).into()];
            row.extend(counts.into_iter().map(Value::from));
            table.row(row);
        }
    }
    table
}

/// The functions with the most instructions.
pub fn functions(transfers: &[LinuxTransfer]) -> Table {
    let mut table = Table::new(
        "linux-functions",
        format!("Linux by function: the {FUNCTIONS} with the most instructions of each transfer."),
        &[("interfaces and call", Kind::Text), ("function", Kind::Text), ("image", Kind::Text)],
    );
    add_count_columns(&mut table, transfers);
    for transfer in transfers {
        for (name, counts) in transfer.functions.iter().take(FUNCTIONS) {
            let mut row: Vec<Value> =
                vec![transfer.step.name().into(), name.function.as_str().into(), name.image.as_str().into()];
            row.extend(counts.iter().map(|&count| Value::from(count)));
            table.row(row);
        }
    }
    table
}

/// Columns of the counts; all transfers have the same.
fn add_count_columns(table: &mut Table, transfers: &[LinuxTransfer]) {
    let names = transfers.first().into_iter().flat_map(|transfer| &transfer.columns);
    table.columns.extend(names.map(|name| table::Column { name: name.clone(), kind: Kind::Count }));
}

/// Caches and TLBs of each transfer.
pub fn structures(transfers: &[LinuxTransfer]) -> Table {
    let mut table = Table::new(
        "linux-structures",
        format!("Caches and TLBs of {MACHINE} in Linux's transfers."),
        &[("interfaces and call", Kind::Text)],
    );
    for transfer in transfers {
        let own = &transfer.structures;
        if table.columns.len() == 1 {
            table.columns.extend(own.columns[1..].iter().cloned());
        }
        for row in &own.rows {
            let mut cells: Vec<Value> = vec![transfer.step.name().into()];
            cells.extend(row[1..].iter().cloned());
            table.row(cells);
        }
    }
    table
}
