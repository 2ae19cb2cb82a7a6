//! The guests that there are, by the usual directories of their C libraries.

use super::Abi;

/// The machines of all guests, and the usual directories of their C libraries.
const SYSROOTS: [(u16, &str); 2] = [sysroot::<alpha::cpu::Cpu>(), sysroot::<riscv::RiscvCpu>()];

const fn sysroot<G: Abi>() -> (u16, &'static str) {
    (G::ELF_MACHINE, G::SYSROOT)
}

/// The usual directory of the C library of the guest with this machine in its images' ELF headers, if there is such a guest.
pub(crate) fn usual_sysroot(machine: u16) -> Option<&'static str> {
    SYSROOTS.iter().find(|(known, _)| *known == machine).map(|(_, sysroot)| *sysroot)
}

/// The usual directories of all guests' C libraries.
pub(crate) fn usual_sysroots() -> impl Iterator<Item = &'static str> {
    SYSROOTS.iter().map(|(_, sysroot)| *sysroot)
}
