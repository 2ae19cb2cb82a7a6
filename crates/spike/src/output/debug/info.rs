//! The entries of `.debug_info`, changed in place.

use gimli::{
    AbbreviationsCache, Attribute, AttributeValue, DebugAbbrev, DebugAddr, DebugAddrBase, DebugInfo, DwTag,
    Encoding, Expression, Format, LittleEndian, LocationLists, LocationListsOffset, Operation, RangeLists,
    RangeListsOffset, UnitHeader, UnitType, constants,
};

use super::abbreviations::AbbreviationWriter;
use super::input::{damaged, section};
use super::lines::LineTableWriter;
use super::lists::{ListKind, ListWriter};
use super::moves::Moves;
use crate::elf::Elf;
use crate::section_bytes::SectionBytes;

/// Makes all sections that refer to code.
pub fn rewrite(elf: &Elf, moves: &Moves) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let read = |name| SectionBytes::new(section(elf, name), LittleEndian);
    let info = DebugInfo::from(read(".debug_info"));
    let mut rewriter = Rewriter {
        moves,
        lines_section: section(elf, ".debug_line"),
        range_lists: RangeLists::new(read(".debug_ranges").into(), read(".debug_rnglists").into()),
        location_lists: LocationLists::new(read(".debug_loc").into(), read(".debug_loclists").into()),
        out: section(elf, ".debug_info").to_vec(),
        lines: LineTableWriter::default(),
        ranges: ListWriter::new(ListKind::Ranges),
        locations: ListWriter::new(ListKind::Locations),
    };
    let table = DebugAbbrev::from(read(".debug_abbrev"));
    let cache = AbbreviationsCache::new();
    let mut abbreviations = AbbreviationWriter::default();
    let failed = damaged(".debug_info");
    let mut units = info.units();
    while let Some(unit) = units.next().map_err(&failed)? {
        let original = unit.debug_abbrev_offset();
        let new = abbreviations.table(section(elf, ".debug_abbrev"), original.0)?;
        let parsed = cache.get(&table, original).map_err(damaged(".debug_abbrev"))?;
        rewriter.unit(&unit, &parsed, new as u32)?;
    }
    let Rewriter { out, lines, ranges, locations, .. } = rewriter;
    let [new_ranges, old_ranges] = ranges.finish();
    let [new_locations, old_locations] = locations.finish();
    let sections = [
        (".debug_info", Some(out)),
        (".debug_abbrev", Some(abbreviations.bytes)),
        (".debug_line", Some(lines.bytes)),
        (".debug_rnglists", new_ranges),
        (".debug_ranges", old_ranges),
        (".debug_loclists", new_locations),
        (".debug_loc", old_locations),
    ];
    let present = sections.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)));
    Ok(present.filter(|(_, bytes)| !bytes.is_empty()).collect())
}

struct Rewriter<'a> {
    moves: &'a Moves<'a>,
    lines_section: &'a [u8],
    range_lists: RangeLists<SectionBytes<'a>>,
    location_lists: LocationLists<SectionBytes<'a>>,
    out: Vec<u8>,
    lines: LineTableWriter,
    ranges: ListWriter,
    locations: ListWriter,
}

/// An attribute of an entry, and where its bytes end in the section.
type PlacedAttribute<'a> = (Attribute<SectionBytes<'a>>, usize);

impl<'a> Rewriter<'a> {
    fn unit(
        &mut self,
        unit: &UnitHeader<SectionBytes<'a>>,
        abbreviations: &gimli::Abbreviations,
        new_abbreviations: u32,
    ) -> Result<(), String> {
        let failed = damaged(".debug_info");
        let start = unit.offset().0;
        let encoding = unit.encoding();
        if encoding.format != Format::Dwarf32
            || encoding.address_size != 8
            || !(2..=5).contains(&encoding.version)
        {
            return Err("a unit of an unusual form".into());
        }
        if matches!(
            unit.type_(),
            UnitType::Skeleton(_) | UnitType::SplitCompilation(_) | UnitType::SplitType { .. }
        ) {
            return Err("split debug information is not supported".into());
        }
        let offset = start + if encoding.version >= 5 { 8 } else { 6 };
        self.put(offset, &new_abbreviations.to_le_bytes());
        let mut entries = unit.entries_raw(abbreviations, None).map_err(&failed)?;
        let mut base = None;
        let mut attributes: Vec<PlacedAttribute> = Vec::new();
        while !entries.is_empty() {
            let Some(abbreviation) = entries.read_abbreviation().map_err(&failed)? else { continue };
            attributes.clear();
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(specification).map_err(&failed)?;
                attributes.push((attribute, start + entries.next_offset().0));
            }
            let base = *base.get_or_insert_with(|| lowest(&attributes).unwrap_or(0));
            self.entry(abbreviation.tag(), &attributes, encoding, base)?;
        }
        Ok(())
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        // The offset is that of something that was read.
        self.out[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn entry(
        &mut self,
        tag: DwTag,
        attributes: &[PlacedAttribute<'a>],
        encoding: Encoding,
        base: u64,
    ) -> Result<(), String> {
        let high = attributes.iter().find(|one| one.0.name() == constants::DW_AT_high_pc);
        for &(attribute, end) in attributes {
            match (attribute.name(), attribute.value()) {
                (constants::DW_AT_low_pc, AttributeValue::Addr(low)) if high.is_some() => {
                    let high = match high.map(|one| one.0.value()) {
                        Some(AttributeValue::Addr(high)) => high,
                        Some(value) => {
                            low.wrapping_add(value.udata_value().ok_or("an unusual highest address")?)
                        }
                        None => low,
                    };
                    let ranges = self.moves.ranges(low, high);
                    let entries: Vec<_> = ranges.iter().map(|&range| (range, [].as_slice())).collect();
                    let offset = self.ranges.add(encoding.version, &entries)?;
                    self.put(end - 8, &offset.to_le_bytes());
                    self.put(end - 4, &[0; 4]);
                }
                (name, AttributeValue::Addr(address)) => {
                    let is_return =
                        name == constants::DW_AT_call_return_pc || tag == constants::DW_TAG_GNU_call_site;
                    let after = self.moves.after_call(address).filter(|_| is_return);
                    if let Some(address) = after.or_else(|| self.moves.address(address)) {
                        self.put(end - 8, &address.to_le_bytes());
                    }
                }
                (_, AttributeValue::DebugLineRef(offset)) => {
                    let offset = self.lines.table(self.lines_section, offset.0, self.moves)?;
                    self.put(end - 4, &offset.to_le_bytes());
                }
                (_, AttributeValue::RangeListsRef(offset)) => {
                    let offset = self.range_list(RangeListsOffset(offset.0), encoding, base)?;
                    self.put(end - 4, &offset.to_le_bytes());
                }
                (constants::DW_AT_GNU_locviews, _) => {}
                (_, AttributeValue::LocationListsRef(offset)) => {
                    let offset = self.location_list(offset, encoding, base)?;
                    self.put(end - 4, &offset.to_le_bytes());
                }
                (_, AttributeValue::Exprloc(expression)) => {
                    for (offset, address) in self.code_addresses(expression, encoding)? {
                        self.put(end - expression.0.len() + offset, &address.to_le_bytes());
                    }
                }
                (
                    _,
                    AttributeValue::DebugAddrIndex(_)
                    | AttributeValue::DebugLocListsIndex(_)
                    | AttributeValue::DebugRngListsIndex(_),
                ) => return Err("indexed addresses and lists are not supported".into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn range_list(
        &mut self,
        offset: RangeListsOffset<usize>,
        encoding: Encoding,
        base: u64,
    ) -> Result<u32, String> {
        let failed = damaged("lists of ranges");
        let none = DebugAddr::from(SectionBytes::new(&[], LittleEndian));
        let list = self.range_lists.ranges(offset, encoding, base, &none, DebugAddrBase(0));
        let mut list = list.map_err(&failed)?;
        let mut ranges = Vec::new();
        while let Some(range) = list.next().map_err(&failed)? {
            ranges.extend(self.moves.ranges(range.begin, range.end));
        }
        let entries: Vec<_> = ranges.iter().map(|&range| (range, [].as_slice())).collect();
        self.ranges.add(encoding.version, &entries)
    }

    fn location_list(
        &mut self,
        offset: LocationListsOffset<usize>,
        encoding: Encoding,
        base: u64,
    ) -> Result<u32, String> {
        let failed = damaged("lists of locations");
        let none = DebugAddr::from(SectionBytes::new(&[], LittleEndian));
        let list = self.location_lists.locations(offset, encoding, base, &none, DebugAddrBase(0));
        let mut list = list.map_err(&failed)?;
        let mut entries: Vec<((u64, u64), Vec<u8>)> = Vec::new();
        while let Some(entry) = list.next().map_err(&failed)? {
            let mut location = entry.data.0.slice().to_vec();
            for (offset, address) in self.code_addresses(entry.data, encoding)? {
                location[offset..offset + 8].copy_from_slice(&address.to_le_bytes());
            }
            let ranges = self.moves.ranges(entry.range.begin, entry.range.end);
            entries.extend(ranges.into_iter().map(|range| (range, location.clone())));
        }
        let entries: Vec<_> = entries.iter().map(|(range, location)| (*range, location.as_slice())).collect();
        self.locations.add(encoding.version, &entries)
    }

    /// Addresses of code in an expression: offsets in it, and new addresses.
    fn code_addresses(
        &self,
        expression: Expression<SectionBytes<'a>>,
        encoding: Encoding,
    ) -> Result<Vec<(usize, u64)>, String> {
        if !expression.0.slice().contains(&constants::DW_OP_addr.0) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut operations = expression.operations(encoding);
        while let Some(operation) = operations.next().map_err(damaged("a location"))? {
            if let Operation::Address { address } = operation
                && let Some(address) = self.moves.address(address)
            {
                found.push((operations.offset_from(&expression) - 8, address));
            }
        }
        Ok(found)
    }
}

/// The lowest address that an entry gives.
fn lowest(attributes: &[PlacedAttribute]) -> Option<u64> {
    let low = attributes.iter().find(|one| one.0.name() == constants::DW_AT_low_pc)?;
    match low.0.value() {
        AttributeValue::Addr(address) => Some(address),
        _ => None,
    }
}
