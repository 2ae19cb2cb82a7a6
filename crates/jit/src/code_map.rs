//! Which guest instruction a position in compiled code belongs to: for samplers, which interrupt a thread anywhere.
//!
//! The compiler keeps a map only while somebody samples ([`keep`]). A signal handler searches it ([`interrupted`]): the map is
//! changed only by the thread that it belongs to, and never while this thread executes the code that it describes.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host::arena::ARENA_BYTES;
use crate::registers::{CPU, bias};
use crate::target::Target;

/// Code from a position on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedCode {
    pub(crate) position: u32,
    /// The guest instruction that it executes, or leads to; or [`NO_INSTRUCTION`].
    pub(crate) address: u64,
}

/// Code that belongs to no single guest instruction.
pub(crate) const NO_INSTRUCTION: u64 = 0;

/// The map of a compiler's code.
#[derive(Default)]
pub(crate) struct CodeMap {
    start: u64,
    /// By position, ascending.
    code: Vec<MappedCode>,
}

static IS_KEPT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The map of the code that the thread may be executing.
    static CURRENT: Cell<*const CodeMap> = const { Cell::new(ptr::null()) };
    /// Whether compiled code is active, and not a callback that interprets.
    static IS_COMPILED: Cell<bool> = const { Cell::new(false) };
}

/// From now on, what this process compiles is mapped. Code compiled before is not: it has to be discarded.
pub fn keep() {
    IS_KEPT.store(true, Ordering::Relaxed);
}

/// Whether maps are kept.
pub(crate) fn is_kept() -> bool {
    IS_KEPT.load(Ordering::Relaxed)
}

/// Notes whether the calling thread executes compiled code, rather than what interprets the program. Returns what it was.
pub fn set_compiled(is_compiled: bool) -> bool {
    IS_COMPILED.replace(is_compiled)
}

impl CodeMap {
    pub(crate) fn new(start: u64) -> Box<CodeMap> {
        Box::new(CodeMap { start, code: Vec::new() })
    }

    /// The calling thread executes this code from now on.
    pub(crate) fn set_current(&self) {
        CURRENT.set(self);
    }

    /// Adds the code of a region, which begins at a position.
    pub(crate) fn add(&mut self, start: u32, code: Vec<MappedCode>, end: u32) {
        let moved = code.into_iter().map(|one| MappedCode { position: start + one.position, ..one });
        self.code.extend(moved);
        self.code.push(MappedCode { position: end, address: NO_INSTRUCTION });
    }

    pub(crate) fn clear(&mut self) {
        self.code.clear();
    }

    fn holds(&self, host: u64) -> bool {
        host.wrapping_sub(self.start) < ARENA_BYTES as u64
    }

    /// The guest instruction of a host address.
    fn find(&self, host: u64) -> Option<u64> {
        let position = u32::try_from(host.checked_sub(self.start)?).ok()?;
        let next = self.code.partition_point(|code| code.position <= position);
        let found = self.code[..next].last()?.address;
        Some(found).filter(|&address| address != NO_INSTRUCTION)
    }
}

impl Drop for CodeMap {
    fn drop(&mut self) {
        if ptr::eq(CURRENT.get(), self) {
            CURRENT.set(ptr::null());
        }
    }
}

/// The position of compiled code when a signal interrupted the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted<const N: usize> {
    /// The guest instruction.
    pub address: u64,
    /// The integer registers that were asked for; None if they are in the guest's state.
    pub registers: Option<[u64; N]>,
}

/// How far callbacks of compiled code are looked for on the host's stack, in words.
const SEARCHED_WORDS: usize = 512;

/// The position of compiled code when the calling thread was interrupted; None if no compiled code was active, or it cannot be
/// told. Async-signal-safe. `stack_end` is the end of the part of the host's stack that compiled code and what it calls use.
///
/// # Safety
/// `context` must be that of a signal that interrupted the calling thread, and `stack_end` an address on its stack.
pub unsafe fn interrupted<G: Target, const N: usize>(
    context: &libc::ucontext_t,
    wanted: [u8; N],
    stack_end: usize,
) -> Option<Interrupted<N>> {
    let map = CURRENT.get();
    if !IS_COMPILED.get() || map.is_null() {
        return None;
    }
    // SAFETY: the map lives as long as it is current, and its thread, which is interrupted, does not change it.
    let map = unsafe { &*map };
    let general = |register: i32| context.uc_mcontext.gregs[register as usize] as u64;
    let (host, stack) = (general(libc::REG_RIP), general(libc::REG_RSP) as usize);
    let is_in_code = map.holds(host);
    let address = map.find(host).filter(|_| is_in_code).or_else(|| {
        // A stub, or a function of ours, that compiled code has called: where it returns to is on the stack.
        let words = (stack_end.saturating_sub(stack) / 8).min(SEARCHED_WORDS);
        (0..words).find_map(|index| {
            // SAFETY: a word of the thread's own stack, above its stack pointer.
            let word = unsafe { ((stack & !7) as *const u64).add(index).read() };
            map.find(word.checked_sub(1)?).filter(|_| map.holds(word))
        })
    })?;
    let registers = is_in_code.then(|| {
        const _: () = assert!(CPU.0 == 15);
        let state = general(libc::REG_R15).wrapping_sub(bias::<G>() as u64);
        wanted.map(|register| match G::HELD.iter().find(|(guest, _)| *guest == register) {
            Some((_, held)) => general(GENERAL[usize::from(held.0)]),
            None => {
                let pointer = state as usize + G::INTEGERS + 8 * usize::from(register);
                // SAFETY: in compiled code the register points into the guest's state.
                unsafe { (pointer as *const u64).read() }
            }
        })
    });
    Some(Interrupted { address, registers })
}

/// The registers in a signal's context, by their numbers in instructions.
const GENERAL: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];
