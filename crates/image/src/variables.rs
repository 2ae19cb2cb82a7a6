//! Variables at fixed addresses: their names, types and shapes, by the image's debug information.

use std::cell::Cell;

use gimli::{
    AttributeValue, Dwarf, DwarfSections, EndianSlice, Error, LittleEndian, Operation, Unit, UnitOffset,
    constants as dw,
};

use crate::demangle::demangle;
use crate::dwarf::{DwarfEntry, DwarfSlice};
use crate::symbols::Symbol;

/// A variable, or other data with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the source; without debug information its symbol, demangled.
    pub name: String,
    /// The function, module or common block that it is in.
    pub scope: Option<String>,
    /// Link-time address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Its element type, if that is known.
    pub element: Option<Element>,
    /// Elements along each dimension, as the source has them; empty unless it is an array.
    pub shape: Vec<u64>,
    /// Whether elements whose first index differs by one lie next to each other, and not those with the last.
    pub is_column_major: bool,
}

/// The type of an array's elements, or of a variable that is no array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its name in the source.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// The members of a structure, ascending by their offsets, with those of structures in it. Unions have none, as it is not
    /// known which of their members is in use.
    pub members: Vec<StructureMember>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureMember {
    /// Its name, with those of the structures that it is in: `header.length`.
    pub name: String,
    /// Its distance from the beginning of the structure in bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

impl Element {
    /// The index of the member that a byte of the structure belongs to.
    pub fn member_at(&self, offset: u64) -> Option<usize> {
        let index = self.members.partition_point(|member| member.offset <= offset).checked_sub(1)?;
        let member = &self.members[index];
        (offset - member.offset < member.size).then_some(index)
    }
}

impl Variable {
    /// First address after it.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// Types may refer to types so often: a damaged file may have them refer to themselves.
const LONGEST_CHAIN: usize = 32;
/// The greatest number of members that are read in a unit: in a damaged file structures may contain themselves.
const MOST_MEMBERS: usize = 1 << 16;
/// How deep structures may be within structures.
const DEEPEST: u32 = 16;
/// The greatest number of dimensions: Fortran's limit.
const MOST_DIMENSIONS: usize = 15;

/// The variables that do not overlap, ascending: those of debug information, and what else symbols name.
pub(crate) fn read<'a>(
    section: impl Fn(&str) -> Option<&'a [u8]>,
    symbols: impl Iterator<Item = &'a Symbol>,
) -> Vec<Variable> {
    let mut known = described(section).unwrap_or_default();
    // Of variables at the same address, the largest contains the others.
    known.sort_by(|a, b| (a.address, b.size, &a.name).cmp(&(b.address, a.size, &b.name)));
    let mut variables = disjoint(known);
    let is_new = |symbol: &&Symbol| {
        let before = variables.partition_point(|variable| variable.end() <= symbol.address);
        variables.get(before).is_none_or(|next| next.address >= symbol.address.saturating_add(symbol.size))
    };
    let mut named: Vec<Variable> = symbols.filter(is_new).map(Variable::of_symbol).collect();
    named.append(&mut variables);
    named.sort_by(|a, b| (a.address, b.size, &a.name).cmp(&(b.address, a.size, &b.name)));
    disjoint(named)
}

/// Removes variables that begin within another one.
fn disjoint(mut variables: Vec<Variable>) -> Vec<Variable> {
    let mut end = 0;
    variables.retain(|variable| {
        let is_free = variable.address >= end && variable.size > 0;
        end = if is_free { variable.end() } else { end };
        is_free
    });
    variables
}

impl Variable {
    /// Without a type.
    fn new(name: String, scope: Option<String>, address: u64) -> Variable {
        let (element, shape) = (None, Vec::new());
        Variable { name, scope, address, size: 0, element, shape, is_column_major: false }
    }

    fn of_symbol(symbol: &Symbol) -> Variable {
        let name = demangle(&symbol.name).into_owned();
        Variable { size: symbol.size, ..Variable::new(name, None, symbol.address) }
    }
}

fn described<'a>(section: impl Fn(&str) -> Option<&'a [u8]>) -> Result<Vec<Variable>, Error> {
    let load =
        |id: gimli::SectionId| -> Result<&'a [u8], Error> { Ok(section(id.name()).unwrap_or_default()) };
    let sections = DwarfSections::load(load)?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut variables = Vec::new();
    let mut units = dwarf.units();
    // Units after a damaged one cannot be found; a damaged entry ends its unit.
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            let types = UnitTypes { dwarf: &dwarf, unit: &unit, members_left: Cell::new(MOST_MEMBERS) };
            let _ = types.variables(&mut variables);
        }
    }
    Ok(variables)
}

/// A unit of debug information.
struct UnitTypes<'a, 'd> {
    dwarf: &'d Dwarf<DwarfSlice<'a>>,
    unit: &'d Unit<DwarfSlice<'a>>,
    /// How many members may still be read.
    members_left: Cell<usize>,
}

impl<'a> UnitTypes<'a, '_> {
    fn variables(&self, variables: &mut Vec<Variable>) -> Result<(), Error> {
        // The names of the enclosing entries, by depth.
        let mut scopes: Vec<(isize, String)> = Vec::new();
        let mut entries = self.unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            while scopes.last().is_some_and(|(depth, _)| *depth >= entry.depth()) {
                scopes.pop();
            }
            match entry.tag() {
                dw::DW_TAG_subprogram
                | dw::DW_TAG_module
                | dw::DW_TAG_common_block
                | dw::DW_TAG_namespace => {
                    scopes.extend(self.name(entry).map(|name| (entry.depth(), name)));
                }
                dw::DW_TAG_variable => {
                    let scope = scopes.last().map(|(_, name)| name.clone());
                    variables.extend(self.variable(entry, scope));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn variable(&self, entry: &DwarfEntry<'a>, scope: Option<String>) -> Option<Variable> {
        let address = self.address(entry)?;
        // A definition refers to the declaration that has the rest.
        let reference =
            entry.attr_value(dw::DW_AT_specification).or(entry.attr_value(dw::DW_AT_abstract_origin));
        let declared = reference.and_then(|value| self.entry(value));
        let either = [Some(entry), declared.as_ref()];
        let name = either.iter().flatten().find_map(|entry| self.name(entry))?;
        let of = either.iter().flatten().find_map(|entry| entry.attr_value(dw::DW_AT_type))?;
        let mut variable = Variable::new(name, scope, address);
        self.complete(&mut variable, of, 0)?;
        Some(variable)
    }

    /// Follows the type of a variable, or of a member at this depth of structures.
    fn complete(
        &self,
        variable: &mut Variable,
        of: AttributeValue<DwarfSlice<'a>>,
        depth: u32,
    ) -> Option<()> {
        let mut of = Some(of);
        for _ in 0..LONGEST_CHAIN {
            let entry = self.entry(of?)?;
            of = entry.attr_value(dw::DW_AT_type);
            match entry.tag() {
                dw::DW_TAG_array_type => {
                    let order = entry.attr_value(dw::DW_AT_ordering);
                    variable.is_column_major |=
                        self.is_fortran() || order == Some(AttributeValue::Ordering(dw::DW_ORD_col_major));
                    self.dimensions(entry.offset(), &mut variable.shape);
                }
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => {}
                tag => {
                    let size = entry.attr_value(dw::DW_AT_byte_size).and_then(|size| size.udata_value());
                    let size = match tag {
                        dw::DW_TAG_pointer_type => size.unwrap_or(8),
                        _ => size?,
                    };
                    let name = self.name(&entry).unwrap_or_else(|| kind(tag).into());
                    variable.size =
                        variable.shape.iter().fold(size, |size, &count| size.saturating_mul(count));
                    let is_structure = matches!(tag, dw::DW_TAG_structure_type | dw::DW_TAG_class_type);
                    let members = if is_structure { self.members(entry.offset(), depth) } else { Vec::new() };
                    variable.element = Some(Element { name, size, members });
                    return Some(());
                }
            }
        }
        None
    }

    /// The members of a structure.
    fn members(&self, structure: UnitOffset, depth: u32) -> Vec<StructureMember> {
        let mut members = Vec::new();
        let Ok(mut tree) = self.unit.entries_tree(Some(structure)) else { return members };
        let Ok(root) = tree.root() else { return members };
        let mut children = root.children();
        while let (Ok(Some(child)), true) = (children.next(), depth < DEEPEST && self.members_left.get() > 0)
        {
            let entry = child.entry();
            let is_member = matches!(entry.tag(), dw::DW_TAG_member | dw::DW_TAG_inheritance);
            if is_member && self.member(entry, depth, &mut members).is_some() {
                self.members_left.set(self.members_left.get().saturating_sub(1));
            }
        }
        members.sort_by_key(|member| member.offset);
        members
    }

    /// Adds a member, or the members of the structure that it is.
    fn member(&self, entry: &DwarfEntry<'a>, depth: u32, members: &mut Vec<StructureMember>) -> Option<()> {
        let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
        let offset = match number(dw::DW_AT_data_member_location) {
            Some(offset) => offset,
            None => number(dw::DW_AT_data_bit_offset)? / 8,
        };
        let name = self.name(entry).unwrap_or_default();
        let mut own = Variable::new(name, None, offset);
        self.complete(&mut own, entry.attr_value(dw::DW_AT_type)?, depth + 1)?;
        let inner = own.element.take().filter(|element| own.shape.is_empty() && !element.members.is_empty());
        match inner {
            Some(structure) => members.extend(structure.members.into_iter().map(|inner| StructureMember {
                name: if own.name.is_empty() { inner.name } else { format!("{}.{}", own.name, inner.name) },
                offset: offset.saturating_add(inner.offset),
                ..inner
            })),
            None => members.push(StructureMember { name: own.name, offset, size: own.size }),
        }
        Some(())
    }

    /// Adds the numbers of elements along an array's dimensions.
    fn dimensions(&self, array: UnitOffset, shape: &mut Vec<u64>) {
        let Ok(mut tree) = self.unit.entries_tree(Some(array)) else { return };
        let Ok(root) = tree.root() else { return };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            if entry.tag() == dw::DW_TAG_subrange_type && shape.len() < MOST_DIMENSIONS {
                shape.push(self.count(entry).unwrap_or(0));
            }
        }
    }

    /// How many elements a dimension has, if that is constant.
    fn count(&self, entry: &DwarfEntry<'a>) -> Option<u64> {
        let number = |name| {
            let value: AttributeValue<DwarfSlice> = entry.attr_value(name)?;
            // Without a sign what fits: compilers write bounds below zero with one.
            value.udata_value().map(u64::cast_signed).or(value.sdata_value())
        };
        if let Some(count) = number(dw::DW_AT_count) {
            return u64::try_from(count).ok();
        }
        let lower = number(dw::DW_AT_lower_bound).unwrap_or(i64::from(self.is_fortran()));
        let upper = number(dw::DW_AT_upper_bound)?;
        u64::try_from(upper.checked_sub(lower)?.checked_add(1)?).ok()
    }

    /// Fortran's indices begin with 1.
    fn is_fortran(&self) -> bool {
        let Ok(root) = self.unit.entry(self.unit.header.root_offset()) else { return false };
        let fortran = [
            dw::DW_LANG_Fortran77,
            dw::DW_LANG_Fortran90,
            dw::DW_LANG_Fortran95,
            dw::DW_LANG_Fortran03,
            dw::DW_LANG_Fortran08,
            dw::DW_LANG_Fortran18,
        ];
        matches!(root.attr_value(dw::DW_AT_language),
            Some(AttributeValue::Language(language)) if fortran.contains(&language))
    }

    fn entry(&self, reference: AttributeValue<DwarfSlice<'a>>) -> Option<DwarfEntry<'a>> {
        let AttributeValue::UnitRef(offset) = reference else { return None };
        self.unit.entry(offset).ok()
    }

    fn name(&self, entry: &DwarfEntry<'a>) -> Option<String> {
        let name = self.dwarf.attr_string(self.unit, entry.attr_value(dw::DW_AT_name)?).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The address of a variable that is at a fixed one.
    fn address(&self, entry: &DwarfEntry<'a>) -> Option<u64> {
        let AttributeValue::Exprloc(expression) = entry.attr_value(dw::DW_AT_location)? else { return None };
        let mut operations = expression.operations(self.unit.encoding());
        let base = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok()?,
            _ => return None,
        };
        match operations.next().ok()? {
            None => Some(base),
            Some(Operation::PlusConstant { value }) => base.checked_add(value),
            Some(_) => None,
        }
    }
}

/// The name of a type without a name.
fn kind(tag: gimli::DwTag) -> &'static str {
    match tag {
        dw::DW_TAG_pointer_type => "pointer",
        dw::DW_TAG_structure_type => "struct",
        dw::DW_TAG_union_type => "union",
        dw::DW_TAG_enumeration_type => "enum",
        _ => "?",
    }
}
