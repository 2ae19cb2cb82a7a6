//! Why an image cannot be optimized, in one sentence that says what to do.

use std::path::PathBuf;

/// A failure to read, optimize or write an image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not an Alpha image.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// An image that cannot be rewritten.
    #[error("{}: {problem}", path.display())]
    Unsuitable {
        /// The image.
        path: PathBuf,
        /// The problem.
        problem: Problem,
    },
    /// A profile that cannot be used.
    #[error("{}: {problem}", path.display())]
    Profile {
        /// The profile.
        path: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
}

/// Why an image cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Another guest's.
    #[error(
        "is of another instruction set; spike rewrites Alpha images, so give one built by alpha-linux-gnu-gcc"
    )]
    NotAlpha,
    /// Linked without `--emit-relocs`.
    #[error(
        "was linked without relocations, so that pointers to code cannot be found; link it with \
         -Wl,--emit-relocs, and do not strip it"
    )]
    NoRelocations,
    /// Written by spike.
    #[error("was optimized or instrumented already; give the original image")]
    Rewritten,
    /// Not written by spike.
    #[error("was not optimized by spike; make it of the original with pathlength spike optimize")]
    NotRewritten,
    /// Program headers only.
    #[error(
        "has no section headers: it was packed, or they were stripped; give the image as the linker wrote it (upx -d unpacks)"
    )]
    NoSections,
    /// No symbols.
    #[error("has no symbol table; do not strip it (--strip-debug is allowed)")]
    NoSymbols,
    /// A shared object without code that the loader executes.
    #[error(
        "has no initialisation function, so that it cannot be instrumented; link it with the compiler driver's start files"
    )]
    NoInitialisation,
    /// Tables that contradict each other.
    #[error("damaged ELF file: {0}; build it again")]
    Damaged(String),
    /// Code that no known compiler makes.
    #[error("cannot be rewritten: {0}; leave this image as it is")]
    Unsupported(String),
    /// The distance of a branch.
    #[error("code is too large: a branch from {from:#x} does not reach {to:#x}")]
    OutOfReach {
        /// The branch.
        from: u64,
        /// Its target.
        to: u64,
    },
}

impl From<object::read::Error> for Problem {
    fn from(error: object::read::Error) -> Problem {
        Problem::Damaged(error.to_string())
    }
}
