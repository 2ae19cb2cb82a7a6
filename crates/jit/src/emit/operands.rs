//! The guest's integer registers as operands of the host's instructions.

use super::*;
use crate::registers::integer;

impl<G: Emit> Emitter<'_, G> {
    /// Where an integer register is; not for the one that is zero.
    pub(crate) fn operand(&mut self, size: Size, register: u8) -> Operand {
        if size == Size::Quad {
            self.widen(register);
        }
        match self.registers.held(register) {
            Some(host) => host.into(),
            None => integer::<G>(register).into(),
        }
    }

    /// Gives a register its upper half.
    pub(crate) fn widen(&mut self, register: u8) {
        if self.narrow & 1 << register != 0
            && let Some(host) = self.registers.held(register)
        {
            self.assembler.load_sign_extended(Size::Long, host, host);
            self.narrow &= !(1 << register);
        }
    }

    /// Gives all registers their upper halves, as who goes on elsewhere expects it. Flags stay as they are.
    pub(crate) fn widen_all(&mut self) {
        (0..32).for_each(|register| self.widen(register));
    }

    /// Whether the low half of a register is known to tell all.
    pub(crate) fn is_narrow(&self, register: u8) -> bool {
        register == G::ZERO || self.narrow & 1 << register != 0
    }

    /// An integer register in a register of the host: its own, or `scratch`. If less than a quadword is
    /// wanted, what lies above means nothing.
    pub(crate) fn read(&mut self, size: Size, register: u8, scratch: Register) -> Register {
        if register == G::ZERO {
            self.assembler.constant(scratch, 0);
            return scratch;
        }
        if size == Size::Quad {
            self.widen(register);
        }
        match self.registers.held(register) {
            Some(host) => host,
            None => {
                self.assembler.load(Size::Quad, scratch, integer::<G>(register));
                scratch
            }
        }
    }

    /// An integer register in this register of the host.
    pub(crate) fn read_into(&mut self, size: Size, register: u8, to: Register) {
        let from = self.read(size, register, to);
        self.assembler.load(Size::Quad, to, from);
    }

    /// Where to compute what an instruction writes: [`Emitter::write`] follows.
    pub(crate) fn target(&self, register: u8) -> Register {
        self.held(register).unwrap_or(RAX)
    }

    /// The host's register that holds one of the guest's.
    pub(crate) fn held(&self, register: u8) -> Option<Register> {
        self.registers.held(register)
    }

    /// Sets an integer register.
    pub(crate) fn write(&mut self, register: u8, value: Register) {
        if register == G::SINK {
            return;
        }
        self.forget(register);
        match self.registers.held(register) {
            Some(host) => self.assembler.load(Size::Quad, host, value),
            None => self.assembler.store(Size::Quad, integer::<G>(register), value),
        }
    }

    /// Sets an integer register to a longword's value, sign-extended: at once only in memory.
    pub(crate) fn write_low(&mut self, register: u8, value: Register) {
        match self.held(register) {
            Some(host) => {
                if host != value {
                    self.assembler.load(Size::Long, host, value);
                }
                self.forget(register);
                self.narrow |= 1 << register;
            }
            None => {
                self.assembler.load_sign_extended(Size::Long, RAX, value);
                self.write(register, RAX);
            }
        }
    }

    /// A register gets another value.
    pub(crate) fn forget(&mut self, register: u8) {
        self.known &= !(1 << register);
        self.narrow &= !(1 << register);
    }

    pub(crate) fn write_constant(&mut self, register: u8, value: u64) {
        if register == G::SINK {
            return;
        }
        self.forget(register);
        match (self.registers.held(register), i32::try_from(value as i64)) {
            (Some(host), Ok(0)) => self.assembler.zero(host),
            (Some(host), _) => self.assembler.constant(host, value),
            (None, Ok(short)) => self.assembler.store_constant(integer::<G>(register), short),
            (None, Err(_)) => {
                self.assembler.constant(RCX, value);
                self.assembler.store(Size::Quad, integer::<G>(register), RCX);
            }
        }
    }
}
