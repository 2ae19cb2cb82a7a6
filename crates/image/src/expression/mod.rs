//! Expressions of C over the arguments of a function, evaluated at its entry, `$1->plan->type`, or also over its variables while control
//! is at one of its instructions. Types are those of the
//! image's debug information, which also says how a value is written: the name of an enumerator, a text, a number.

mod locals;
mod operators;
mod parse;
mod types;

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use gimli::{DwarfSections, EndianSlice, LittleEndian};

use self::locals::LocalLocation;
use self::operators::Operator;
use self::parse::TypeName;
use self::types::{TypeKind, TypeRef, Types};
use crate::{Image, section};

/// The number of arguments that are passed in registers.
const ARGUMENTS: usize = 6;
/// The longest text that is read.
const LONGEST: usize = 1 << 12;

/// An expression, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    term: ExpressionTerm,
}

#[derive(Clone, Debug, PartialEq)]
enum ExpressionTerm {
    /// An argument, numbered from 0.
    Argument(usize),
    /// The index of an element of a list, where one is looked for.
    Index,
    Number(i64),
    /// A variable of the function where it is evaluated within one, one outside functions, or an enumerator.
    Variable(String),
    /// Of a structure, or of the one that a pointer points at.
    Member(Box<ExpressionTerm>, String),
    Element(Box<ExpressionTerm>, Box<ExpressionTerm>),
    Cast(TypeName, Box<ExpressionTerm>),
    Pointee(Box<ExpressionTerm>),
    Address(Box<ExpressionTerm>),
    Binary(Operator, Box<ExpressionTerm>, Box<ExpressionTerm>),
}

/// The fault of an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is none.
    #[error(
        "'{text}' is no expression: {reason}; $1->member is a member of what the first argument points at"
    )]
    Syntax {
        /// The expression.
        text: String,
        /// Why not.
        reason: String,
    },
    /// It does not fit the types of the program.
    #[error("'{text}' does not fit the program: {reason}")]
    Type {
        /// The expression.
        text: String,
        /// Why not.
        reason: String,
    },
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Expression, ExpressionError> {
        Ok(Expression { text: text.into(), term: parse::parse(text)? })
    }
}

/// The processor and the memory of a program at the entry of a function, or at a later instruction of a call.
pub trait CallState {
    /// An argument at the entry, numbered from 0.
    fn argument(&self, number: usize) -> u64;
    /// The register of this number, as debug information numbers them.
    fn register(&self, number: u16) -> Option<u64> {
        let _ = number;
        None
    }
    /// The stack pointer before the call.
    fn frame(&self) -> Option<u64> {
        None
    }
    /// The value of `$i`.
    fn index(&self) -> u64 {
        0
    }
    /// Reads memory; false if it is not all there.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
    /// The bytes before the first one that is 0; none if there are more than `limit`, or no memory.
    fn text(&self, address: u64, limit: usize) -> Option<Vec<u8>>;
}

/// An expression that can be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledExpression {
    access: ComputedNumber,
    format: NumberFormat,
}

/// How a number is computed.
#[derive(Clone, Debug, PartialEq)]
enum ComputedNumber {
    Argument(usize),
    Index,
    Constant(u64),
    Register(u16),
    /// The stack pointer before the call.
    Frame,
    /// So many bytes at an address.
    Load(Box<ComputedNumber>, u64, bool),
    Binary(Operator, Box<ComputedNumber>, Box<ComputedNumber>),
    /// A number that is less than another one; else there is no value.
    Below(Box<ComputedNumber>, u64),
}

/// How a number is written.
#[derive(Clone, Debug, PartialEq)]
enum NumberFormat {
    Signed,
    Unsigned,
    /// A name, or else the number.
    Enumeration(Arc<[(i64, String)]>),
    /// The text that it is the address of, of so many bytes at most.
    Text(usize),
    Address,
}

/// A term with its type; an lvalue's access is its address.
struct Typed {
    access: ComputedNumber,
    is_lvalue: bool,
    of: Option<TypeRef>,
    /// It is a pointer to that type.
    is_pointer: bool,
}

/// Where an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationPoint {
    /// The function's link-time address.
    pub function: u64,
    /// The link-time address of an instruction of it, if that is not its first one.
    pub instruction: Option<u64>,
}

/// The functions and types of an image, for expressions.
pub struct ExpressionTypes<'i> {
    image: &'i Image,
    bias: u64,
    sections: DwarfSections<&'i [u8]>,
}

impl<'i> ExpressionTypes<'i> {
    /// Of an image that was mapped with this bias. Without debug information it knows no types.
    pub fn new(image: &'i Image, bias: u64) -> ExpressionTypes<'i> {
        let file = image.with_debug_information();
        let load = |id: gimli::SectionId| -> Result<&'i [u8], gimli::Error> {
            Ok(file.as_ref().and_then(|file| section(file, id.name())).map_or(&[], |(_, bytes)| bytes))
        };
        let sections = DwarfSections::load(load).unwrap_or_default();
        ExpressionTypes { image, bias, sections }
    }

    /// Compiles expressions.
    pub fn compile<'e>(
        &self,
        expressions: impl Iterator<Item = (EvaluationPoint, &'e Expression)>,
    ) -> Vec<Result<CompiledExpression, ExpressionError>> {
        let dwarf = self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let types = Types::new(&dwarf);
        let compile = |(point, expression): (EvaluationPoint, &Expression)| {
            let compiler = ExpressionCompiler {
                types: &types,
                image: self.image,
                bias: self.bias,
                point,
                parameters: types.parameters(point.function),
            };
            let compiled = compiler.term(&expression.term).and_then(|typed| compiler.finish(typed));
            compiled.map_err(|reason| ExpressionError::Type { text: expression.text.clone(), reason })
        };
        expressions.map(compile).collect()
    }
}

/// Compiles the expressions of a function.
struct ExpressionCompiler<'t, 'a, 'd> {
    types: &'t Types<'a, 'd>,
    image: &'t Image,
    bias: u64,
    point: EvaluationPoint,
    /// The unit of the function, and the types of its parameters.
    parameters: Option<(usize, Vec<Option<TypeRef>>)>,
}

type Reason = String;

impl ExpressionCompiler<'_, '_, '_> {
    fn function_name(&self) -> String {
        self.image.function_at(self.point.function).map_or_else(String::new, |function| function.name.clone())
    }

    fn unit(&self) -> Result<usize, Reason> {
        let missing = || {
            let (function, image) = (self.function_name(), self.image.name());
            format!("there is no debug information of {function} in {image}; compile it with -g")
        };
        self.parameters.as_ref().map(|(unit, _)| *unit).ok_or_else(missing)
    }

    fn kind(&self, typed: &Typed) -> TypeKind {
        if typed.is_pointer {
            return TypeKind::Pointer(typed.of);
        }
        typed.of.map_or(TypeKind::Other, |of| self.types.kind(of))
    }

    fn term(&self, term: &ExpressionTerm) -> Result<Typed, Reason> {
        match term {
            ExpressionTerm::Argument(number) => self.argument(*number),
            ExpressionTerm::Index => Ok(Typed::number(ComputedNumber::Index)),
            ExpressionTerm::Number(number) => {
                Ok(Typed::number(ComputedNumber::Constant(number.cast_unsigned())))
            }
            ExpressionTerm::Variable(name) => self.variable(name),
            ExpressionTerm::Member(of, name) => self.member(self.term(of)?, name),
            ExpressionTerm::Element(of, index) => {
                let index = self.term(index)?;
                self.element(self.term(of)?, index)
            }
            ExpressionTerm::Cast(name, of) => self.cast(name, of),
            ExpressionTerm::Pointee(of) => {
                self.element(self.term(of)?, Typed::number(ComputedNumber::Constant(0)))
            }
            ExpressionTerm::Address(of) => match self.term(of)? {
                of if of.is_lvalue => Ok(Typed::number(of.access)),
                _ => Err("'&' is for what is in memory".into()),
            },
            ExpressionTerm::Binary(operator, one, other) => {
                let (one, other) = (self.value(self.term(one)?)?, self.value(self.term(other)?)?);
                Ok(Typed::number(ComputedNumber::Binary(*operator, Box::new(one), Box::new(other))))
            }
        }
    }

    /// Without debug information arguments are numbers.
    fn argument(&self, number: usize) -> Result<Typed, Reason> {
        let access = ComputedNumber::Argument(number);
        let Some((_, parameters)) = &self.parameters else { return Ok(Typed::number(access)) };
        match parameters.get(number) {
            Some(of) => Ok(Typed { of: *of, ..Typed::number(access) }),
            None => {
                let (function, count) = (self.function_name(), parameters.len());
                Err(format!("{function} has {count} arguments, and no ${}", number + 1))
            }
        }
    }

    fn variable(&self, name: &str) -> Result<Typed, Reason> {
        let local = self.point.instruction.and_then(|at| self.types.local(self.point.function, name, at));
        if let Some(local) = local {
            let local = local.map_err(|reason| format!("'{name}': {reason}"))?;
            return Ok(match local.location {
                LocalLocation::Register(number) => {
                    Typed { of: Some(local.of), ..Typed::number(ComputedNumber::Register(number)) }
                }
                LocalLocation::Frame(offset) => Typed::lvalue(
                    ComputedNumber::Frame.plus(ComputedNumber::Constant(offset.cast_unsigned())),
                    local.of,
                ),
            });
        }
        let Some(symbol) = self.image.symbol(name) else {
            let number = self.types.enumerator(self.unit()?, name);
            let number = number.ok_or_else(|| format!("{} has no variable '{name}'", self.image.name()))?;
            return Ok(Typed::number(ComputedNumber::Constant(number.cast_unsigned())));
        };
        let of = self.types.variable(self.unit()?, name);
        let of = of.ok_or_else(|| format!("the type of the variable '{name}' is not known"))?;
        let access = ComputedNumber::Constant(symbol.address.wrapping_add(self.bias));
        Ok(Typed::lvalue(access, of))
    }

    fn member(&self, of: Typed, name: &str) -> Result<Typed, Reason> {
        let (structure, address) = match self.kind(&of) {
            TypeKind::Pointer(Some(to)) => match self.types.kind(to) {
                TypeKind::Structure(structure) => (structure, self.value(of)?),
                _ => return Err(self.no_structure(name)),
            },
            TypeKind::Structure(structure) if of.is_lvalue => (structure, of.access),
            _ => return Err(self.no_structure(name)),
        };
        let found = self.types.member(structure, name).ok_or_else(|| {
            let members = self.types.member_names(structure).join(", ");
            match members.is_empty() {
                true => format!("the structure with the member '{name}' is declared but not defined"),
                false => format!("there is no member '{name}' that has an address; there are {members}"),
            }
        })?;
        Ok(Typed::lvalue(address.plus(ComputedNumber::Constant(found.offset)), found.of))
    }

    fn no_structure(&self, name: &str) -> Reason {
        match self.unit() {
            Ok(_) => format!("'{name}' is a member of something that is no structure, nor a pointer to one"),
            Err(reason) => reason,
        }
    }

    fn element(&self, of: Typed, index: Typed) -> Result<Typed, Reason> {
        let (element, address, count) = match self.kind(&of) {
            TypeKind::Array(element, count) if of.is_lvalue => (element, of.access, count),
            TypeKind::Pointer(Some(element)) => (element, self.value(of)?, None),
            _ => return Err("only arrays, and what typed pointers point at, have elements".into()),
        };
        let size = self.types.size(element).ok_or("the size of an element is not known")?;
        let mut index = self.value(index)?;
        // Arrays of one element at the ends of structures are longer.
        if let Some(count) = count.filter(|&count| count > 1) {
            index = ComputedNumber::Below(Box::new(index), count);
        }
        let size = Box::new(ComputedNumber::Constant(size));
        let offset = ComputedNumber::Binary(Operator::Multiply, Box::new(index), size);
        Ok(Typed::lvalue(address.plus(offset), element))
    }

    /// A pointer to another type.
    fn cast(&self, name: &TypeName, of: &ExpressionTerm) -> Result<Typed, Reason> {
        let to = self.types.named(self.unit()?, &name.name);
        let to = to.ok_or_else(|| format!("there is no type '{}'", name.name))?;
        if name.pointers > 1 {
            return Err("a cast to a pointer to a pointer; cast its target instead".into());
        }
        let access = self.value(self.term(of)?)?;
        Ok(Typed { of: Some(to), is_pointer: true, ..Typed::number(access) })
    }

    /// The number that a term is.
    fn value(&self, typed: Typed) -> Result<ComputedNumber, Reason> {
        if !typed.is_lvalue {
            return Ok(typed.access);
        }
        let (bytes, is_signed) = match self.kind(&typed) {
            TypeKind::Number { bytes, is_signed } => (bytes, is_signed),
            TypeKind::Enumeration { bytes, .. } => (bytes, true),
            TypeKind::Character => (1, false),
            TypeKind::Pointer(_) => (8, false),
            // As in C, its address.
            TypeKind::Array(..) => return Ok(typed.access),
            TypeKind::Structure(_) => return Err("it is a structure: name a member of it".into()),
            TypeKind::Other => return Err("values of its type cannot be read".into()),
        };
        match bytes {
            1 | 2 | 4 | 8 => Ok(ComputedNumber::Load(Box::new(typed.access), bytes, is_signed)),
            _ => Err(format!("a number of {bytes} bytes cannot be read")),
        }
    }

    fn finish(&self, typed: Typed) -> Result<CompiledExpression, Reason> {
        let is_character = |of: TypeRef| matches!(self.types.kind(of), TypeKind::Character);
        let format = match self.kind(&typed) {
            TypeKind::Number { is_signed: false, .. } | TypeKind::Character => NumberFormat::Unsigned,
            TypeKind::Enumeration { names, .. } => NumberFormat::Enumeration(names),
            TypeKind::Pointer(Some(to)) if is_character(to) => NumberFormat::Text(LONGEST),
            TypeKind::Array(element, count) if is_character(element) => {
                NumberFormat::Text(count.map_or(LONGEST, |count| count.min(LONGEST as u64) as usize))
            }
            TypeKind::Pointer(_) | TypeKind::Array(..) => NumberFormat::Address,
            _ => NumberFormat::Signed,
        };
        Ok(CompiledExpression { access: self.value(typed)?, format })
    }
}

impl Typed {
    fn number(access: ComputedNumber) -> Typed {
        Typed { access, is_lvalue: false, of: None, is_pointer: false }
    }

    fn lvalue(access: ComputedNumber, of: TypeRef) -> Typed {
        Typed { access, is_lvalue: true, of: Some(of), is_pointer: false }
    }
}

impl ComputedNumber {
    fn plus(self, other: ComputedNumber) -> ComputedNumber {
        ComputedNumber::Binary(Operator::Add, Box::new(self), Box::new(other))
    }

    fn value(&self, state: &dyn CallState) -> Option<u64> {
        Some(match self {
            ComputedNumber::Argument(number) => state.argument(*number),
            ComputedNumber::Index => state.index(),
            ComputedNumber::Constant(value) => *value,
            ComputedNumber::Register(number) => state.register(*number)?,
            ComputedNumber::Frame => state.frame()?,
            ComputedNumber::Binary(Operator::Both, one, _) if one.value(state)? == 0 => 0,
            ComputedNumber::Binary(operator, one, other) => {
                operator.apply(one.value(state)?, other.value(state)?)
            }
            ComputedNumber::Below(one, limit) => one.value(state).filter(|value| value < limit)?,
            ComputedNumber::Load(address, size, is_signed) => {
                let (mut bytes, size) = ([0; 8], *size as usize);
                if !state.read(address.value(state)?, &mut bytes[..size]) {
                    return None;
                }
                let unused = 64 - 8 * size as u32;
                let value = u64::from_le_bytes(bytes) << unused;
                if *is_signed { (value.cast_signed() >> unused).cast_unsigned() } else { value >> unused }
            }
        })
    }
}

impl CompiledExpression {
    /// The number; none if it is not in memory.
    pub fn value(&self, state: &dyn CallState) -> Option<u64> {
        self.access.value(state)
    }

    /// The number, written by its type; none if it or its text is not in memory.
    pub fn text(&self, state: &dyn CallState) -> Option<String> {
        let value = self.value(state)?;
        Some(match &self.format {
            NumberFormat::Signed => value.cast_signed().to_string(),
            NumberFormat::Unsigned => value.to_string(),
            NumberFormat::Address => format!("{value:#x}"),
            NumberFormat::Text(limit) => String::from_utf8_lossy(&state.text(value, *limit)?).into_owned(),
            NumberFormat::Enumeration(names) => {
                let signed = value.cast_signed();
                let name = names.iter().find(|(number, _)| *number == signed);
                name.map_or_else(|| Cow::from(signed.to_string()), |(_, name)| name.as_str().into())
                    .into_owned()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments are 100, 101, …; at an address are its lowest bytes.
    struct Numbers;

    impl CallState for Numbers {
        fn argument(&self, number: usize) -> u64 {
            100 + number as u64
        }

        fn register(&self, number: u16) -> Option<u64> {
            Some(1000 + u64::from(number))
        }

        fn frame(&self) -> Option<u64> {
            Some(0x1000)
        }

        fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
            bytes.iter_mut().zip(address..).for_each(|(byte, at)| *byte = at as u8);
            address != 0
        }

        fn text(&self, address: u64, _: usize) -> Option<Vec<u8>> {
            (address != 0).then(|| address.to_string().into_bytes())
        }
    }

    fn load(address: ComputedNumber, bytes: u64, is_signed: bool) -> ComputedNumber {
        ComputedNumber::Load(Box::new(address), bytes, is_signed)
    }

    #[test]
    fn terms_are_read_as_in_c() {
        let of = |text: &str| text.parse::<Expression>().unwrap().term;
        assert_eq!(of("$1->a.b[2]"), of(" ( ( $1 . a ) -> b ) [ 2 ] "));
        assert_eq!(of("(struct T *)$1->a"), of("(T*)($1->a)"));
        assert_ne!(of("((T *)$1)->a"), of("(T *)$1->a"));
        assert_eq!(of("x[$2 - 1 + y]"), of("x[($2 - 1) + y]"));
        assert_eq!(of("$1 - 0x10"), of("$1 - 16"));
        assert_eq!(of("$1 & 1 == $2 + 3 * x && y < &z"), of("(($1 & (1 == ($2 + (3 * x)))) && (y < (&z)))"));
        assert_eq!(of("$1 - $2 - $3"), of("($1 - $2) - $3"));
        assert_ne!(of("$1 < 2 == 3"), of("$1 < (2 == 3)"));
        assert_eq!(of("-1 <= $1"), of("(0 - 1) <= $1"));
    }

    #[test]
    fn operators_are_those_of_c() {
        let value = |operator, one: i64, other: i64| {
            operator_value(operator, one.cast_unsigned(), other.cast_unsigned()).map(u64::cast_signed)
        };
        for (operator, expected) in [
            (Operator::Add, 1),
            (Operator::Subtract, -5),
            (Operator::Multiply, -6),
            (Operator::BitAnd, 2),
            (Operator::Equal, 0),
            (Operator::Unequal, 1),
            (Operator::Less, 1),
            (Operator::AtMost, 1),
            (Operator::Greater, 0),
            (Operator::AtLeast, 0),
            (Operator::Both, 1),
        ] {
            assert_eq!(value(operator, -2, 3), Some(expected), "{operator:?}");
        }
        // What follows && is not computed after 0.
        let nowhere = || load(ComputedNumber::Constant(0), 8, false);
        let both = |one| {
            ComputedNumber::Binary(
                Operator::Both,
                Box::new(ComputedNumber::Constant(one)),
                Box::new(nowhere()),
            )
        };
        assert_eq!((both(0).value(&Numbers), both(1).value(&Numbers)), (Some(0), None));
    }

    fn operator_value(operator: Operator, one: u64, other: u64) -> Option<u64> {
        let (one, other) =
            (Box::new(ComputedNumber::Constant(one)), Box::new(ComputedNumber::Constant(other)));
        ComputedNumber::Binary(operator, one, other).value(&Numbers)
    }

    #[test]
    fn variables_are_in_registers_and_in_the_frame() {
        assert_eq!(ComputedNumber::Register(9).value(&Numbers), Some(1009));
        let at = ComputedNumber::Frame.plus(ComputedNumber::Constant(u64::MAX));
        assert_eq!(load(at, 1, false).value(&Numbers), Some(0xff));
    }

    #[test]
    fn numbers_have_the_signs_and_sizes_of_their_types() {
        let value = |access: &ComputedNumber| access.value(&Numbers);
        assert_eq!(value(&load(ComputedNumber::Argument(1), 2, false)), Some(0x6665));
        assert_eq!(value(&load(ComputedNumber::Constant(0xfe), 1, true)), Some(u64::MAX - 1));
        assert_eq!(value(&load(ComputedNumber::Constant(0), 8, false)), None);
        let below = |limit| ComputedNumber::Below(Box::new(ComputedNumber::Argument(0)), limit);
        assert_eq!((value(&below(101)), value(&below(100))), (Some(100), None));
        let minus = Box::new(ComputedNumber::Constant(u64::MAX));
        let product =
            ComputedNumber::Binary(Operator::Multiply, Box::new(ComputedNumber::Argument(2)), minus);
        assert_eq!(value(&ComputedNumber::Constant(103).plus(product)), Some(1));
    }

    #[test]
    fn values_are_written_by_their_types() {
        let text = |access, format| CompiledExpression { access, format }.text(&Numbers);
        let minus = || load(ComputedNumber::Constant(0xfe), 1, true);
        assert_eq!(text(minus(), NumberFormat::Signed).unwrap(), "-2");
        assert_eq!(text(ComputedNumber::Argument(0), NumberFormat::Address).unwrap(), "0x64");
        let names: Arc<[_]> = [(-2, "MINUS".to_string())].into();
        assert_eq!(text(minus(), NumberFormat::Enumeration(names.clone())).unwrap(), "MINUS");
        assert_eq!(text(ComputedNumber::Argument(0), NumberFormat::Enumeration(names)).unwrap(), "100");
        assert_eq!(text(ComputedNumber::Argument(3), NumberFormat::Text(10)).unwrap(), "103");
        assert_eq!(text(ComputedNumber::Constant(0), NumberFormat::Text(10)), None);
    }
}
