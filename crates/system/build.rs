//! Compiles the plugin that qemu-system-alpha loads; QEMU defines the functions that it calls.

fn main() {
    preload_build::compile(&["src/recorder.c"], &["../qemu-stream/include"], "recorder.so");
}
