//! The types of debug information: of a function's parameters, of members, of what pointers point at.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, Error, LittleEndian, Unit, UnitHeader,
    UnitOffset, constants as dw,
};

pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(super) type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// Types may refer to types so often: a damaged file may have them refer to themselves.
const LONGEST_CHAIN: usize = 32;
/// How deep structures without names may be within structures.
const DEEPEST: usize = 16;
/// The most members, parameters or enumerators of a type that are read.
const MOST_CHILDREN: usize = 1 << 14;

/// The debug information of an image.
pub(super) struct Types<'a, 'd> {
    pub(super) dwarf: &'d Dwarf<Slice<'a>>,
    units: Vec<TypeUnit<'a>>,
}

struct TypeUnit<'a> {
    header: UnitHeader<Slice<'a>>,
    parsed: OnceCell<Option<Unit<Slice<'a>>>>,
    /// The addresses of its code.
    code: Vec<Range<u64>>,
}

/// A type, by its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeRef {
    unit: usize,
    entry: UnitOffset,
}

/// What a type is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A number of so many bytes.
    Number { bytes: u64, is_signed: bool },
    /// A character.
    Character,
    /// A number with names.
    Enumeration { bytes: u64, names: Arc<[(i64, String)]> },
    /// A pointer; void's points at nothing.
    Pointer(Option<TypeRef>),
    /// So many elements, if that is known.
    Array(TypeRef, Option<u64>),
    /// A structure or a union, by its entry.
    Structure(TypeRef),
    /// Something else.
    Other,
}

/// A member of a structure.
pub(super) struct TypedMember {
    pub(super) offset: u64,
    pub(super) of: TypeRef,
}

impl<'a, 'd> Types<'a, 'd> {
    pub(super) fn new(dwarf: &'d Dwarf<Slice<'a>>) -> Types<'a, 'd> {
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        // Units after a damaged one cannot be found.
        while let Ok(Some(header)) = headers.next() {
            let unit = dwarf.unit(header).ok();
            let mut code = Vec::new();
            if let Some(unit) = &unit
                && let Ok(mut ranges) = dwarf.unit_ranges(unit)
            {
                while let Ok(Some(range)) = ranges.next() {
                    code.push(range.begin..range.end);
                }
            }
            units.push(TypeUnit { header, parsed: OnceCell::new(), code });
        }
        Types { dwarf, units }
    }

    pub(super) fn unit(&self, unit: usize) -> Option<&Unit<Slice<'a>>> {
        let one = self.units.get(unit)?;
        one.parsed.get_or_init(|| self.dwarf.unit(one.header).ok()).as_ref()
    }

    fn entry(&self, at: TypeRef) -> Option<Entry<'a>> {
        self.unit(at.unit)?.entry(at.entry).ok()
    }

    fn reference(&self, unit: usize, value: AttributeValue<Slice<'a>>) -> Option<TypeRef> {
        match value {
            AttributeValue::UnitRef(entry) => Some(TypeRef { unit, entry }),
            AttributeValue::DebugInfoRef(offset) => {
                let find = |header: &UnitHeader<Slice<'a>>| offset.to_unit_offset(header);
                let found = self.units.iter().enumerate();
                let mut found = found.filter_map(|(unit, one)| Some((unit, find(&one.header)?)));
                found.next().map(|(unit, entry)| TypeRef { unit, entry })
            }
            _ => None,
        }
    }

    pub(super) fn type_of(&self, unit: usize, entry: &Entry<'a>) -> Option<TypeRef> {
        self.reference(unit, entry.attr_value(dw::DW_AT_type)?)
    }

    pub(super) fn name(&self, unit: usize, entry: &Entry<'a>) -> Option<String> {
        let value = entry.attr_value(dw::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit(unit)?, value).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The entries directly below one.
    fn children(&self, of: TypeRef) -> Vec<Entry<'a>> {
        let mut found = Vec::new();
        let mut read = || -> Result<(), Error> {
            let Some(unit) = self.unit(of.unit) else { return Ok(()) };
            let mut tree = unit.entries_tree(Some(of.entry))?;
            let mut children = tree.root()?.children();
            while let (Some(child), true) = (children.next()?, found.len() < MOST_CHILDREN) {
                found.push(child.entry().clone());
            }
            Ok(())
        };
        // A damaged entry ends them.
        let _ = read();
        found
    }

    /// The function that begins at a link-time address, with its unit. None if debug information does not know it.
    pub(super) fn function(&self, address: u64) -> Option<(usize, Entry<'a>)> {
        let holds = |one: &TypeUnit| one.code.iter().any(|range| range.contains(&address));
        let unit = self.units.iter().position(holds)?;
        let entry = self.find(unit, |entry| {
            let begins = || match entry.attr_value(dw::DW_AT_low_pc)? {
                AttributeValue::Addr(address) => Some(address),
                AttributeValue::DebugAddrIndex(index) => self.dwarf.address(self.unit(unit)?, index).ok(),
                _ => None,
            };
            entry.tag() == dw::DW_TAG_subprogram && begins() == Some(address)
        })?;
        Some((unit, entry))
    }

    /// The types of the parameters of the function that begins at a link-time address. None if debug information does not
    /// know the function.
    pub(super) fn parameters(&self, function: u64) -> Option<(usize, Vec<Option<TypeRef>>)> {
        let (unit, entry) = self.function(function)?;
        // An instance out of line refers to the function that has all parameters.
        let origin = entry.attr_value(dw::DW_AT_abstract_origin);
        let described = origin.and_then(|value| self.reference(unit, value));
        let described = described.unwrap_or(TypeRef { unit, entry: entry.offset() });
        let children = self.children(described);
        let parameters = children.iter().filter(|child| child.tag() == dw::DW_TAG_formal_parameter);
        Some((unit, parameters.map(|child| self.type_of(described.unit, child)).collect()))
    }

    /// The first entry of a unit that is as wanted.
    fn find(&self, unit: usize, mut is_wanted: impl FnMut(&Entry<'a>) -> bool) -> Option<Entry<'a>> {
        let mut entries = self.unit(unit)?.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if is_wanted(entry) {
                return Some(entry.clone());
            }
        }
        None
    }

    /// The definition of a type, in this unit or else in another one.
    pub(super) fn named(&self, unit: usize, name: &str) -> Option<TypeRef> {
        let is_type = |tag| {
            matches!(
                tag,
                dw::DW_TAG_structure_type
                    | dw::DW_TAG_union_type
                    | dw::DW_TAG_class_type
                    | dw::DW_TAG_enumeration_type
                    | dw::DW_TAG_typedef
                    | dw::DW_TAG_base_type
            )
        };
        let others = (0..self.units.len()).filter(|&other| other != unit);
        std::iter::once(unit).chain(others).find_map(|unit| {
            let found = self.find(unit, |entry| {
                is_type(entry.tag())
                    && entry.attr_value(dw::DW_AT_declaration).is_none()
                    && self.name(unit, entry).is_some_and(|found| found == name)
            })?;
            Some(TypeRef { unit, entry: found.offset() })
        })
    }

    /// The type of a variable outside functions, in this unit or else in another one.
    pub(super) fn variable(&self, unit: usize, name: &str) -> Option<TypeRef> {
        let others = (0..self.units.len()).filter(|&other| other != unit);
        std::iter::once(unit).chain(others).find_map(|unit| {
            let found = self.find(unit, |entry| {
                entry.tag() == dw::DW_TAG_variable
                    && self.name(unit, entry).is_some_and(|found| found == name)
            })?;
            self.type_of(unit, &found)
        })
    }

    /// The number of an enumerator, of this unit or else of another one.
    pub(super) fn enumerator(&self, unit: usize, name: &str) -> Option<i64> {
        let others = (0..self.units.len()).filter(|&other| other != unit);
        std::iter::once(unit).chain(others).find_map(|unit| {
            let found = self.find(unit, |entry| {
                entry.tag() == dw::DW_TAG_enumerator
                    && self.name(unit, entry).is_some_and(|found| found == name)
            })?;
            enumerator_value(&found)
        })
    }

    /// What a type is, without names for it and qualifiers.
    pub(super) fn kind(&self, of: TypeRef) -> Kind {
        self.kind_within(of).unwrap_or(Kind::Other)
    }

    fn kind_within(&self, mut of: TypeRef) -> Option<Kind> {
        for _ in 0..LONGEST_CHAIN {
            let entry = self.entry(of)?;
            let bytes = || entry.attr_value(dw::DW_AT_byte_size)?.udata_value();
            let inner = || self.type_of(of.unit, &entry);
            return Some(match entry.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => {
                    of = inner()?;
                    continue;
                }
                dw::DW_TAG_base_type => self.number(&entry, bytes()?),
                dw::DW_TAG_enumeration_type => {
                    Kind::Enumeration { bytes: bytes()?, names: self.enumerators(of) }
                }
                dw::DW_TAG_pointer_type => Kind::Pointer(inner()),
                dw::DW_TAG_array_type => Kind::Array(inner()?, self.elements(of)),
                dw::DW_TAG_structure_type | dw::DW_TAG_union_type | dw::DW_TAG_class_type => {
                    Kind::Structure(self.defined(of, &entry))
                }
                _ => Kind::Other,
            });
        }
        None
    }

    fn number(&self, entry: &Entry<'a>, bytes: u64) -> Kind {
        let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(dw::DW_AT_encoding) else {
            return Kind::Other;
        };
        match encoding {
            dw::DW_ATE_signed_char | dw::DW_ATE_unsigned_char if bytes == 1 => Kind::Character,
            dw::DW_ATE_signed => Kind::Number { bytes, is_signed: true },
            dw::DW_ATE_unsigned | dw::DW_ATE_boolean | dw::DW_ATE_UTF => {
                Kind::Number { bytes, is_signed: false }
            }
            _ => Kind::Other,
        }
    }

    /// The definition of a structure that is only declared here.
    fn defined(&self, of: TypeRef, entry: &Entry<'a>) -> TypeRef {
        if entry.attr_value(dw::DW_AT_declaration).is_none() {
            return of;
        }
        let name = self.name(of.unit, entry);
        name.and_then(|name| self.named(of.unit, &name)).unwrap_or(of)
    }

    fn enumerators(&self, of: TypeRef) -> Arc<[(i64, String)]> {
        let children = self.children(of);
        let enumerator = |entry: &Entry<'a>| Some((enumerator_value(entry)?, self.name(of.unit, entry)?));
        children.iter().filter_map(enumerator).collect()
    }

    fn elements(&self, of: TypeRef) -> Option<u64> {
        let children = self.children(of);
        let range = children.iter().find(|child| child.tag() == dw::DW_TAG_subrange_type)?;
        let number = |name| range.attr_value(name)?.udata_value();
        number(dw::DW_AT_count).or_else(|| number(dw::DW_AT_upper_bound)?.checked_add(1))
    }

    /// The bytes of a type.
    pub(super) fn size(&self, of: TypeRef) -> Option<u64> {
        match self.kind(of) {
            Kind::Number { bytes, .. } | Kind::Enumeration { bytes, .. } => Some(bytes),
            Kind::Character => Some(1),
            Kind::Pointer(_) => Some(8),
            Kind::Array(element, count) => self.size(element)?.checked_mul(count?),
            Kind::Structure(at) => self.entry(at)?.attr_value(dw::DW_AT_byte_size)?.udata_value(),
            Kind::Other => None,
        }
    }

    /// A member of a structure or a union, or of those without names in it.
    pub(super) fn member(&self, structure: TypeRef, name: &str) -> Option<TypedMember> {
        self.member_within(structure, name, 0)
    }

    fn member_within(&self, structure: TypeRef, name: &str, depth: usize) -> Option<TypedMember> {
        if depth > DEEPEST {
            return None;
        }
        let is_member = |tag| matches!(tag, dw::DW_TAG_member | dw::DW_TAG_inheritance);
        let children = self.children(structure);
        children.iter().filter(|child| is_member(child.tag())).find_map(|child| {
            let offset = match child.attr_value(dw::DW_AT_data_member_location) {
                Some(value) => value.udata_value()?,
                // A bit-field has no address.
                None if child.attr_value(dw::DW_AT_data_bit_offset).is_some() => return None,
                None => 0,
            };
            let of = self.type_of(structure.unit, child)?;
            match self.name(structure.unit, child) {
                Some(found) if found == name => Some(TypedMember { offset, of }),
                Some(_) if child.tag() == dw::DW_TAG_member => None,
                _ => {
                    let Kind::Structure(inner) = self.kind(of) else { return None };
                    let found = self.member_within(inner, name, depth + 1)?;
                    Some(TypedMember { offset: offset.checked_add(found.offset)?, ..found })
                }
            }
        })
    }

    /// The names of a structure's members.
    pub(super) fn member_names(&self, structure: TypeRef) -> Vec<String> {
        self.children(structure).iter().filter_map(|child| self.name(structure.unit, child)).collect()
    }
}

fn enumerator_value(entry: &Entry) -> Option<i64> {
    let value: AttributeValue<Slice> = entry.attr_value(dw::DW_AT_const_value)?;
    value.sdata_value().or(value.udata_value().map(u64::cast_signed))
}
