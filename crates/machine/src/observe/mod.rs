//! How models observe an execution: from the end of a warm-up on, in samples, for each process, thread and unit of work, and
//! several machines in parallel.

pub(crate) mod instruction_counts;
pub(crate) mod parallel;
pub(crate) mod per_process;
pub(crate) mod per_thread;
pub(crate) mod sample_parts;
pub(crate) mod sampling;
pub(crate) mod warm_up;
