//! Profiles from counts.

use std::path::Path;

use super::{EdgeCounts, ImageProfile, ImageProfiles, read};
use crate::error::Error;
use crate::instrument::InstrumentationPlan;
use crate::{counts, optimize};

impl ImageProfile {
    /// The profile of an image from the file in which its instrumented one counts.
    pub fn from_counts(file: &Path, image: &Path) -> Result<ImageProfile, Error> {
        let mut program = optimize::open(image)?;
        let problem = |problem| Error::Unsuitable { path: image.into(), problem };
        let failed = |problem: String| Error::Profile { path: file.into(), problem };
        let bytes = read(file).map_err(failed)?;
        let plan =
            InstrumentationPlan::new(optimize::open(image)?, counts::update(&bytes)).map_err(problem)?;
        let calls = plan.apply(&bytes, &mut program).map_err(failed)?;
        Ok(ImageProfile::of(&program, &image_name(image), &calls))
    }
}

impl EdgeCounts {
    /// The profiles of the images that can be optimized, and why the others cannot.
    pub fn profile(&self) -> (ImageProfiles, Vec<Error>) {
        let (mut images, mut left_out) = (Vec::new(), Vec::new());
        for path in self.images() {
            match self.of_image(&path) {
                Ok(image) => images.push(image),
                Err(error) => left_out.push(error),
            }
        }
        (ImageProfiles::new(images), left_out)
    }

    fn of_image(&self, path: &Path) -> Result<ImageProfile, Error> {
        let mut program = optimize::open(path)?;
        let calls = self.apply(&mut program, path);
        Ok(ImageProfile::of(&program, &image_name(path), &calls))
    }
}

/// The name of an image in a profile.
pub fn image_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
