//! Views of traces compared with traces written by hand, and with a recount.

mod addresses;
mod alignment;
mod calls;
mod entries;
mod exports;
mod instructions;
mod made;
mod recount;
mod strides;
