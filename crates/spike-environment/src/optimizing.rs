//! Optimized versions of images.

use rusqlite::params;
use spike::optimize::{Optimized, Options};
use spike::profile::ImageProfile;
use spike::profile::IndirectCall;
use spike::profile::matching::{self, LEAST_SHARE, Method};
use spike::program::Program;

use crate::environment::{Environment, FileState};
use crate::error::Error;
use crate::files::{self, FileLock};
use crate::making::{MISSING, Made, mode};
use crate::rows::{Application, ApplicationPhase, ImageRow};

impl Environment {
    /// Makes optimized versions of an application's images by what was collected, and chooses them. `done` is called after each image.
    pub fn optimize(
        &mut self,
        application: &Application,
        options: Options,
        done: &mut dyn FnMut(&Made),
    ) -> Result<(), Error> {
        let lock = self.lock()?;
        self.collect_all(&lock)?;
        let mut is_any = false;
        for image in self.images_of(application)? {
            let (image, state) = self.refresh(&image)?;
            let made = match state {
                FileState::Missing => Made::without(&image, MISSING),
                FileState::Same | FileState::Changed => self.optimize_image(&image, options, &lock)?,
            };
            is_any |= made.problem.is_none();
            done(&made);
        }
        if !is_any {
            return Err(Error::NoProfile(application.name.clone()));
        }
        self.choose(application, ApplicationPhase::Optimized)
    }

    fn optimize_image(
        &mut self,
        image: &ImageRow,
        options: Options,
        _lock: &FileLock,
    ) -> Result<Made, Error> {
        if let Some(problem) = &image.problem {
            return Ok(Made::without(image, problem));
        }
        let Some(profile) = self.image_profile(image)? else {
            return Ok(Made::without(image, "has no profile: no instrumented run has executed it"));
        };
        let mut program = match self.lift(image)? {
            Ok(program) => program,
            Err(problem) => return Ok(Made::without(image, problem)),
        };
        let before = program.code.words.len();
        let Some((calls, matched)) = apply(&profile, &mut program) else {
            return Ok(Made::without(
                image,
                "its profile is of a file that had little in common with it: collect again",
            ));
        };
        let optimized = match spike::optimize::optimize(program, &calls, options) {
            Ok(optimized) => optimized,
            Err(problem) => return Ok(Made::without(image, problem.to_string())),
        };
        let path = self.version_path(image, &image.identity.hash, ApplicationPhase::Optimized);
        files::write(&path, &optimized.bytes, mode(&image.path))?;
        self.record(image, &optimized, before, matched)?;
        self.remove_stale(image)?;
        Ok(Made { image: image.path.clone(), problem: None, matched })
    }

    fn record(
        &mut self,
        image: &ImageRow,
        optimized: &Optimized,
        before: usize,
        matched: Option<f64>,
    ) -> Result<(), Error> {
        let (before, after) = (before as i64, optimized.code_bytes as i64 / 4);
        let (executed, removed) = (optimized.executed as i64, optimized.removed() as i64);
        let (kind, original) = (ApplicationPhase::Optimized, &image.identity.hash);
        self.change(|transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO version (image, kind, original, code_before, code_after, executed, removed, matched)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                params![image.id, kind, original, before, after, executed, removed, matched],
            )
        })?;
        Ok(())
    }
}

/// Gives the program the counts of a profile. Of one of other contents, also says which share was matched; nothing if that is too
/// little.
fn apply(profile: &ImageProfile, program: &mut Program) -> Option<(Vec<IndirectCall>, Option<f64>)> {
    if profile.is_of(program) {
        return Some((profile.apply(program), None));
    }
    let (calls, matched) = matching::apply(profile, program, Method::Blocks);
    (matched.share() >= LEAST_SHARE).then_some((calls, Some(matched.share())))
}
