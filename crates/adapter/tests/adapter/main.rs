//! Tests of the models of adapters.

mod by_hand;
mod conservation;
mod cycle_bus;
mod descriptions;
mod logs;
mod traffic;
