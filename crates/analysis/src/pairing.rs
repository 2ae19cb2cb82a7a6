//! Pairs the images of two runs, so that two builds can be compared function by function.

use std::collections::{BTreeSet, HashMap};

use events::LoadedImage;
use image::Image;
use serde::{Deserialize, Serialize};

use crate::names::file_name;
use crate::profile::Profile;

/// The common name of both runs' programs.
const PROGRAM: &str = "program";
/// The share of exported functions that two libraries have in common if one is a build of the other.
const SAME: f64 = 0.5;

/// The images of two runs in pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// For each run, by an image's file name, the name of its pair.
    names: [HashMap<String, String>; 2],
    /// Notes on the pairs, in sentences.
    pub notes: Vec<String>,
}

/// The features by which images are paired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageIdentity {
    file_name: String,
    soname: Option<String>,
    exported: BTreeSet<String>,
}

impl ImageIdentity {
    /// The images of a run, each once; the program first.
    pub fn of_images(images: &[LoadedImage]) -> Vec<ImageIdentity> {
        let mut all: Vec<ImageIdentity> = Vec::new();
        for image in images {
            let file_name = file_name(&image.path);
            if all.iter().all(|known| known.file_name != file_name) {
                let file = Image::open_of_any_set(&image.path).ok();
                let soname = file.as_ref().and_then(|file| file.soname().map(String::from));
                let exported = file.map(|file| file.exported().map(String::from).collect());
                all.push(ImageIdentity { file_name, soname, exported: exported.unwrap_or_default() });
            }
        }
        all
    }

    /// The share of functions that both export among those that one of them does.
    fn likeness(&self, other: &ImageIdentity) -> f64 {
        let common = self.exported.intersection(&other.exported).count();
        common as f64 / self.exported.union(&other.exported).count().max(1) as f64
    }
}

impl Pairing {
    /// Pairs the images of two runs: the programs; then libraries of one soname, of one file name, and at last those
    /// that export the same functions.
    pub fn new(a: &[ImageIdentity], b: &[ImageIdentity]) -> Pairing {
        let mut pairing = Pairing::default();
        let mut free: [Vec<&ImageIdentity>; 2] = [a.iter().collect(), b.iter().collect()];
        if !free[0].is_empty() && !free[1].is_empty() {
            let programs = [free[0].remove(0), free[1].remove(0)];
            pairing.pair(programs, Some("the programs"), PROGRAM);
        }
        let soname = |a: &ImageIdentity, b: &ImageIdentity| a.soname.is_some() && a.soname == b.soname;
        while let Some([a, b]) = take(&mut free, soname) {
            let name = a.soname.clone().unwrap_or_default();
            pairing.pair([a, b], Some("one soname"), &name);
        }
        while let Some([a, b]) = take(&mut free, |a, b| a.file_name == b.file_name) {
            pairing.pair([a, b], None, &a.file_name);
        }
        while let Some([a, b]) = take(&mut free, |a, b| a.likeness(b) >= SAME) {
            pairing.pair([a, b], Some("they export the same functions"), &a.file_name);
        }
        for (side, free) in ["first", "second"].iter().zip(&free) {
            let names: Vec<&str> = free.iter().map(|image| image.file_name.as_str()).collect();
            if !names.is_empty() {
                pairing.notes.push(format!("Only in the {side} build: {}.", names.join(", ")));
            }
        }
        pairing
    }

    fn pair(&mut self, [a, b]: [&ImageIdentity; 2], why: Option<&str>, name: &str) {
        if let Some(why) = why.filter(|_| a.file_name != b.file_name || name == PROGRAM) {
            self.notes.push(format!("Paired: {} with {} ({why}).", a.file_name, b.file_name));
        }
        for (names, image) in self.names.iter_mut().zip([a, b]) {
            names.insert(image.file_name.clone(), name.into());
        }
    }

    /// The profile of the first (0) or the second run (1) with the pairs' names instead of the images'.
    pub fn rename(&self, run: usize, profile: &Profile) -> Profile {
        let of = |image: &str| self.names[run].get(image).map_or(image, String::as_str).to_string();
        let mut renamed =
            Profile { functions: Default::default(), images: Default::default(), ..profile.clone() };
        for (function, n) in &profile.functions {
            let image = of(&function.image);
            *renamed
                .functions
                .entry(crate::names::FunctionName { image, ..function.clone() })
                .or_default() += n;
        }
        for (image, n) in &profile.images {
            *renamed.images.entry(of(image)).or_default() += n;
        }
        renamed
    }
}

/// Takes out the first two images that belong together.
fn take<'i>(
    free: &mut [Vec<&'i ImageIdentity>; 2],
    belong: impl Fn(&ImageIdentity, &ImageIdentity) -> bool,
) -> Option<[&'i ImageIdentity; 2]> {
    let [first, second] = free;
    let (a, b) = first
        .iter()
        .enumerate()
        .find_map(|(index, a)| Some((index, second.iter().position(|b| belong(a, b))?)))?;
    Some([first.remove(a), second.remove(b)])
}
