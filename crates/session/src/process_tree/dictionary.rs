//! The blocks of all processes of a program, under common numbers.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use events::{Block, BlockId, Consumer, MappedImage};
use isa::InstructionSet;
use trace::{Function, ProcessDictionary, Trace, Writer};

/// The definitions of all processes, each of them once.
pub struct TreeDictionary {
    /// What writes the trace that has the definitions.
    process: Arc<ProcessDictionary>,
    /// The trace's file.
    file: File,
    /// The set of blocks that lie in no image.
    instruction_set: &'static dyn InstructionSet,
    images: Vec<(MappedImage, Option<Arc<image::Image>>)>,
    image_numbers: HashMap<(PathBuf, u64, u64, u64), u32>,
}

impl TreeDictionary {
    /// Without definitions, written to an empty file that was opened for appending.
    pub fn new(file: File, header: &trace::Header) -> io::Result<TreeDictionary> {
        let writer = Writer::new(file.try_clone()?, header)?;
        let process = ProcessDictionary::new(&writer, 0, std::process::id());
        let named = |set: &&dyn InstructionSet| set.name() == header.instruction_set;
        let set = isa::INSTRUCTION_SETS.into_iter().find(named).unwrap_or(isa::INSTRUCTION_SETS[0]);
        let (images, image_numbers) = (Vec::new(), HashMap::new());
        Ok(TreeDictionary { process, file, instruction_set: set, images, image_numbers })
    }

    /// The number of an image, which is defined for the consumer if it is new.
    pub fn image(&mut self, image: MappedImage, consumer: &mut dyn Consumer) -> u32 {
        let key = (image.path.clone(), image.start, image.end, image.bias);
        let images = &mut self.images;
        *self.image_numbers.entry(key).or_insert_with(|| {
            consumer.map(&image);
            self.process.add_image(image.clone());
            // An image that cannot be read any more has no functions.
            let file = linux_user::read_image(&image.path).ok().map(Arc::new);
            images.push((image, file));
            images.len() as u32 - 1
        })
    }

    /// The number of a block, which is defined for the consumer if it is new.
    pub fn block(
        &mut self,
        (address, image, words): (u64, Option<u32>, Vec<u32>),
        consumer: &mut dyn Consumer,
    ) -> io::Result<BlockId> {
        let file = image.and_then(|image| self.images[image as usize].1.as_ref());
        let set = file.map_or(self.instruction_set, |file| file.instruction_set());
        let block = Block { image, ..Block::new(set, address, words) };
        let mut is_new = false;
        let id = self.process.block(block.clone(), || {
            is_new = true;
            let (mapped, file) = &self.images[image? as usize];
            let function = file.as_ref()?.function_at(address.wrapping_sub(mapped.bias))?;
            let (name, start) = (function.name.clone(), function.address.wrapping_add(mapped.bias));
            Some(Function { name, image: image?, address: start, size: function.size })
        })?;
        if is_new {
            consumer.define(&block);
        }
        Ok(id)
    }

    /// A trace with the definitions, and without records; errors call it by the program's name.
    pub fn finish(self, program: &Path) -> io::Result<Trace> {
        self.process.write_dictionary()?;
        Trace::from_file(self.file, program).map_err(io::Error::other)
    }
}
