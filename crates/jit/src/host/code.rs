//! Completes machine code: places labels, and gives each jump the shortest form that reaches its label.

use super::assembler::Condition;

/// A label that jumps refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) u32);

/// A jump to a label, written in its short form.
pub(crate) struct Jump {
    pub(crate) at: usize,
    pub(crate) to: Label,
    /// The condition; None for an unconditional jump.
    pub(crate) condition: Option<Condition>,
    pub(crate) is_long: bool,
}

impl Jump {
    /// Size of the short form in bytes.
    pub(crate) const SHORT: usize = 2;

    /// Number of bytes by which the long form is larger.
    fn growth(&self) -> usize {
        match (self.is_long, self.condition) {
            (false, _) => 0,
            (true, None) => 3,
            (true, Some(_)) => 4,
        }
    }
}

/// A relative distance to an address outside of this code.
pub(crate) struct Distance {
    pub(crate) at: usize,
    pub(crate) target: u64,
    /// Number of bytes of the instruction after the distance.
    pub(crate) trailing: usize,
}

/// Complete machine code.
pub(crate) struct MachineCode {
    pub(crate) bytes: Vec<u8>,
    /// Positions after which the code has grown since it was written, with the total growth up to there.
    grown: Vec<(usize, usize)>,
    labels: Vec<Option<usize>>,
}

impl MachineCode {
    /// Completes code that will run at `origin`, with the shortest possible jumps.
    pub(crate) fn complete(
        origin: u64,
        written: &[u8],
        labels: Vec<Option<usize>>,
        mut jumps: Vec<Jump>,
        distances: &[Distance],
    ) -> MachineCode {
        let mut code = MachineCode { bytes: Vec::new(), grown: Vec::new(), labels };
        while code.lengthen(&mut jumps) {}
        code.write(written, &jumps);
        for &Distance { at, target, trailing } in distances {
            let at = code.position(at);
            let behind = origin + (at + 4 + trailing) as u64;
            let distance = i32::try_from(target.wrapping_sub(behind) as i64).expect("code is within 2 GB");
            code.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        code
    }

    /// The target of a jump. All labels are placed by now.
    fn target(&self, jump: &Jump) -> i64 {
        self.label(jump.to).expect("every label is set") as i64
    }

    /// Selects the long form for jumps that do not reach their labels, given those that are long already. False if
    /// all reach.
    fn lengthen(&mut self, jumps: &mut [Jump]) -> bool {
        let mut sum = 0;
        self.grown.clear();
        for jump in jumps.iter().filter(|jump| jump.is_long) {
            sum += jump.growth();
            self.grown.push((jump.at, sum));
        }
        let mut changed = false;
        for jump in jumps.iter_mut().filter(|jump| !jump.is_long) {
            let distance = self.target(jump) - (self.position(jump.at) + Jump::SHORT) as i64;
            jump.is_long = i8::try_from(distance).is_err();
            changed |= jump.is_long;
        }
        changed
    }

    /// Copies the code with jumps in their final forms.
    fn write(&mut self, written: &[u8], jumps: &[Jump]) {
        let mut done = 0;
        for jump in jumps {
            self.bytes.extend(&written[done..jump.at]);
            done = jump.at + Jump::SHORT;
            let behind = (self.bytes.len() + Jump::SHORT + jump.growth()) as i64;
            let distance = self.target(jump) - behind;
            match (jump.is_long, jump.condition) {
                (false, None) => self.bytes.push(0xeb),
                (false, Some(condition)) => self.bytes.push(0x70 | condition as u8),
                (true, None) => self.bytes.push(0xe9),
                (true, Some(condition)) => self.bytes.extend([0x0f, 0x80 | condition as u8]),
            }
            if jump.is_long {
                self.bytes.extend((distance as i32).to_le_bytes());
            } else {
                self.bytes.push(distance as u8);
            }
        }
        self.bytes.extend(&written[done..]);
    }

    /// The final position of what was written at a position.
    pub(crate) fn position(&self, written: usize) -> usize {
        let before = self.grown.partition_point(|&(at, _)| at < written);
        written + before.checked_sub(1).map_or(0, |last| self.grown[last].1)
    }

    /// The position of a label.
    pub(crate) fn label(&self, label: Label) -> Option<usize> {
        self.labels[label.0 as usize].map(|written| self.position(written))
    }
}
