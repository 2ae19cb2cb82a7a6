//! The program's heap.

/// The program's heap: from the end of its data to the break.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramHeap {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Linux makes every heap of some guests executable (VM_DATA_DEFAULT_FLAGS in include/linux/mm.h). Here only programs
    /// that request an executable stack have an executable heap: heaps grow often, and a change of executable memory
    /// invalidates all compiled code.
    pub(crate) is_executable: bool,
}

impl ProgramHeap {
    /// An empty heap.
    pub fn at(start: u64, is_executable: bool) -> ProgramHeap {
        ProgramHeap { start, end: start, is_executable }
    }
}
