//! An image is taken apart and written again as it was, or refused with a message.
#![no_main]

use image::Image;
use libfuzzer_sys::fuzz_target;
use spike::{layout, lift, output};

fuzz_target!(|bytes: &[u8]| {
    if Image::parse("image", bytes.to_vec()).is_err() {
        return;
    }
    let written = lift::lift(bytes.to_vec()).and_then(|program| {
        let original = layout::original(&program);
        assert!(layout::is_complete(&original, 0..program.blocks.len() as u32), "a block without a place");
        output::write(&program, &original)
    });
    if let Err(error) = written {
        assert!(!error.to_string().is_empty());
    }
});
