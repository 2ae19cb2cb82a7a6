//! Conservation: no cell, buffer or credit is lost or made.

use super::Hardware;

impl Hardware {
    /// Checks that every cell that was sent is somewhere, that every buffer is free or holds one, and that all credits of each
    /// circuit are its quota. Says what is wrong.
    pub fn audit(&self) -> Result<(), String> {
        let counts = &self.counts;
        let equal = |name: &str, left: u64, right: u64| match left == right {
            true => Ok(()),
            false => Err(format!("{name}: {left} are not {right}")),
        };
        let arrived = counts.cells_received + counts.cells_lost + counts.cells_reset;
        equal("cells on the link", counts.cells_sent, arrived + self.link.len() as u64)?;
        let used = self.receiver.buffers.used();
        let gone = counts.cells_dropped + counts.cells_recycled + counts.cells_discarded;
        equal("cells received", counts.cells_received, gone + u64::from(used))?;
        self.receiver.buffers.audit()?;
        match self.is_exposed() {
            true => equal("cells of packets", used.into(), self.receiver.held_cells().into())?,
            false if (self.engine.cells().count() as u64) > u64::from(used) => {
                return Err("more cells are on their way to host memory than buffers are in use".into());
            }
            false => {}
        }
        self.audit_credits()
    }

    fn audit_credits(&self) -> Result<(), String> {
        if self.description.credits.is_none() {
            return Ok(());
        }
        let circuits = self.description.link.circuits as usize;
        let is_loop = self.is_loop();
        let (source, returning) = match is_loop {
            true => (&self.transmitter.source, &self.receiver.credits_of_transmitter),
            false => (&self.remote, &self.receiver.credits_of_remote),
        };
        let mut credits: Vec<u32> = (0..circuits)
            .map(|circuit| {
                let held = self.receiver.buffers.of_quota(circuit);
                source.credits(circuit) + held + self.receiver.owed_and_lost(circuit)
            })
            .collect();
        self.link.iter().for_each(|cell| credits[cell.circuit as usize] += 1);
        returning.iter().for_each(|&(circuit, number)| credits[circuit as usize] += number);
        let quota = self.description.receive.per_circuit;
        match credits.iter().position(|&credits| credits != quota) {
            Some(circuit) => Err(format!("circuit {circuit} has {} credits of {quota}", credits[circuit])),
            None if self.counts.cells_dropped > 0 => Err("cells were dropped in spite of credits".into()),
            None => Ok(()),
        }
    }
}
