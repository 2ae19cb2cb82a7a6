//! The images that blocks belong to: the kernel, PALcode, and the program's, which are recognized by their code.
//!
//! Nothing tells where the guest maps an image. But its code is not changed when it is mapped, and a page of the file becomes
//! a page of memory: a block lies in an image if its instructions do, at the same offset in a page.

use std::path::{Path, PathBuf};

use image::Image;
use trace::Function;

/// Bytes of a page of the guest.
const PAGE: u64 = 8192;

/// A file with code.
#[derive(Debug)]
pub(super) struct ImageFile {
    path: PathBuf,
    image: Image,
}

/// An image at its address in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedImage {
    /// An index of the files.
    pub file: usize,
    /// Run-time address minus link-time address.
    pub bias: u64,
}

/// The files that a program's blocks may come from.
#[derive(Debug, Default)]
pub(super) struct ImageFiles(Vec<ImageFile>);

impl ImageFiles {
    /// Opens files; those that are no images are left out.
    pub fn open<'a>(paths: impl IntoIterator<Item = &'a Path>) -> ImageFiles {
        let open = |path: &Path| Some(ImageFile { path: path.into(), image: Image::open(path).ok()? });
        ImageFiles(paths.into_iter().filter_map(open).collect())
    }

    /// Adds an image, and returns its index.
    pub fn add(&mut self, path: &Path, image: Image) -> usize {
        self.0.push(ImageFile { path: path.into(), image });
        self.0.len() - 1
    }

    /// The image of a file.
    pub fn image(&self, file: usize) -> &Image {
        &self.0[file].image
    }

    /// Whether a mapped image has these instructions at an address.
    pub fn has(&self, mapped: PlacedImage, address: u64, words: &[u32]) -> bool {
        let image = self.image(mapped.file);
        let link = address.wrapping_sub(mapped.bias);
        let code = image.code().iter().find(|code| (code.address..code.end()).contains(&link));
        code.is_some_and(|code| {
            let mut own = image.instructions_from(code, link);
            words.iter().all(|&word| own.next().is_some_and(|(_, own)| own == word))
        })
    }

    /// The only image that can have these instructions at an address; None if there is none, or several.
    pub fn recognize(&self, address: u64, words: &[u32]) -> Option<PlacedImage> {
        let mut found = self.candidates(address).filter(|&mapped| self.has(mapped, address, words));
        // Sections can share a page.
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// All images, at all addresses where a page of their code is the page of an address.
    fn candidates(&self, address: u64) -> impl Iterator<Item = PlacedImage> {
        self.0.iter().enumerate().flat_map(move |(file, one)| {
            let is_fixed = !one.image.position_independent();
            let pages = one.image.code().iter().flat_map(move |code| {
                let first = code.address & !(PAGE - 1);
                (first..code.end()).step_by(PAGE as usize)
            });
            let biases = pages.map(move |page| (address & !(PAGE - 1)).wrapping_sub(page));
            biases.filter(move |&bias| !is_fixed || bias == 0).map(move |bias| PlacedImage { file, bias })
        })
    }

    /// The image as traces have it.
    pub fn described(&self, mapped: PlacedImage) -> events::MappedImage {
        let ImageFile { path, image } = &self.0[mapped.file];
        let segments = image.segments().iter().map(image::Segment::addresses);
        let (start, end) = segments.fold((u64::MAX, 0), |(start, end), addresses| {
            (start.min(addresses.start), end.max(addresses.end))
        });
        events::MappedImage {
            path: path.clone(),
            start: start.wrapping_add(mapped.bias),
            end: end.wrapping_add(mapped.bias),
            bias: mapped.bias,
            build_id: image.build_id().unwrap_or_default().to_vec(),
            functions: Vec::new(),
        }
    }

    /// The function at an address of a mapped image, whose number in the process is `number`.
    pub fn function(&self, mapped: PlacedImage, number: u32, address: u64) -> Option<Function> {
        let image = self.image(mapped.file);
        let function = image.function_at(address.wrapping_sub(mapped.bias))?;
        Some(Function {
            name: image.symbol_of(function).into(),
            image: number,
            address: function.address.wrapping_add(mapped.bias),
            size: function.size,
        })
    }
}
