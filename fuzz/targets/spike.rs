//! An image is taken apart and written again as it was, or refused with a message; what was written is an image.
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
    match written {
        Ok((bytes, _)) => assert!(Image::parse("image", bytes).is_ok(), "no image was written"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
