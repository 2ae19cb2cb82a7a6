//! Compiles the plugin that QEMU's emulators load; they define the functions that it calls.

fn main() {
    preload_build::compile(&["src/recorder.c"], &["../qemu-stream/include"], "recorder.so");
}
