//! Tests of reservations and sections on small pools of huge pages, which each test gives back.
//!
//! They need root's rights and a kernel with huge pages; without, they are skipped, and print the reason.

mod failures;
mod guard;
mod interrupted;
mod languages;
mod programs;
mod reservations;
mod sections;
mod study;
