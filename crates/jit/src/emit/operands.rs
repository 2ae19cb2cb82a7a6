//! The guest's integer registers as operands of the host's instructions.

use super::*;
use crate::registers::integer;

impl<G: Emit> Emitter<'_, G> {
    /// Where an integer register is; not for the one that is zero.
    pub(crate) fn operand(&mut self, size: OperandSize, register: u8) -> Operand {
        if size == OperandSize::Quad {
            self.complete_sign_extension(register);
        }
        match self.registers.held(register) {
            Some(host) => host.into(),
            None => integer::<G>(register).into(),
        }
    }

    /// Completes a deferred sign extension.
    pub(crate) fn complete_sign_extension(&mut self, register: u8) {
        if self.unextended & 1 << register != 0
            && let Some(host) = self.registers.held(register)
        {
            self.assembler.load_sign_extended(OperandSize::Long, host, host);
            self.unextended &= !(1 << register);
        }
    }

    /// Completes all deferred sign extensions, as code outside the region expects it. Preserves the flags.
    pub(crate) fn complete_sign_extensions(&mut self) {
        (0..32).for_each(|register| self.complete_sign_extension(register));
    }

    /// Whether a register's value is its low half, sign-extended, so that a test of the low half suffices.
    pub(crate) fn is_longword(&self, register: u8) -> bool {
        register == G::ZERO || self.unextended & 1 << register != 0
    }

    /// An integer register in a register of the host: its own, or `scratch`. The bits above
    /// `size` are undefined.
    pub(crate) fn read(&mut self, size: OperandSize, register: u8, scratch: HostRegister) -> HostRegister {
        if register == G::ZERO {
            self.assembler.constant(scratch, 0);
            return scratch;
        }
        if size == OperandSize::Quad {
            self.complete_sign_extension(register);
        }
        match self.registers.held(register) {
            Some(host) => host,
            None => {
                self.assembler.load(OperandSize::Quad, scratch, integer::<G>(register));
                scratch
            }
        }
    }

    /// An integer register in this register of the host.
    pub(crate) fn read_into(&mut self, size: OperandSize, register: u8, to: HostRegister) {
        let from = self.read(size, register, to);
        self.assembler.load(OperandSize::Quad, to, from);
    }

    /// Where to compute what an instruction writes: [`Emitter::write`] follows.
    pub(crate) fn target(&self, register: u8) -> HostRegister {
        self.held(register).unwrap_or(RAX)
    }

    /// The host's register that holds one of the guest's.
    pub(crate) fn held(&self, register: u8) -> Option<HostRegister> {
        self.registers.held(register)
    }

    /// Sets an integer register.
    pub(crate) fn write(&mut self, register: u8, value: HostRegister) {
        if register == G::SINK {
            return;
        }
        self.clobber(register);
        match self.registers.held(register) {
            Some(host) => self.assembler.load(OperandSize::Quad, host, value),
            None => self.assembler.store(OperandSize::Quad, integer::<G>(register), value),
        }
    }

    /// Sets an integer register to a longword's value, sign-extended; the extension is deferred if a host register holds it.
    pub(crate) fn write_low(&mut self, register: u8, value: HostRegister) {
        match self.held(register) {
            Some(host) => {
                if host != value {
                    self.assembler.load(OperandSize::Long, host, value);
                }
                self.clobber(register);
                self.unextended |= 1 << register;
            }
            None => {
                self.assembler.load_sign_extended(OperandSize::Long, RAX, value);
                self.write(register, RAX);
            }
        }
    }

    /// Forgets the address check and the deferred sign extension of a register that is overwritten.
    pub(crate) fn clobber(&mut self, register: u8) {
        self.checked_bases &= !(1 << register);
        self.unextended &= !(1 << register);
    }

    pub(crate) fn write_constant(&mut self, register: u8, value: u64) {
        if register == G::SINK {
            return;
        }
        self.clobber(register);
        match (self.registers.held(register), i32::try_from(value as i64)) {
            (Some(host), Ok(0)) => self.assembler.zero(host),
            (Some(host), _) => self.assembler.constant(host, value),
            (None, Ok(short)) => self.assembler.store_constant(integer::<G>(register), short),
            (None, Err(_)) => {
                self.assembler.constant(RCX, value);
                self.assembler.store(OperandSize::Quad, integer::<G>(register), RCX);
            }
        }
    }
}
