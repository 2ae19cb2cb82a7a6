//! Traces of programs that never ran: written, read, damaged, checked.

mod damage;
mod made;
mod round_trip;
