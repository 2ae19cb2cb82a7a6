//! Symbolic values: what a register holds, as an expression over the registers and the memory at a point that control
//! has passed. Equal expressions have equal numbers.

use rustc_hash::FxHashMap as HashMap;
use std::fmt::Write;

use isa::Op;

use super::machine::ImageCode;

/// Number of an expression in its [`Terms`].
pub type TermNumber = u32;

/// An expression plus a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OffsetTerm {
    /// The expression.
    pub symbol: TermNumber,
    /// The constant.
    pub offset: u64,
}

/// The expression of constants.
pub const ZERO: TermNumber = 0;
/// The distance between the image's addresses and those that it was linked for.
pub const BASE: TermNumber = 1;

/// The depth of an expression from which on it is not taken apart.
const DEEPEST: u16 = 100;

/// One of the two images.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum ImageSide {
    /// The original image.
    Original,
    /// The optimized one.
    Optimized,
}

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// 0.
    Zero,
    /// See [`BASE`].
    Base,
    /// The value of a register when the procedure was entered; of a preserved one, in one of the images.
    Entry(u8, Option<ImageSide>),
    /// Anything.
    Variable(u32),
    /// The result of an operation with these qualifiers.
    Operation(Op, u16, [OffsetTerm; 3]),
    /// The result of a load from an address in this memory.
    Load(Op, TermNumber, OffsetTerm),
    /// The value of this register after the event that made this memory.
    Result(TermNumber, u8),
    /// The address of a procedure, wherever it is: that in the original.
    Procedure(u64),
    /// An expression that is too deep to be taken apart.
    Opaque(TermNumber),
}

impl OffsetTerm {
    /// A constant.
    pub const fn constant(offset: u64) -> OffsetTerm {
        OffsetTerm { symbol: ZERO, offset }
    }

    /// The address that was linked as this one.
    pub const fn address(address: u64) -> OffsetTerm {
        OffsetTerm { symbol: BASE, offset: address }
    }

    /// An expression.
    pub const fn of(symbol: TermNumber) -> OffsetTerm {
        OffsetTerm { symbol, offset: 0 }
    }

    /// The sum with a constant.
    pub const fn plus(self, offset: u64) -> OffsetTerm {
        OffsetTerm { symbol: self.symbol, offset: self.offset.wrapping_add(offset) }
    }

    /// The constant, if it is one.
    pub fn as_constant(self) -> Option<u64> {
        (self.symbol == ZERO).then_some(self.offset)
    }

    /// The address, if it is one that was linked.
    pub fn as_address(self) -> Option<u64> {
        (self.symbol == BASE).then_some(self.offset)
    }
}

/// All expressions of a proof.
#[derive(Debug)]
pub struct Terms {
    nodes: Vec<Node>,
    numbers: HashMap<Node, TermNumber>,
    depths: Vec<u16>,
    /// The registers that unwinders find at a load that the original carries out.
    loaded: Vec<Option<u64>>,
    variables: u32,
}

impl Terms {
    /// None but the constants.
    pub fn new() -> Terms {
        let mut terms = Terms {
            nodes: Vec::new(),
            numbers: HashMap::default(),
            depths: Vec::new(),
            loaded: Vec::new(),
            variables: 0,
        };
        assert_eq!((terms.symbol(Node::Zero), terms.symbol(Node::Base)), (ZERO, BASE));
        terms
    }

    /// The number of an expression.
    pub fn symbol(&mut self, node: Node) -> TermNumber {
        let next = self.nodes.len() as TermNumber;
        let symbol = *self.numbers.entry(node).or_insert(next);
        if symbol == next {
            let depth = self.depth(node);
            self.nodes.push(node);
            self.depths.push(depth);
            self.loaded.push(None);
        }
        if self.depths[symbol as usize] > DEEPEST { self.symbol(Node::Opaque(symbol)) } else { symbol }
    }

    fn depth(&self, node: Node) -> u16 {
        let of = |value: OffsetTerm| self.depths[value.symbol as usize];
        match node {
            Node::Operation(_, _, [a, b, c]) => 1 + of(a).max(of(b)).max(of(c)),
            Node::Load(_, _, address) => 1 + of(address),
            _ => 0,
        }
    }

    /// An expression as a value.
    pub fn value(&mut self, node: Node) -> OffsetTerm {
        OffsetTerm::of(self.symbol(node))
    }

    /// The result of an operation. Constants in a sum are its own: whatever order they were added in, it is the same.
    pub fn operation(&mut self, op: Op, function: u16, operands: [OffsetTerm; 3]) -> OffsetTerm {
        let [mut a, mut b, c] = operands;
        let mut constant = 0u64;
        if op == Op::Addq {
            // Addresses of code are not numbers: they are compared by what they refer to.
            for operand in [&mut a, &mut b].into_iter().filter(|operand| operand.symbol != BASE) {
                constant = constant.wrapping_add(std::mem::take(&mut operand.offset));
            }
        }
        self.value(Node::Operation(op, function, [a, b, c])).plus(constant)
    }

    /// The value; instead of the address of a procedure, which procedure it is, as that is the same in both images.
    pub fn named(&mut self, value: OffsetTerm, code: &ImageCode) -> OffsetTerm {
        match value.as_address().and_then(|address| code.entries.get(&address)) {
            Some(&original) => self.value(Node::Procedure(original)),
            None => value,
        }
    }

    /// A variable that nothing else is.
    pub fn fresh(&mut self) -> TermNumber {
        self.variables += 1;
        self.symbol(Node::Variable(self.variables))
    }

    /// The expression of a number.
    pub fn node(&self, symbol: TermNumber) -> Node {
        self.nodes[symbol as usize]
    }

    /// Notes that the original carries out a load, where unwinders find these registers.
    pub fn mark_loaded(&mut self, symbol: TermNumber, unwound: u64) {
        let loaded = &mut self.loaded[symbol as usize];
        *loaded = Some(loaded.map_or(unwound, |before| before & unwound));
    }

    /// The registers that unwinders find wherever the original carries out a load, if it does.
    pub fn loaded(&self, symbol: TermNumber) -> Option<u64> {
        self.loaded[symbol as usize]
    }

    /// The value in words.
    pub fn show(&self, value: OffsetTerm) -> String {
        let mut text = String::new();
        self.write(&mut text, value, 4);
        text
    }

    fn write(&self, out: &mut String, value: OffsetTerm, depth: usize) {
        let OffsetTerm { symbol, offset } = value;
        if symbol == ZERO || symbol == BASE {
            _ = write!(out, "{offset:#x}");
            return;
        }
        if depth == 0 {
            out.push('…');
            return;
        }
        match self.node(symbol) {
            Node::Entry(register, _) => _ = write!(out, "entry {}", register_name(register)),
            Node::Operation(op, _, operands) => {
                _ = write!(out, "{}(", op.mnemonic());
                for (at, operand) in operands.into_iter().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    self.write(out, operand, depth - 1);
                }
                out.push(')');
            }
            Node::Load(op, _, address) => {
                _ = write!(out, "{} [", op.mnemonic());
                self.write(out, address, depth - 1);
                out.push(']');
            }
            Node::Procedure(address) => _ = write!(out, "procedure {address:#x}"),
            Node::Result(_, register) => _ = write!(out, "{} after a call", register_name(register)),
            _ => _ = write!(out, "v{symbol}"),
        }
        match offset as i64 {
            0 => {}
            offset if offset < 0 => _ = write!(out, "-{:#x}", offset.unsigned_abs()),
            offset => _ = write!(out, "+{offset:#x}"),
        }
    }
}

/// The name of a register; those from 32 on are floating-point ones.
pub fn register_name(register: u8) -> String {
    match register {
        32.. => format!("$f{}", register - 32),
        _ => isa::REGISTER_NAMES[register as usize].to_string(),
    }
}
