//! The code that wrong paths run into: that of the mapped images, and of executed blocks outside them.

use std::collections::HashMap;

use events::Block;
use image::Image;
use isa::{InstructionSet, MemoryAccess};

use super::base_registers::BaseEffect;
use super::rules::{CoreInstruction, CoreRules};
use crate::core::predictor::BlockEnd;

/// An instruction of the code.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeInstruction {
    pub instruction: CoreInstruction,
    pub access: Option<MemoryAccess>,
    pub effect: BaseEffect,
    pub end: BlockEnd,
    pub zero: u8,
}

/// The code of a program.
pub(super) struct CodeMemory {
    /// Images that are mapped, the last one last.
    images: Vec<CodeImage>,
    /// Words of executed blocks that no image has.
    words: HashMap<u64, (u32, &'static dyn InstructionSet)>,
    /// Decoded instructions, and the index of each by its address; [`NO_CODE`] where there is none.
    decoded: Vec<CodeInstruction>,
    indices: HashMap<u64, u32>,
    /// At the low bits of addresses: indices that were looked up last.
    recent: Vec<(u64, u32)>,
}

/// The index of no instruction.
const NO_CODE: u32 = u32::MAX;
const RECENT: usize = 1 << 13;
/// An address of no code.
const NOWHERE: u64 = u64::MAX;

/// An image in memory.
struct CodeImage {
    mapped: events::MappedImage,
    /// It is read when a path first enters it; `None` then if it cannot be read, or is another one now.
    image: Option<Option<Image>>,
}

impl CodeImage {
    /// The word at an address, if its code is there.
    fn word(&mut self, address: u64) -> Option<(u32, &'static dyn InstructionSet)> {
        let CodeImage { mapped, image } = self;
        if !(mapped.start..mapped.end).contains(&address) {
            return None;
        }
        let image = image.get_or_insert_with(|| read(mapped)).as_ref()?;
        let linked = address.wrapping_sub(mapped.bias);
        let segment =
            image.segments().iter().find(|one| one.executable && one.addresses().contains(&linked))?;
        let offset = segment.file.start.checked_add((linked - segment.address) as usize)?;
        let bytes = image.bytes().get(offset..segment.file.end)?;
        let mut word = [0; 4];
        let length = bytes.len().min(4);
        word[..length].copy_from_slice(&bytes[..length]);
        let (word, set) = (u32::from_le_bytes(word), image.instruction_set());
        // A short instruction is in the low half.
        let word = if set.length(word) == 2 { word & 0xffff } else { word };
        (set.length(word) <= length as u64).then_some((word, set))
    }
}

/// The image, if it is still the one that was mapped.
fn read(mapped: &events::MappedImage) -> Option<Image> {
    let image = Image::open(&mapped.path).ok()?;
    (image.build_id().unwrap_or_default() == mapped.build_id).then_some(image)
}

impl CodeMemory {
    /// Without code.
    pub fn new() -> CodeMemory {
        CodeMemory {
            images: Vec::new(),
            words: HashMap::new(),
            decoded: Vec::new(),
            indices: HashMap::new(),
            recent: vec![(NOWHERE, NO_CODE); RECENT],
        }
    }

    /// An image is mapped.
    pub fn map(&mut self, image: &events::MappedImage) {
        self.images.push(CodeImage { mapped: image.clone(), image: None });
        self.forget();
    }

    /// A block is executed the first time: its code is known, also if no image has it.
    pub fn learn(&mut self, block: &Block) {
        if self.images.iter_mut().rev().find_map(|image| image.word(block.address)).is_some() {
            return;
        }
        for (&word, address) in block.words.iter().zip(block.addresses()) {
            self.words.insert(address, (word, block.instruction_set));
            // What is decoded there has no code; it stays in the list.
            self.indices.remove(&address);
            self.recent[recent_slot(address)] = (NOWHERE, NO_CODE);
        }
    }

    /// Forgets what was decoded.
    fn forget(&mut self) {
        self.decoded.clear();
        self.indices.clear();
        self.recent.fill((NOWHERE, NO_CODE));
    }

    /// The instruction at an address, if its code is known.
    pub fn at(&mut self, address: u64, rules: &CoreRules) -> Option<&CodeInstruction> {
        let slot = recent_slot(address);
        if self.recent[slot].0 != address {
            self.recent[slot] = (address, self.index(address, rules));
        }
        self.decoded.get(self.recent[slot].1 as usize)
    }

    fn index(&mut self, address: u64, rules: &CoreRules) -> u32 {
        let CodeMemory { images, words, decoded, indices, .. } = self;
        *indices.entry(address).or_insert_with(|| {
            let in_image = images.iter_mut().rev().find_map(|image| image.word(address));
            let word = in_image.or_else(|| words.get(&address).copied());
            match word.and_then(|(word, set)| CodeInstruction::new(set, word, address, rules)) {
                Some(instruction) => {
                    decoded.push(instruction);
                    decoded.len() as u32 - 1
                }
                None => NO_CODE,
            }
        })
    }
}

fn recent_slot(address: u64) -> usize {
    (address >> 2) as usize % RECENT
}

impl CodeInstruction {
    fn new(set: &dyn InstructionSet, word: u32, address: u64, rules: &CoreRules) -> Option<CodeInstruction> {
        Some(CodeInstruction {
            instruction: rules.instruction(set, word),
            access: set.summary(word)?.access,
            effect: BaseEffect::of(set, word),
            end: BlockEnd::of(set, word, address),
            zero: set.zero_register(),
        })
    }
}
