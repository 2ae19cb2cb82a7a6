//! Receive buffers of a cell each: a pool that all circuits share, and a quota for each circuit, so that no other one can stop it.
//!
//! Shared buffers are used first. A cell in one of them frees its sender's credit at once; the credit of one in its circuit's
//! quota waits until a buffer is recycled: one of the circuit itself, or a shared one, which then takes over the cell.

use std::collections::VecDeque;

/// The end of a list.
const END: u32 = u32::MAX;

/// The buffers.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct ReceiveBuffers {
    /// The buffer behind each one in a packet's list, which control memory has.
    next: Vec<u32>,
    free: Vec<u32>,
    shared_free: u32,
    quota: u32,
    circuits: Vec<CircuitBuffers>,
    /// Circuits with cells in their quotas that a shared buffer may take over.
    waiting: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CircuitBuffers {
    of_quota: u32,
    shared: u32,
    is_waiting: bool,
}

/// A list of buffers with the cells of a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct BufferList {
    pub(in crate::hardware) first: u32,
    last: u32,
    pub(in crate::hardware) cells: u32,
}

impl BufferList {
    pub(in crate::hardware) const EMPTY: BufferList = BufferList { first: END, last: END, cells: 0 };
}

impl ReceiveBuffers {
    pub(in crate::hardware) fn new(shared: u32, quota: u32, circuits: u32) -> ReceiveBuffers {
        let all = shared + quota * circuits;
        ReceiveBuffers {
            next: vec![END; all as usize],
            free: (0..all).rev().collect(),
            shared_free: shared,
            quota,
            circuits: vec![CircuitBuffers::default(); circuits as usize],
            waiting: VecDeque::new(),
        }
    }

    /// Takes a buffer for a circuit, and says whether it is a shared one; none if all it may use are taken.
    pub(in crate::hardware) fn take(&mut self, circuit: u32) -> Option<(u32, bool)> {
        let state = &mut self.circuits[circuit as usize];
        let is_shared = self.shared_free > 0;
        if is_shared {
            self.shared_free -= 1;
            state.shared += 1;
        } else {
            if state.of_quota == self.quota {
                return None;
            }
            state.of_quota += 1;
            if !state.is_waiting {
                state.is_waiting = true;
                self.waiting.push_back(circuit);
            }
        }
        let buffer = self.free.pop().expect("the counts of buffers say that one is free");
        Some((buffer, is_shared))
    }

    /// Appends a buffer to a list.
    pub(in crate::hardware) fn append(&mut self, list: &mut BufferList, buffer: u32) {
        self.next[buffer as usize] = END;
        match list.cells {
            0 => list.first = buffer,
            _ => self.next[list.last as usize] = buffer,
        }
        list.last = buffer;
        list.cells += 1;
    }

    /// The buffer with a cell of a list.
    pub(in crate::hardware) fn nth(&self, list: &BufferList, cell: u32) -> u32 {
        (0..cell).fold(list.first, |buffer, _| self.next[buffer as usize])
    }

    /// The buffer behind another one.
    pub(in crate::hardware) fn following(&self, buffer: u32) -> u32 {
        self.next[buffer as usize]
    }

    /// Frees the buffers of a list. Reports each circuit, once for each credit that it gets.
    pub(in crate::hardware) fn recycle(
        &mut self,
        circuit: u32,
        list: BufferList,
        mut credit: impl FnMut(u32),
    ) {
        let mut buffer = list.first;
        for _ in 0..list.cells {
            self.free.push(buffer);
            buffer = self.next[buffer as usize];
        }
        let state = &mut self.circuits[circuit as usize];
        let of_quota = state.of_quota.min(list.cells);
        state.of_quota -= of_quota;
        let shared = list.cells - of_quota;
        state.shared -= shared;
        self.shared_free += shared;
        (0..of_quota).for_each(|_| credit(circuit));
        while self.shared_free > 0 {
            let Some(circuit) = self.waiting.pop_front() else { break };
            let state = &mut self.circuits[circuit as usize];
            state.is_waiting = false;
            if state.of_quota == 0 {
                continue;
            }
            state.of_quota -= 1;
            state.shared += 1;
            self.shared_free -= 1;
            credit(circuit);
            if state.of_quota > 0 {
                state.is_waiting = true;
                self.waiting.push_back(circuit);
            }
        }
    }

    /// The number of buffers in use.
    pub(in crate::hardware) fn used(&self) -> u32 {
        (self.next.len() - self.free.len()) as u32
    }

    /// The cells in a circuit's quota.
    pub(in crate::hardware) fn of_quota(&self, circuit: usize) -> u32 {
        self.circuits[circuit].of_quota
    }

    /// Checks that counts agree with lists.
    pub(in crate::hardware) fn audit(&self) -> Result<(), String> {
        let used: u32 = self.circuits.iter().map(|state| state.of_quota + state.shared).sum();
        let shared: u32 = self.circuits.iter().map(|state| state.shared).sum();
        let pool = self.next.len() as u32 - self.quota * self.circuits.len() as u32;
        if used != self.used() {
            return Err(format!("circuits count {used} buffers in use, {} are not free", self.used()));
        }
        if shared + self.shared_free != pool {
            return Err(format!(
                "{shared} shared buffers in use and {} free are not {pool}",
                self.shared_free
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(buffers: &mut ReceiveBuffers, circuit: u32, cells: u32) -> BufferList {
        let mut list = BufferList::EMPTY;
        for _ in 0..cells {
            let (buffer, _) = buffers.take(circuit).unwrap();
            buffers.append(&mut list, buffer);
        }
        list
    }

    #[test]
    fn a_recycled_shared_buffer_frees_a_credit_of_a_waiting_circuit() {
        let mut buffers = ReceiveBuffers::new(2, 1, 2);
        let first = packet(&mut buffers, 0, 2);
        let second = packet(&mut buffers, 1, 1);
        assert!(buffers.take(1).is_none(), "its quota is used");
        let mut credits = Vec::new();
        buffers.recycle(0, first, |circuit| credits.push(circuit));
        assert_eq!(credits, [1], "the shared buffer takes over the cell");
        assert_eq!(buffers.take(1).map(|(_, is_shared)| is_shared), Some(true));
        buffers.recycle(1, second, |circuit| credits.push(circuit));
        assert_eq!(credits, [1], "a shared buffer has no credit left to give");
        buffers.audit().unwrap();
    }
}
