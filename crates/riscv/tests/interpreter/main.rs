//! Tests of RISC-V's interpreter against an independent implementation, and against the summaries of instructions.

mod program;
mod sequences;
mod summaries;
