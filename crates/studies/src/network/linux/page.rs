//! The page's section on Linux.

use std::cmp::Reverse;

use report::{Arrangement, Error, PageBlock, PageSection};
use table::{Kind, Table, Value};

use super::measured::LinuxTransfer;
use super::tables;

/// The section of the transfers; none if they are left out.
pub fn section(transfers: &[LinuxTransfer]) -> Result<Option<PageSection>, Error> {
    if transfers.is_empty() {
        return Ok(None);
    }
    let (table, names) = kernel_components(transfers);
    let chart = report::bars(&table, "interfaces and call", &names, Arrangement::Stacked)?
        .titled("linux-chart", "Linux 6.1: instructions of the kernel a byte, by component.")
        .captioned(CHART);
    Ok(Some(PageSection {
        heading: "Linux beside it".into(),
        blocks: vec![
            PageBlock::Paragraph(TEXT.into()),
            PageBlock::Chart(chart),
            PageBlock::Table(tables::ladder(transfers)),
            PageBlock::Table(tables::components(transfers)),
        ],
    }))
}

/// Instructions a byte of the kernel's components, the largest first, and their names.
fn kernel_components(transfers: &[LinuxTransfer]) -> (Table, Vec<&str>) {
    let mut names: Vec<&str> = tables::component_names(transfers).into_iter().collect();
    names.retain(|&name| name != "transfer");
    names.sort_by_key(|name| Reverse(transfers.iter().map(|one| one.component(name)[0]).sum::<u64>()));
    let columns: Vec<(&str, Kind)> = std::iter::once(("interfaces and call", Kind::Text))
        .chain(names.iter().map(|&name| (name, Kind::Real(2))))
        .collect();
    let mut table = Table::new("linux-bars", "", &columns);
    for one in transfers {
        let bytes = one.part.bytes as f64;
        let mut row: Vec<Value> = vec![one.step.name().into()];
        row.extend(names.iter().map(|name| Value::from(one.component(name)[0] as f64 / bytes)));
        table.row(row);
    }
    (table, names)
}

const TEXT: &str = "An unmodified Linux 6.1 for Alpha on a whole system (`pathlength system`). Two cards on one hub are in two namespaces of one \
     guest; a program in each sends and receives 1 MiB over TCP, after 1 MiB by which the connection warms up. Everything is counted that both \
     programs and the kernel execute, sending, receiving and acknowledging.";

const CHART: &str = "tulip is DEC's own card, which sums no checksums and takes each packet in one piece; e1000 divides and sums; virtio has no \
     offloads on a hub; veth is no card, but a pair of the kernel's own interfaces. DMA is not among the caches' accesses.";
