//! What is written is read again.

use pathlength_trace::Trace;
use proptest::prelude::*;

use crate::made::{made, path, read_stream};

proptest! {
    #[test]
    fn what_is_written_is_read(made in made()) {
        let path = path("round-trip");
        let written = made.write(&path);
        let trace = Trace::open(&path).unwrap();
        prop_assert_eq!(trace.problems(), &[]);
        prop_assert_eq!(trace.header(), &made.header());
        let mut not_empty = written.iter().filter(|words| !words.is_empty());
        for stream in 0..trace.streams().len() {
            prop_assert_eq!(&read_stream(&trace, stream), not_empty.next().unwrap());
        }
        prop_assert_eq!(not_empty.next(), None);
        // The dictionary is written with the first records.
        let blocks = if trace.streams().is_empty() { &[][..] } else { &made.blocks };
        for block in blocks {
            let found = trace.blocks().iter().position(|one| one.address == block.address && one.words == block.words);
            let id = found.unwrap();
            prop_assert_eq!(trace.blocks()[id].image, Some(0));
            let function = trace.function_of(id as u32).map(|index| trace.functions()[index as usize].name.clone());
            let address = block.address;
            prop_assert_eq!(function, (address % 5 > 0).then(|| format!("f{}", address % 3)));
        }
    }

    #[test]
    fn the_same_records_make_the_same_file(made in made()) {
        let path = path("same");
        made.write(&path);
        let first = std::fs::read(&path).unwrap();
        made.write(&path);
        prop_assert_eq!(first, std::fs::read(&path).unwrap());
    }
}
