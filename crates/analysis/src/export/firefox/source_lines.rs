//! Files and lines of frames. The library that makes the profile has no fields for them, so they are added to its tables of
//! functions and frames; all else is copied as it is.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use fxprof_processed_profile::Profile;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::frames::LineFrames;

/// An object whose values are not decoded.
type RawObject = BTreeMap<String, Box<RawValue>>;

/// Writes a profile with the sources of its frames.
pub fn write(profile: &Profile, frames: &LineFrames, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string(profile)?;
    let mut document: RawObject = serde_json::from_str(&text)?;
    drop(text);
    let libraries: Vec<Value> = member(&document, "libs")?;
    let paths: Vec<&str> = libraries.iter().map(|library| library["path"].as_str().unwrap_or("")).collect();
    let mut threads: Vec<RawObject> = member(&document, "threads")?;
    for thread in &mut threads {
        add_sources(thread, &paths, frames)?;
    }
    document.insert("threads".into(), to_raw_value(&threads)?);
    Ok(serde_json::to_writer(out, &document)?)
}

fn member<T: serde::de::DeserializeOwned>(object: &RawObject, name: &str) -> io::Result<T> {
    let value = object.get(name).ok_or_else(|| io::Error::other(format!("a profile without {name}")))?;
    Ok(serde_json::from_str(value.get())?)
}

/// Adds the file of each function, and the line of each frame.
fn add_sources(thread: &mut RawObject, paths: &[&str], frames: &LineFrames) -> io::Result<()> {
    let mut frame_table: Value = member(thread, "frameTable")?;
    let mut functions: Value = member(thread, "funcTable")?;
    let resources: Value = member(thread, "resourceTable")?;
    let mut strings: Vec<String> = member(thread, "stringArray")?;
    let mut files: HashMap<String, usize> = HashMap::new();
    // By function, the file that its frames' lines are in.
    let mut own: HashMap<usize, String> = HashMap::new();
    for row in 0..frame_table["length"].as_u64().unwrap_or(0) as usize {
        let Some(function) = index(&frame_table["func"][row]) else { continue };
        let library = index(&functions["resource"][function]).and_then(|at| index(&resources["lib"][at]));
        let path = library.and_then(|library| paths.get(library));
        let address = frame_table["address"][row].as_u64().and_then(|address| u32::try_from(address).ok());
        let (Some(path), Some(address)) = (path, address) else { continue };
        let Some(source) = frames.sources.get(&((*path).to_owned(), address)) else { continue };
        let file = own.entry(function).or_insert_with(|| {
            let (file, line) = source.function.as_ref().unwrap_or(&source.line);
            let next = strings.len();
            let number = *files.entry(file.clone()).or_insert(next);
            if number == next {
                strings.push(file.clone());
            }
            functions["fileName"][function] = json!(number);
            if source.function.is_some() {
                functions["lineNumber"][function] = json!(line);
            }
            file.clone()
        });
        // The line of an inlined function in another file would be taken for a line of this one.
        if *file == source.line.0 {
            frame_table["line"][row] = json!(source.line.1);
        }
    }
    thread.insert("frameTable".into(), to_raw_value(&frame_table)?);
    thread.insert("funcTable".into(), to_raw_value(&functions)?);
    thread.insert("stringArray".into(), to_raw_value(&strings)?);
    Ok(())
}

/// An index of a table; none if it is null or negative.
fn index(value: &Value) -> Option<usize> {
    value.as_u64().map(|index| index as usize)
}
