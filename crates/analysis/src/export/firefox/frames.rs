//! Frames: a line of a function each, in its image by a symbol table with just these lines; or a name alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use events::BlockId;
use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, Frame, FrameFlags, FrameInfo, LibraryHandle, LibraryInfo, Profile, Symbol,
    SymbolTable,
};

use crate::names::file_name;
use crate::replay::Dictionary;

/// The frames of all instructions of a trace.
pub struct LineFrames {
    frames: Vec<FrameInfo>,
    /// By block, the frames of its instructions.
    runs: Vec<Box<[Run]>>,
    /// The sources of frames, by the path of their image and their address in it.
    pub sources: HashMap<(String, u32), FrameSource>,
}

/// Successive instructions of a block that have the same frame.
#[derive(Clone, Debug)]
pub struct Run {
    /// The frame's number.
    pub frame: u32,
    /// The indexes of the instructions.
    pub instructions: Range<usize>,
}

/// Where the code of a frame comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSource {
    /// The file and the line of the code.
    pub line: (String, u32),
    /// The file and the line where its function begins, if it is known.
    pub function: Option<(String, u32)>,
}

/// A line of a region in the code: the region's number, and the file and the line, if they are known.
type FrameKey = (u32, Option<(String, u32)>);

impl LineFrames {
    /// Of all instructions. Declares the images and the categories to the profile.
    pub fn new(dictionary: &Dictionary, profile: &mut Profile) -> LineFrames {
        let trace = dictionary.trace;
        let mut keys: HashMap<FrameKey, u32> = HashMap::new();
        // By frame: its key, and the image and the address of its first instruction.
        let mut first = Vec::new();
        let mut runs = Vec::new();
        for (block, facts) in trace.blocks().iter().zip(&dictionary.blocks) {
            let mut own: Vec<Run> = Vec::new();
            for (index, address) in block.addresses().enumerate() {
                let key = (facts.region, source(dictionary, block.image, address));
                let frame = *keys.entry(key.clone()).or_insert_with(|| {
                    first.push((key, block.image, address));
                    first.len() as u32 - 1
                });
                match own.last_mut() {
                    Some(run) if run.frame == frame => run.instructions.end = index + 1,
                    _ => own.push(Run { frame, instructions: index..index + 1 }),
                }
            }
            runs.push(own.into());
        }
        let mut frames = LineFrames { frames: Vec::new(), runs, sources: HashMap::new() };
        frames.make(dictionary, profile, &first);
        frames
    }

    /// The frames of a block's instructions.
    pub fn runs(&self, block: BlockId) -> &[Run] {
        &self.runs[block as usize]
    }

    /// How many frames there are.
    pub fn number(&self) -> usize {
        self.frames.len()
    }

    /// A frame.
    pub fn info(&self, frame: u32) -> FrameInfo {
        self.frames[frame as usize].clone()
    }

    fn make(
        &mut self,
        dictionary: &Dictionary,
        profile: &mut Profile,
        first: &[(FrameKey, Option<u32>, u64)],
    ) {
        let images = dictionary.trace.images();
        let mut symbols = vec![Vec::new(); images.len()];
        let offset = |region: u32, image: Option<u32>, address: u64| {
            let region = &dictionary.regions[region as usize];
            let own = dictionary.names.code(image, address)?;
            // A block can go on in the next function: that function's addresses have its own name.
            let is_own = own.start == region.start && Some(&own.name) == region.name.as_ref();
            let image = image.filter(|_| is_own)?;
            let offset = address.checked_sub(images[image as usize].start)?;
            Some((image, u32::try_from(offset).ok()?))
        };
        let offsets: Vec<Option<(u32, u32)>> =
            first.iter().map(|((region, _), image, address)| offset(*region, *image, *address)).collect();
        for (((region, source), ..), offset) in first.iter().zip(&offsets) {
            let region = &dictionary.regions[*region as usize];
            let (Some((image, offset)), Some(name)) = (*offset, &region.name) else { continue };
            let symbol = Symbol { address: offset, size: Some(1), name: name.function.clone() };
            symbols[image as usize].push(symbol);
            if let Some(line) = source.clone() {
                let function = self::source(dictionary, Some(image), region.start);
                let path = images[image as usize].path.display().to_string();
                self.sources.insert((path, offset), FrameSource { line, function });
            }
        }
        let libraries: Vec<LibraryHandle> = images
            .iter()
            .zip(symbols)
            .map(|(image, symbols)| profile.add_lib(library(image, symbols)))
            .collect();
        let categories = Categories::new(profile);
        for (((region, _), image, _), offset) in first.iter().zip(offsets) {
            let frame = match offset {
                Some((image, offset)) => {
                    Frame::RelativeAddressFromInstructionPointer(libraries[image as usize], offset)
                }
                None => Frame::Label(profile.intern_string(&dictionary.regions[*region as usize].label(0))),
            };
            let category_pair = categories.of(dictionary, *image).into();
            self.frames.push(FrameInfo { frame, category_pair, flags: FrameFlags::empty() });
        }
    }
}

/// The file and the line of an instruction.
fn source(dictionary: &Dictionary, image: Option<u32>, address: u64) -> Option<(String, u32)> {
    let location = dictionary.names.location(image, address)?;
    Some((location.file, location.line?))
}

/// Kinds of code, which the profiler shows in different colours.
struct Categories {
    program: CategoryHandle,
    library: CategoryHandle,
    loader: CategoryHandle,
    other: CategoryHandle,
}

impl Categories {
    fn new(profile: &mut Profile) -> Categories {
        Categories {
            program: profile.add_category("Program", CategoryColor::Blue),
            library: profile.add_category("Libraries", CategoryColor::Orange),
            loader: profile.add_category("Dynamic linker", CategoryColor::Green),
            other: profile.add_category("Code outside images", CategoryColor::Purple),
        }
    }

    fn of(&self, dictionary: &Dictionary, image: Option<u32>) -> CategoryHandle {
        let header = dictionary.trace.header();
        match image.map(|image| &dictionary.trace.images()[image as usize].path) {
            None => self.other,
            Some(path) if file_name(path) == file_name(&header.program) => self.program,
            Some(path) if file_name(path).starts_with("ld-") || file_name(path).starts_with("ld.") => {
                self.loader
            }
            Some(_) => self.library,
        }
    }
}

fn library(image: &events::MappedImage, symbols: Vec<Symbol>) -> LibraryInfo {
    let (name, path) = (file_name(&image.path), image.path.display().to_string());
    let build_id: String = image.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    LibraryInfo {
        debug_name: name.clone(),
        name,
        debug_path: path.clone(),
        path,
        debug_id: DebugId::nil(),
        code_id: (!build_id.is_empty()).then_some(build_id),
        arch: Some("alpha".into()),
        symbol_table: Some(Arc::new(SymbolTable::new(symbols))),
    }
}
