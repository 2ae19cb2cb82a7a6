//! Follows chains of calls by the unwinding tables of images: without allocation or locks, in a signal handler.

use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

use events::LoadedImage;
use image::{FrameTable, Image, SavedRegister};

use super::MOST_CALLERS;
use crate::lock;
use crate::platform::{FrameRegisters, guest_of};

/// How much of the stack is looked at, in words.
const STACK_WORDS: usize = 4096;

/// The registers by which a caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallerRegisters {
    pub(super) stack_pointer: u64,
    pub(super) frame_pointer: u64,
    pub(super) return_address: u64,
}

/// The table of an image that is mapped.
#[derive(Clone)]
struct MappedTable {
    start: u64,
    end: u64,
    bias: u64,
    path: PathBuf,
    frame_registers: Option<FrameRegisters>,
    table: Arc<FrameTable>,
}

/// The tables that signal handlers read: replaced as a whole, and never freed, as a handler may be reading.
static TABLES: AtomicPtr<Vec<MappedTable>> = AtomicPtr::new(std::ptr::null_mut());
/// Held by who replaces them.
static CHANGES: Mutex<()> = Mutex::new(());

fn tables() -> &'static [MappedTable] {
    // SAFETY: null, or a vector that is never freed or changed.
    unsafe { TABLES.load(Ordering::Acquire).as_ref() }.map_or(&[], |tables| tables)
}

fn replace(tables: Vec<MappedTable>) {
    TABLES.store(Box::into_raw(Box::new(tables)), Ordering::Release);
}

/// An image is mapped in this process: its callers can be found from now on. Each thread tells of each image.
pub(crate) fn map_image(image: &LoadedImage) {
    let _changing = lock(&CHANGES);
    let known = tables();
    if known.iter().any(|it| it.path == image.path && it.start == image.start && it.end == image.end) {
        return;
    }
    // An image that cannot be read any more has no table: chains end in it.
    let opened = Image::open(&image.path).ok();
    let registers = |image: &Image| guest_of(image.instruction_set()).frame_registers();
    let frame_registers = opened.as_ref().map(registers);
    let table = opened.zip(frame_registers).map(|(image, it)| FrameTable::of(&image, it.frame_pointer));
    let table = Arc::new(table.unwrap_or_default());
    let &LoadedImage { start, end, bias, ref path, .. } = image;
    let new = MappedTable { start, end, bias, path: path.clone(), frame_registers, table };
    let others = known.iter().filter(|it| it.end <= start || end <= it.start);
    replace(others.cloned().chain([new]).collect());
}

/// Another program takes the place of this one.
pub(crate) fn forget_images() {
    let _changing = lock(&CHANGES);
    replace(Vec::new());
}

/// Room for a part of the stack and for a chain of calls.
pub(super) struct Callers {
    stack: [u64; STACK_WORDS],
    chain: [u64; MOST_CALLERS],
}

impl Default for Callers {
    fn default() -> Callers {
        Callers { stack: [0; STACK_WORDS], chain: [0; MOST_CALLERS] }
    }
}

impl Callers {
    /// The chain of calls by which control has come to an instruction: this first, then the return address of each call.
    pub(super) fn find(&mut self, address: u64, registers: CallerRegisters) -> &[u64] {
        let base = registers.stack_pointer;
        let words = self.copy_stack(base);
        let stack = &self.stack[..words];
        let load = |address: u64| {
            let offset = address.checked_sub(base).filter(|offset| offset.is_multiple_of(8))?;
            stack.get((offset / 8) as usize).copied()
        };
        let (mut at, mut registers, mut length) = (address, registers, 1);
        self.chain[0] = address;
        while length < MOST_CALLERS {
            let Some(caller) = caller(at, length == 1, registers, &load) else { break };
            if caller.return_address == 0 || caller.stack_pointer < registers.stack_pointer {
                break;
            }
            self.chain[length] = caller.return_address;
            length += 1;
            // The call itself: what follows it may belong to another row.
            (at, registers) = (caller.return_address - 4, caller);
        }
        &self.chain[..length]
    }

    /// Copies the stack from an address on, as far as it is mapped; the number of words. A system call copies, which fails where
    /// an access of ours would fault.
    fn copy_stack(&mut self, from: u64) -> usize {
        if from == 0 || !from.is_multiple_of(8) || from >= guest_memory::WINDOW {
            return 0;
        }
        let bytes = size_of_val(&self.stack);
        let local = libc::iovec { iov_base: self.stack.as_mut_ptr().cast(), iov_len: bytes };
        // Pages apart: the call copies whole ranges only.
        const PAGE: usize = 4096;
        let mut ranges =
            [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; STACK_WORDS * 8 / PAGE + 1];
        let (mut at, mut left, mut count) = (from as usize, bytes, 0);
        while left > 0 {
            let length = (PAGE - at % PAGE).min(left);
            ranges[count] = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: length };
            (at, left, count) = (at + length, left - length, count + 1);
        }
        // SAFETY: the local range is `stack`; the call checks the ranges that it reads.
        let copied = unsafe {
            libc::process_vm_readv(libc::getpid(), &local, 1, ranges.as_ptr(), count as libc::c_ulong, 0)
        };
        usize::try_from(copied).unwrap_or(0) / 8
    }
}

/// The caller of the function at an address; None if it cannot be found.
fn caller(
    address: u64,
    is_innermost: bool,
    registers: CallerRegisters,
    load: &impl Fn(u64) -> Option<u64>,
) -> Option<CallerRegisters> {
    let mapped = tables().iter().find(|it| (it.start..it.end).contains(&address))?;
    let numbers = mapped.frame_registers?;
    let Some(row) = mapped.table.row(address.wrapping_sub(mapped.bias)) else {
        // Hand-written code without a table mostly calls nothing, and has no frame.
        return is_innermost.then_some(CallerRegisters {
            return_address: registers.return_address & numbers.address_mask,
            ..registers
        });
    };
    let base = match row.base {
        Some(number) if number == numbers.stack_pointer => registers.stack_pointer,
        Some(number) if number == numbers.frame_pointer => registers.frame_pointer,
        _ => return None,
    };
    let frame = base.wrapping_add_signed(row.offset.into());
    let saved = |saved, register| match saved {
        SavedRegister::InRegister => Some(register),
        SavedRegister::At(offset) => load(frame.wrapping_add_signed(offset.into())),
    };
    if !is_innermost && row.return_address == SavedRegister::InRegister {
        // A function that has called another one has saved its own return address: this is the first function.
        return None;
    }
    Some(CallerRegisters {
        stack_pointer: frame,
        frame_pointer: saved(row.frame_pointer, registers.frame_pointer)?,
        return_address: saved(row.return_address, registers.return_address)? & numbers.address_mask,
    })
}
