//! The payload of a dictionary chunk: images, functions and blocks that are added to a process's dictionary.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::Function;
use crate::bytes::{Bytes, Malformed, put, put_difference, put_slice};
use crate::container::{MAX_BLOCK, MAX_BYTES, pack, unpack};
use events::{Block, MappedImage};
use isa::InstructionSet;

/// Images, functions and blocks, numbered consecutively in their process from `first_…` on. The references of
/// functions and blocks use these numbers, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definitions {
    pub first_image: u32,
    pub images: Vec<MappedImage>,
    pub first_function: u32,
    pub functions: Vec<Function>,
    pub first_block: u32,
    pub blocks: Vec<(Block, Option<u32>)>,
    /// Objects that the process maps, with names. Their numbers are those of the whole recording.
    pub objects: Vec<(u32, String)>,
    /// Units of work with their classes. Units are numbered in the whole recording.
    pub unit_classes: Vec<(u64, String)>,
}

/// Compression level of zstd: high, since dictionaries are small and every trace has one.
const LEVEL: i32 = 9;

impl Definitions {
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
            && self.functions.is_empty()
            && self.blocks.is_empty()
            && self.objects.is_empty()
            && self.unit_classes.is_empty()
    }

    /// Empty definitions whose numbers follow these.
    pub fn next(&self) -> Definitions {
        Definitions {
            first_image: self.first_image + self.images.len() as u32,
            first_function: self.first_function + self.functions.len() as u32,
            first_block: self.first_block + self.blocks.len() as u32,
            ..Definitions::default()
        }
    }

    /// Appends definitions whose numbers follow these.
    pub fn append(&mut self, mut next: Definitions) {
        self.images.append(&mut next.images);
        self.functions.append(&mut next.functions);
        self.blocks.append(&mut next.blocks);
        self.objects.append(&mut next.objects);
        self.unit_classes.append(&mut next.unit_classes);
    }

    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let mut names = Vec::new();
        put(&mut names, self.first_image.into());
        put(&mut names, self.images.len() as u64);
        for image in &self.images {
            put_slice(&mut names, image.path.as_os_str().as_bytes());
            put(&mut names, image.start);
            put(&mut names, image.end);
            put(&mut names, image.bias);
            put_slice(&mut names, &image.build_id);
        }
        put(&mut names, self.first_function.into());
        put(&mut names, self.functions.len() as u64);
        for function in &self.functions {
            put_slice(&mut names, function.name.as_bytes());
            put(&mut names, function.image.into());
            put(&mut names, function.address);
            put(&mut names, function.size);
        }
        // Before version 4 there was nothing of this.
        if !self.objects.is_empty() || !self.unit_classes.is_empty() {
            put(&mut names, self.objects.len() as u64);
            for (number, name) in &self.objects {
                put(&mut names, (*number).into());
                put_slice(&mut names, name.as_bytes());
            }
        }
        // Only recordings with classes have this.
        if !self.unit_classes.is_empty() {
            put(&mut names, self.unit_classes.len() as u64);
            for (unit, class) in &self.unit_classes {
                put(&mut names, *unit);
                put_slice(&mut names, class.as_bytes());
            }
        }
        let (mut blocks, mut words, mut code) = (Vec::new(), Vec::new(), Vec::new());
        put(&mut blocks, self.first_block.into());
        put(&mut blocks, self.blocks.len() as u64);
        let (mut end, mut last_function) = (0, 0);
        for (block, function) in &self.blocks {
            put_difference(&mut blocks, block.address, end);
            put(&mut blocks, block.words.len() as u64);
            put(&mut blocks, block.image.map_or(0, |image| u64::from(image) + 1));
            let function = function.map_or(0, |function| u64::from(function) + 1);
            put_difference(&mut blocks, function, last_function);
            words.extend(block.words.iter().flat_map(|word| word.to_le_bytes()));
            code.extend(&block.code);
            end = block.end();
            last_function = function;
        }
        let mut payload = Vec::new();
        for section in [names, blocks, words] {
            pack(&mut payload, &section, LEVEL, true)?;
        }
        if self.blocks.iter().any(|(block, _)| block.instruction_set.describes()) {
            pack(&mut payload, &code, LEVEL, true)?;
        }
        Ok(payload)
    }

    pub fn decode(payload: &[u8], set: &'static dyn InstructionSet) -> Result<Definitions, Malformed> {
        let (mut payload, mut room) = (Bytes(payload), MAX_BYTES);
        let mut section = || unpack(&mut payload, &mut room, true);
        let [names, blocks, words] = [section()?, section()?, section()?];
        let mut definitions = Definitions::default();
        definitions.decode_names(&mut Bytes(&names))?;
        definitions.decode_blocks(&mut Bytes(&blocks), &mut Bytes(&words), set)?;
        if set.describes() && !definitions.blocks.is_empty() {
            definitions.decode_code(&mut Bytes(&unpack(&mut payload, &mut room, true)?))?;
        }
        Ok(definitions)
    }

    fn decode_names(&mut self, names: &mut Bytes) -> Result<(), Malformed> {
        self.first_image = index(names)?;
        for _ in 0..names.number()? {
            let path = OsStr::from_bytes(names.slice()?).into();
            let [start, end, bias] = [names.number()?, names.number()?, names.number()?];
            let build_id = names.slice()?.to_vec();
            self.images.push(MappedImage { path, start, end, bias, build_id, functions: Vec::new() });
        }
        self.first_function = index(names)?;
        for _ in 0..names.number()? {
            let name = String::from_utf8_lossy(names.slice()?).into_owned();
            let (image, address, size) = (index(names)?, names.number()?, names.number()?);
            self.functions.push(Function { name, image, address, size });
        }
        if !names.0.is_empty() {
            for _ in 0..names.number()? {
                let number = index(names)?;
                self.objects.push((number, String::from_utf8_lossy(names.slice()?).into_owned()));
            }
        }
        if !names.0.is_empty() {
            for _ in 0..names.number()? {
                let unit = names.number()?;
                self.unit_classes.push((unit, String::from_utf8_lossy(names.slice()?).into_owned()));
            }
        }
        Ok(())
    }

    fn decode_blocks(
        &mut self,
        blocks: &mut Bytes,
        words: &mut Bytes,
        instruction_set: &'static dyn InstructionSet,
    ) -> Result<(), Malformed> {
        self.first_block = index(blocks)?;
        let (mut end, mut last_function) = (0, 0);
        for _ in 0..blocks.number()? {
            let address = blocks.difference(end)?;
            let count = blocks.below(MAX_BLOCK as u64 + 1, "a block is too long")?;
            let image = optional(blocks.number()?)?;
            last_function = blocks.difference(last_function)?;
            let slice = words.take(4 * count)?;
            let words = slice.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four")));
            let block = Block { image, ..Block::new(instruction_set, address, words.collect::<Vec<_>>()) };
            end = block.end();
            self.blocks.push((block, optional(last_function)?));
        }
        Ok(())
    }

    /// The blocks' code, whose lengths the words have.
    fn decode_code(&mut self, code: &mut Bytes) -> Result<(), Malformed> {
        for (block, _) in &mut self.blocks {
            let length = block.words.iter().map(|&word| block.instruction_set.length(word)).sum::<u64>();
            block.code = code.take(length)?.to_vec();
        }
        Ok(())
    }
}

fn index(bytes: &mut Bytes) -> Result<u32, Malformed> {
    Ok(bytes.below(u32::MAX.into(), "a number is too great")? as u32)
}

fn optional(number: u64) -> Result<Option<u32>, Malformed> {
    let index = u32::try_from(number).map_err(|_| Malformed("a number is too great"))?;
    Ok(index.checked_sub(1))
}
