//! The optimizer: from an image and a profile to a better image.

use std::path::Path;

use crate::layout::{self, Steps};
use crate::profile::{ImageProfile, IndirectCall, Profile};
use crate::program::{Program, Reference};
use crate::{Error, Problem, lift, output};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The steps of code layout.
    pub layout: Steps,
    /// Whether instructions that do nothing are removed.
    pub strip_nops: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { layout: Steps::ALL, strip_nops: true }
    }
}

/// An optimized image.
#[derive(Debug)]
pub struct Optimized {
    /// The file.
    pub bytes: Vec<u8>,
    /// The program that was written.
    pub program: Program,
}

/// Reads an image for optimization.
pub fn open(path: &Path) -> Result<Program, Error> {
    let image = image::Image::open(path)?;
    image.check_sections()?;
    lift::lift(image.bytes().to_vec()).map_err(|problem| Error::Unsuitable { path: path.into(), problem })
}

/// The part of a profile that is the program's.
pub fn find<'a>(profile: &'a Profile, program: &Program) -> Option<&'a ImageProfile> {
    profile.images.iter().find(|image| image.is_of(program))
}

/// Optimizes a program whose blocks have counts.
pub fn optimize(
    mut program: Program,
    calls: &[IndirectCall],
    options: Options,
) -> Result<Optimized, Problem> {
    if options.strip_nops {
        strip_nops(&mut program);
    }
    let layout = layout::layout(&program, calls, options.layout);
    let (bytes, _) = output::write(&program, &layout)?;
    Ok(Optimized { bytes, program })
}

/// Removes what the compiler and the linker filled gaps with. Returns how many instructions.
pub fn strip_nops(program: &mut Program) -> usize {
    let Program { blocks, procedures, .. } = program;
    let mut count = 0;
    for block in blocks.iter_mut().filter(|block| procedures[block.procedure as usize].frozen.is_none()) {
        let before = block.instructions.len();
        block.instructions.retain(|one| !one.is_nop() || one.reference != Reference::None);
        count += before - block.instructions.len();
    }
    count
}
