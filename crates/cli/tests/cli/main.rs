//! The command as its users meet it: what it prints, its exit status, and what it does with bad input.

mod arguments;
mod attach;
mod bad_input;
mod build;
mod caches;
mod compare;
mod count;
mod crashes;
mod damaged;
mod export;
mod gdb;
mod isolation;
mod misses;
mod names;
mod outputs;
mod run;
mod show;
mod signals;
mod strides;
mod study;
mod support;
mod symbols;
mod time;
mod trace;
mod usual;
mod warm_up;
