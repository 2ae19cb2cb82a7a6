//! The report of the study as a page.

use report::{Arrangement, Error, Page, PageBlock, PageFigure, PageSection};

use super::NetworkStudy;
use super::linux;
use super::measure::Delivered;
use super::{paths, print, tables};

/// Makes the page.
pub(super) fn page(study: &NetworkStudy) -> Result<Page, Error> {
    let [traditional, dart] = ["traditional", "dart"].map(|name| sent(study, name, 64));
    let bars = tables::delivered_by_adapter(&study.delivered);
    let columns = ["memory's bound", "delivered"];
    let chart = report::bars(&bars, "adapter", &columns, Arrangement::Grouped)?
        .titled("sent-chart", "Sent in packets of 8 KB, Mb/s.")
        .captioned(SENT);
    let mut page = Page {
        title: "Networking without copies".into(),
        headline: format!(
            "Moving data once, DART of 1997 sends {:.0} Mb/s with {:.0} % of a processor and {:.0} % of the memory's bandwidth; \
             a traditional adapter needs {:.0} % and {:.0} % for {:.0}",
            dart.mbps,
            dart.processor,
            dart.memory,
            traditional.processor,
            traditional.memory,
            traditional.mbps
        ),
        lead: LEAD.map(String::from).into(),
        figures: vec![
            PageFigure::rounded(traditional.bound, "Mb/s: memory's bound for five operations a byte"),
            PageFigure::rounded(dart.bound, "Mb/s: for two"),
            PageFigure::rounded(dart.mbps, "Mb/s sent by DART on 64 bits"),
            PageFigure::rounded(traditional.mbps, "Mb/s sent by a traditional adapter"),
        ],
        chart: Some(chart),
        sections: [
            counted_paths(study)?,
            memory(study)?,
            PageSection::of_tables(
                "What each adapter delivers",
                DELIVERED,
                [tables::delivered(&study.delivered)],
            ),
            figure_7(study)?,
            PageSection::of_tables("Table 3", TABLE_3, [tables::table_3(&study.table_3)]),
            load(study)?,
            PageSection::of_tables(
                "DMA or programmed I/O",
                BREAK_EVEN,
                [tables::break_even(&study.break_even), tables::published()],
            ),
            PageSection::of_tables(
                "What each feature is worth alone",
                FEATURES,
                [tables::features(&study.features)],
            ),
            PageSection::of_tables("A packet alone", LATENCY, [tables::latencies(&study.latencies)]),
            PageSection::of_tables("Errors of the print", ERRORS, [print::errors()]),
        ]
        .into_iter()
        .chain(study.replayed().map(|table| PageSection::of_tables("Logs of drivers", LOGS, [table])))
        .collect(),
        provenance: study.provenance.clone(),
    };
    page.sections.extend(linux::section(&study.linux)?);
    Ok(page)
}

/// The result of an adapter that sends.
fn sent<'s>(study: &'s NetworkStudy, adapter: &str, bits: u32) -> &'s Delivered {
    let mut all = study.delivered.iter();
    all.find(|one| one.adapter == adapter && one.bits == bits && one.direction == "send")
        .expect("every adapter is measured on 64 bits")
}

fn counted_paths(study: &NetworkStudy) -> Result<PageSection, Error> {
    let sums = tables::paths_in_sum(&study.paths);
    let tables = [sums.clone(), tables::paths(&study.paths)];
    let Ok(_) = &study.paths else {
        return Ok(PageSection::of_tables("The stack's paths", PATHS, [sums]));
    };
    let chart = report::bars(&sums, "path", &paths::STEPS[1..], Arrangement::Stacked)?
        .titled("paths-chart", "Instructions of the stack for 1,000 bytes, by step.")
        .captioned(PATHS_CHART);
    let mut section = PageSection::of_tables("The stack's paths", PATHS, tables);
    section.blocks.insert(0, PageBlock::Chart(chart));
    Ok(section)
}

fn memory(study: &NetworkStudy) -> Result<PageSection, Error> {
    let table = tables::memory_by_size(&study.memory);
    let columns = ["sent, traditional", "sent, DART", "received, traditional", "received, DART"];
    let chart = report::lines(&table, "buffers, KB", &columns, "operations of memory")?
        .titled("memory-chart", "The memory's operations for a line of data, by the size of buffers.")
        .captioned(MEMORY_CHART);
    let mut section =
        PageSection::of_tables("Memory operations, two ways", MEMORY, [table, tables::memory(&study.memory)]);
    section.blocks.insert(0, PageBlock::Chart(chart));
    Ok(section)
}

fn figure_7(study: &NetworkStudy) -> Result<PageSection, Error> {
    let table = tables::figure_7(&study.figure_7);
    let chart = report::lines(&table, "cells", &["32 bits", "64 bits"], "Mb/s")?
        .titled("figure-7-chart", "Mb/s of cells' payloads by the cells of a packet.")
        .captioned(FIGURE_7);
    let mut section = PageSection::of_tables("Figure 7", DIP, [tables::dip(&study.dip), table]);
    section.blocks.insert(0, PageBlock::Chart(chart));
    Ok(section)
}

fn load(study: &NetworkStudy) -> Result<PageSection, Error> {
    let table = tables::interrupts_by_load(&study.load);
    let columns = ["no hold-off", "50 us", "200 us", "1 ms"];
    let chart = report::lines(&table, "offered, Mb/s", &columns, "interrupts a packet")?
        .titled("interrupts-chart", "Interrupts for a packet by load and hold-off.")
        .captioned(INTERRUPTS);
    let mut section =
        PageSection::of_tables("Interrupts and registers", LOAD, [tables::by_load(&study.load)]);
    section.blocks.insert(0, PageBlock::Chart(chart));
    Ok(section)
}

const LEAD: [&str; 2] = [
    "In 1997 R. J. Walsh described DART, an ATM adapter of 622 Mb/s whose memory is exposed to software: data move once, between the \
     application and the adapter, and hardware sums their checksums. A traditional stack moves each byte five times: it is created, copied \
     (a read and a write), checksummed, and moved by DMA.",
    "Here the adapters are models: the bus, the DMA engine, the memories, cells and credits, interrupts and the driver's register \
     operations, event by event in picoseconds. Figures that the paper gives are exact; what it does not give is assumed, and marked so in \
     `data/adapters/`. The driver's and protocols' time for a packet is assumed, too: 10 us each way in all adapters of 1997.",
];

const SENT: &str = "Memory of 300 MB/s, as in the paper. DART's bound is the link's payload, 542.5 Mb/s; a traditional adapter's is the memory \
     on 64 bits, and the bus on 32, because it reads it cell by cell; that of programmed output the processor, which waits for the bus.";

const PATHS: &str = "A TCP/IP stack in BSD's structure, written for this, in four forms: it copies and sums the data (the paper's Figure 2), \
     leaves the sums to the interface, leaves segmentation to it, too, or leaves the data in DART's memory (Figures 3 and 4). It exchanges \
     them with the host's TCP. Instructions that create data and check them are the application's, and not in the sums.";

const PATHS_CHART: &str =
    "The copy's and the checksum's instructions are what DART saves; its commands are the driver's.";

const MEMORY: &str = "The paper counts five operations of memory for a byte (Figure 2) and two (Figure 3). Caches leave others. What was just \
     created or copied is read again from a cache, so that the copy's and the checksum's reads cost nothing; but a line that is stored to is \
     first filled, and later written back. Of five against two remain four against two, if buffers are larger than the cache; if they are \
     smaller, nothing remains but the device's snoop. When data are received, the device's write takes the line from the caches. A server that \
     passes data from device to device uses memory twice (Figure 5), and not at all if they go from peer to peer (Figure 6).";

const MEMORY_CHART: &str = "Fills, write-backs, and what the device reads from memory and writes to it. The outermost cache has 4 MB; the \
     application and the stack have buffers of this size each.";

const DELIVERED: &str = "The paper's bounds: 300 MB/s by five operations are 480 Mb/s, by two 1,200. The traditional adapter comes to the \
     first when it sends. When it receives, it writes 48 bytes at a time, which are no whole lines: the bridge reads each line before it \
     is written, and less is left. DART is bounded by its link, and leaves half of the memory and most of the processor to the \
     applications. Programmed input is slow: the processor waits for each read. The present-day adapter, with memory of 20 GB/s and \
     25 Gb/s Ethernet, copies once and comes near its link.";

const FIGURE_7: &str = "The chip in its designers' simulation, with packets around an external loop. A packet of 11 cells no longer fits \
     one read of 512 bytes.";

const DIP: &str = "Of the figure the text has only the place of its dip, near 512 bytes. A second read costs an address, 16 cycles of \
     latency and a turnaround. Whether this costs throughput depends on what a packet costs whatever its size: if the bus alone is the \
     bound, the dip is gone from 168 cycles of fixed cost, on both widths (computed below from packets of 480 and 528 bytes). In the \
     simulation the engine also waits for the data memory, so that the dip is another one.";

const TABLE_3: &str = "The print has five figures, and they depend on five quantities that it does not have. That they come out together \
     shows that the model is consistent with them, and no more.";

const INTERRUPTS: &str = "Packets of 1,460 bytes. Below, a packet that comes alone has up to two interrupts: for its summary, and for the \
     completion of its copy.";

const LOAD: &str = "An interrupt's service reads one CSR and writes three, as the paper says, and one more of the second class if no \
     packet comes meanwhile. The hold-off timer makes their number independent of the packets'. The processor's time for a packet is assumed \
     as 5 us here. (The paper's example: 3 MB in packets of 1 KB, 20 an interrupt, are 150 interrupts and one more.)";

const BREAK_EVEN: &str = "DMA reads a command, and data after a latency of 16 cycles; programmed output writes data in as many \
     transactions as the processor's write buffer needs. Both end with a command to transmit. What the buffer combines decides: stores of 4 \
     bytes one by one lose early. Locking an application's pages is counted as bus time here, 7 us for comparison. Below are thresholds of today's systems, which compare the \
     processor's time.";

const FEATURES: &str = "Each row takes one feature away from DART and leaves the others. Mb/s show only what the narrowest part \
     passes; bus cycles, memory traffic and the processor's time show what is saved for others.";

const LATENCY: &str = "One packet, with interrupts that are not held off. *Until sent* ends when the last cell has been read from the \
     adapter's memory; *until delivered* includes the link, the interrupt, the protocols and the application's read. Acknowledgements are \
     packets of 40 bytes: one cell.";

const LOGS: &str = "The driver ran elsewhere, with an adapter that is a program, and wrote down what it told the adapter and which packets came. \
     The model does the same in the same order, and says when.";

const ERRORS: &str = "As far as the paper's own figures show them.";
