//! Programs on the translator do as they do natively, and each of their instructions is counted as often as single steps find it.

mod programs;
mod sequences;
mod single_steps;
mod stepped;
mod support;

/// The translator is another instance of this executable: it begins here, before the harness of the tests.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    pathlength_translator::run_if_translator();
}
