//! Random layouts and profiles: with any of them a program does what the original does.

use pathlength_spike::assemble::{CodeLayout, Fragment};
use pathlength_spike::layout;
use pathlength_spike::program::{CodeExit, Program};

/// All procedures and blocks in random order.
pub fn shuffled(program: &Program, seed: u64) -> CodeLayout {
    let mut layout = layout::original(program);
    if seed == 0 {
        return layout;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut fragments = Vec::new();
    for mut fragment in layout.fragments {
        if program.procedures[fragment.procedure as usize].frozen.is_none() {
            random.shuffle(&mut fragment.blocks);
            while fragment.blocks.len() > 1 && random.u8(..4) != 0 {
                let rest = fragment.blocks.split_off(random.usize(1..fragment.blocks.len()));
                fragments.push(Fragment { blocks: rest, ..fragment.clone() });
            }
        }
        fragments.push(fragment);
    }
    random.shuffle(&mut fragments);
    layout.fragments = fragments;
    layout
}

/// Gives blocks and branches random counts, of which many are 0: no profile makes an image wrong.
pub fn give_random_counts(program: &mut Program, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for block in &mut program.blocks {
        let most = [0, 1, 30, 1000, 1_000_000][random.usize(..5)];
        block.count = random.u64(0..=most);
        match &mut block.exit {
            CodeExit::Conditional { count, .. } => *count = random.u64(0..=block.count),
            CodeExit::Jump { counts, .. } => {
                counts.iter_mut().for_each(|count| *count = random.u64(0..=most))
            }
            _ => {}
        }
    }
}
