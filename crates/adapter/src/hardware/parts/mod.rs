//! The states of the hardware's parts, each for itself. What happens between them is methods of [`Hardware`](super::Hardware).

pub(super) mod agenda;
pub(super) mod buffers;
pub(super) mod engine;
pub(super) mod interrupts;
pub(super) mod memory;
pub(super) mod purpose;
pub(super) mod receiver;
pub(super) mod source;
pub(super) mod transmitter;
