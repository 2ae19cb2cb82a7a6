//! An image is opened or rejected, and answers every query.
#![no_main]

use image::{Image, SymbolPattern};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let image = match Image::parse("image", bytes.to_vec()) {
        Ok(image) => image,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for segment in image.segments() {
        assert!(bytes.get(segment.file.clone()).is_some(), "a segment outside the file");
    }
    let instructions: usize = image.code().iter().map(|code| image.instructions(code).count()).sum();
    assert!(instructions <= bytes.len() / 4);
    for function in image.functions() {
        let found = image.function_at(function.address).expect("a function at its address");
        assert_eq!(found.address, function.address);
        image.location(function.address);
        assert!(!image.symbol_of(function).is_empty());
    }
    image.location(image.entry());
    image.find(&SymbolPattern::new("main"));
    let lengths = (image.variables().len(), image.exported().count(), image.needed().len());
    let facts =
        (image.kind(), image.interpreter(), image.soname(), image.build_id(), image.program_header_address());
    std::hint::black_box((lengths, facts));
    assert_eq!(image.damage().is_some(), image.check_sections().is_err());
});
