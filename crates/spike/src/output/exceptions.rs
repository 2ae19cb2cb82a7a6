//! Exception tables: one for each part of a procedure that has one.

use gimli::constants;

use crate::assemble::{Assembly, Fragment};
use crate::error::Problem;
use crate::exceptions::{CallSiteId, ExceptionTable};
use crate::program::Program;

/// The exception tables of all fragments.
#[derive(Default)]
pub struct ExceptionTables {
    /// The tables, ready to be placed.
    pub bytes: Vec<u8>,
    /// The address of each fragment's table.
    pub addresses: Vec<Option<u64>>,
}

/// Alignment of a table and of its types.
const ALIGN: usize = 4;
/// A distance from its own address, in 32 bits.
const RELATIVE: u8 = constants::DW_EH_PE_pcrel.0 | constants::DW_EH_PE_sdata4.0;

/// Makes the tables. The first one begins at `address`.
pub fn write(
    program: &Program,
    fragments: &[Fragment],
    assembly: &Assembly,
    address: u64,
) -> Result<ExceptionTables, Problem> {
    let mut tables = ExceptionTables::default();
    for (fragment, &extent) in fragments.iter().zip(&assembly.fragments) {
        let frame = program.procedures[fragment.procedure as usize].frame;
        let original = frame.and_then(|frame| program.frames.tables[frame as usize].exceptions);
        let number = original.and_then(|original| program.exceptions.by_address.get(&original));
        let Some(&number) = number.filter(|_| extent.0 < extent.1) else {
            tables.addresses.push(None);
            continue;
        };
        tables.bytes.resize(tables.bytes.len().next_multiple_of(ALIGN), 0);
        let own = address + tables.bytes.len() as u64;
        let table = &program.exceptions.tables[number as usize];
        tables.bytes.extend(encode(program, fragment, assembly, extent, table, own)?);
        tables.addresses.push(Some(own));
    }
    Ok(tables)
}

/// Ranges of a fragment with the same call site, as distances from its beginning.
fn call_sites(
    program: &Program,
    fragment: &Fragment,
    assembly: &Assembly,
    (start, end): (u64, u64),
) -> Vec<(u64, u64, CallSiteId)> {
    let address = |block: &u32| assembly.block_addresses[*block as usize];
    let ends = fragment.blocks.iter().skip(1).map(address).chain([end]);
    let mut all: Vec<(u64, u64, CallSiteId)> = Vec::new();
    for (block, end) in fragment.blocks.iter().zip(ends) {
        let Some(site) = program.blocks[*block as usize].call_site else { continue };
        let (from, to) = (address(block) - start, end - start);
        match all.last_mut() {
            Some(last) if last.1 == from && last.2 == site => last.1 = to,
            _ if from < to => all.push((from, to, site)),
            _ => {}
        }
    }
    all
}

fn encode(
    program: &Program,
    fragment: &Fragment,
    assembly: &Assembly,
    extent: (u64, u64),
    table: &ExceptionTable,
    address: u64,
) -> Result<Vec<u8>, Problem> {
    let sites = call_sites(program, fragment, assembly, extent);
    let pad = |site: CallSiteId| {
        let block = program.exceptions.call_sites[site as usize].landing_pad?;
        Some(assembly.block_addresses[block as usize])
    };
    let distance = |to: u64, from: u64| {
        let distance = i32::try_from(to.wrapping_sub(from) as i64);
        distance.map_err(|_| Problem::OutOfReach { from, to })
    };
    // Landing pads may lie anywhere, but not at their base: 0 stands for none.
    let base = sites.iter().filter_map(|site| pad(site.2)).min().map(|first| first - 4);
    let mut bytes = Vec::new();
    match base {
        None => bytes.push(constants::DW_EH_PE_omit.0),
        Some(base) => {
            bytes.push(RELATIVE);
            bytes.extend(distance(base, address + 1)?.to_le_bytes());
        }
    }
    let mut entries = Vec::new();
    for &(from, to, site) in &sites {
        let landing = pad(site).map_or(0, |pad| pad - base.unwrap_or_default());
        for value in [from, to - from, landing, program.exceptions.call_sites[site as usize].action] {
            unsigned(&mut entries, value);
        }
    }
    let mut body = vec![constants::DW_EH_PE_uleb128.0];
    unsigned(&mut body, entries.len() as u64);
    body.extend(entries);
    body.extend(&table.actions);
    bytes.push(table.type_encoding);
    if table.type_encoding == constants::DW_EH_PE_omit.0 {
        bytes.extend(body);
        return Ok(bytes);
    }
    let before = bytes.len() + DISTANCE_BYTES;
    let types = (before + body.len()).next_multiple_of(ALIGN) - before;
    body.resize(types, 0);
    let width = table.type_width();
    bytes.extend(fixed((types + table.types.len() * width) as u64));
    bytes.extend(body);
    for &target in table.types.iter().rev() {
        let at = address + bytes.len() as u64;
        let value = if target == 0 { 0 } else { distance(target, at)? };
        match width {
            4 => bytes.extend(value.to_le_bytes()),
            _ => bytes.extend(i64::from(value).to_le_bytes()),
        }
    }
    bytes.extend(&table.specifications);
    Ok(bytes)
}

fn unsigned(bytes: &mut Vec<u8>, value: u64) {
    // Writing to memory does not fail.
    let _ = gimli::leb128::write::unsigned(bytes, value);
}

/// Bytes of a number of fixed length.
const DISTANCE_BYTES: usize = 4;

/// A number in as many bytes as any distance within a table needs, as what follows is aligned.
fn fixed(value: u64) -> [u8; DISTANCE_BYTES] {
    std::array::from_fn(|index| {
        let more = if index + 1 < DISTANCE_BYTES { 0x80 } else { 0 };
        (value >> (7 * index)) as u8 & 0x7f | more
    })
}
