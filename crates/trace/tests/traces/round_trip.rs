//! Traces that are written can be read again.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use events::record::{Event, Mark};
use events::{Block, MappedImage};
use pathlength_trace::{Header, ProcessDictionary, StreamWriter, Trace, Writer};
use proptest::prelude::*;

use crate::made::{begin, made, path, read_stream};

/// A process that executed nothing that was recorded, such as one of a server with marks of the heap only, defines nothing.
#[test]
fn marks_need_no_dictionary() {
    let path = path("marks-alone");
    let process = ProcessDictionary::new(&begin(&path, &Header::default()), 0, 1);
    let marks = [Event::Mark(Mark::Order(1)).word(), Event::Mark(Mark::SystemCall(4)).word()];
    let mut stream = StreamWriter::new(&process);
    stream.write(&marks).unwrap();
    stream.finish().unwrap();
    drop((stream, process));
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.problems(), &[]);
    assert_eq!(read_stream(&trace, 0), marks);
}

/// Classes of units come with the records that the units end in, with and without objects.
#[test]
fn units_have_their_classes() {
    for has_objects in [false, true] {
        let path = path("classes");
        let process = ProcessDictionary::new(&begin(&path, &Header::default()), 0, 1);
        let mut stream = StreamWriter::new(&process);
        for (unit, class) in [(0, "Payment"), (1, "New-Order"), (2, "Payment")] {
            if has_objects {
                process.add_object(unit + 1, || format!("object {unit}"));
            }
            stream.write(&[Event::Mark(Mark::UnitBegins(unit.into())).word()]).unwrap();
            process.add_unit_class(unit.into(), class);
            stream.write(&[Event::Mark(Mark::UnitEnds(unit.into())).word()]).unwrap();
        }
        stream.finish().unwrap();
        drop((stream, process));
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.problems(), &[]);
        let classes: Vec<_> =
            trace.unit_classes().iter().map(|(unit, class)| (*unit, class.as_str())).collect();
        assert_eq!(classes, [(0, "Payment"), (1, "New-Order"), (2, "Payment")]);
        assert_eq!(trace.mapped_objects().len(), if has_objects { 3 } else { 0 });
    }
}

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

#[test]
fn what_cannot_be_read_again_is_not_written() {
    let path = path("refused");
    let process = ProcessDictionary::new(&begin(&path, &Header::default()), 0, 1);
    let block = |count| Block::new(&isa::Alpha, 0x1000, vec![0x47ff_041f; count]);
    for (count, is_fine) in [(0, false), (1, true), (1 << 16, true), ((1 << 16) + 1, false)] {
        assert_eq!(process.block(block(count), || None).is_ok(), is_fine, "{count}");
    }
    let mut stream = StreamWriter::new(&process);
    let mark = Event::Mark(Mark::Gap).word();
    for words in [vec![mark, 0x1000], vec![Event::Block(2).word()]] {
        let error = stream.write(&words).unwrap_err().to_string();
        assert!(error.starts_with("these are no records"), "{error}");
    }
}

#[test]
fn names_need_not_be_text() {
    let path = path("names");
    let name = OsStr::from_bytes(b"/bin/\xff\xfe");
    let process =
        ProcessDictionary::new(&begin(&path, &Header { program: name.into(), ..Header::default() }), 0, 1);
    let (start, end, bias, build_id) = (0, 8, 0, Vec::new());
    process.add_image(MappedImage { path: name.into(), start, end, bias, build_id, functions: Vec::new() });
    let block = Block { image: Some(0), ..Block::new(&isa::Alpha, 0, vec![0x47ff_041f]) };
    let id = process.block(block, || None).unwrap();
    let mut stream = StreamWriter::new(&process);
    stream.write(&[Event::Block(id).word()]).unwrap();
    drop(stream);
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.header().program, Path::new("/bin/\u{fffd}\u{fffd}"));
    assert_eq!(trace.images()[0].path, name);
}

#[test]
fn a_full_disk_is_told() {
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let error = Writer::new(full, &Header::default()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}
