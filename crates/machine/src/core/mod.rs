//! Processors' cores: branch predictors, in-order pipelines, and out-of-order cores.

pub(crate) mod out_of_order;
pub mod pipeline;
pub mod predictor;
