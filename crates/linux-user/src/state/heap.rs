//! The program's heap.

/// The program's heap: from behind its data to the break.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The kernel makes every heap on Alpha executable (VM_DATA_DEFAULT_FLAGS in include/linux/mm.h). Here only
    /// those of programs that want an executable stack are: where executable memory changes, all compiled code
    /// is void, and heaps grow often.
    pub(crate) is_executable: bool,
}

impl Heap {
    /// An empty heap.
    pub fn at(start: u64, is_executable: bool) -> Heap {
        Heap { start, end: start, is_executable }
    }
}
