//! The stack of return addresses.

/// A stack of return addresses. One that overflows loses the oldest.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReturnStack {
    addresses: Vec<u64>,
    /// The number of addresses that were pushed, less those that were popped.
    depth: usize,
}

impl ReturnStack {
    /// With this number of entries; 0 for none.
    pub fn new(entries: u32) -> ReturnStack {
        ReturnStack { addresses: vec![0; entries as usize], depth: 0 }
    }

    /// Whether the processor has no such stack.
    pub fn is_absent(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Pushes the return address of a call.
    pub fn push(&mut self, address: u64) {
        if !self.is_absent() {
            let top = self.depth % self.addresses.len();
            self.addresses[top] = address;
            self.depth += 1;
        }
    }

    /// The address that a return is predicted to go to.
    pub fn top(&self) -> u64 {
        let below = self.depth.checked_sub(1).unwrap_or(self.addresses.len() - 1);
        self.addresses[below % self.addresses.len()]
    }

    /// Removes and returns the last address.
    pub fn pop(&mut self) -> u64 {
        let top = self.top();
        self.depth = self.depth.checked_sub(1).unwrap_or(self.addresses.len() - 1);
        top
    }

    /// Makes this a copy of another stack.
    pub fn copy_from(&mut self, other: &ReturnStack) {
        self.addresses.clone_from(&other.addresses);
        self.depth = other.depth;
    }
}
