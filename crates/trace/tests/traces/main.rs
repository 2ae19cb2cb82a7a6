//! Traces of made-up programs: written, read, damaged, checked.

mod checker;
mod compatible;
mod damage;
mod interleaved;
mod made;
mod positions;
mod program;
mod round_trip;
