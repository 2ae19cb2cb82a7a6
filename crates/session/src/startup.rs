//! The images and symbols of a program at its start, and whether names that users give exist in them; determined before
//! the program runs.

use std::collections::HashSet;
use std::ffi::OsString;

use engine::{Configuration, Process, ProgramEnd, ProgramLocation, RunCounter};
use events::LoadedImage;
use image::Image;

use crate::forked_run::{self, ForkedRun};
use crate::measure::Error;

/// Names in a program.
#[derive(Clone, Debug, Default)]
pub struct RequestedNames<'a> {
    /// Functions.
    pub functions: Vec<&'a str>,
    /// Variables.
    pub variables: &'a [String],
    /// Variables that [`Image::variables`] has.
    pub arrays: &'a [String],
    /// Places.
    pub locations: Vec<&'a ProgramLocation>,
}

/// A program that imports one of these may load further images while it runs: by dlopen(3), or by execve(2).
const LOADERS: [&str; 12] = [
    "dlopen", "dlmopen", "execl", "execle", "execlp", "execv", "execve", "execveat", "execvp", "execvpe",
    "fexecve", "syscall",
];

/// The C library and its dynamic loader, which define the functions above, so that their own calls mean nothing.
const C_LIBRARY: [&str; 7] = ["ld-linux.", "libc.", "libdl.", "libm.", "libpthread.", "librt.", "libgcc_s."];

/// Checks whether all names exist in a program that has not run yet. A missing name is an error if the program loads no
/// images later; otherwise the error that it may become is returned.
pub fn check(configuration: &Configuration, named: &RequestedNames) -> Result<Option<Error>, Error> {
    if named.functions.is_empty()
        && named.variables.is_empty()
        && named.arrays.iter().all(|name| !is_variable(name))
        && named.locations.iter().all(|location| location.symbol().is_none())
    {
        return Ok(None);
    }
    let Some(images) = images(configuration) else { return Ok(None) };
    let files: Vec<(LoadedImage, Image)> =
        images.iter().filter_map(|image| Some((image.clone(), Image::open(&image.path).ok()?))).collect();
    match missing(named, &images, &files) {
        Some(error) if loads_more(&files) => Ok(Some(error)),
        Some(error) => Err(error),
        None => Ok(None),
    }
}

fn missing(named: &RequestedNames, images: &[LoadedImage], files: &[(LoadedImage, Image)]) -> Option<Error> {
    let nowhere =
        |has: &dyn Fn(&LoadedImage, &Image) -> bool| !files.iter().any(|(image, file)| has(image, file));
    let functions: Vec<String> =
        named.functions.iter().flat_map(|unit| engine::unit_functions(unit)).collect();
    if let Some(function) =
        functions.iter().find(|name| nowhere(&|image, file| engine::has_function(name, image, file)))
    {
        return Some(Error::no_such_function(function, images));
    }
    let mut locations = named.locations.iter().filter(|location| location.symbol().is_some());
    if let Some(location) = locations.find(|location| nowhere(&|image, file| location.is_in(image, file))) {
        return Some(Error::no_such_location(location, images));
    }
    let has_array = |name: &str, file: &Image| file.variables().iter().any(|variable| variable.name == *name);
    let mut arrays = named.arrays.iter().filter(|name| is_variable(name));
    if let Some(name) = arrays.find(|name| nowhere(&|_, file| has_array(name, file))) {
        return Some(Error::no_such_array(name, images));
    }
    let mut variables = named.variables.iter();
    let variable = variables.find(|name| nowhere(&|image, file| engine::has_variable(name, image, file)));
    variable.map(|variable| Error::NoSuchVariable(variable.clone()))
}

/// Whether this may be the name of a variable, not of a block of the heap, the stack or what else has no name of its own.
fn is_variable(name: &str) -> bool {
    !name.starts_with('(') && !name.starts_with("allocated ")
}

/// Whether a program may load further images while it runs.
pub fn may_load_images(configuration: &Configuration) -> bool {
    let Some(images) = images(configuration) else { return true };
    let open = |image: LoadedImage| Some((image.clone(), Image::open(&image.path).ok()?));
    loads_more(&images.into_iter().filter_map(open).collect::<Vec<_>>())
}

fn loads_more(files: &[(LoadedImage, Image)]) -> bool {
    let loaders: HashSet<&[u8]> = LOADERS.iter().map(|name| name.as_bytes()).collect();
    let is_own = |image: &&LoadedImage| {
        let name = image.path.file_name().unwrap_or_default().to_string_lossy();
        !C_LIBRARY.iter().any(|library| name.starts_with(library))
    };
    let own = files.iter().filter(|(image, _)| is_own(&image));
    // Names are in string tables, between bytes of 0.
    own.into_iter().any(|(_, file)| file.bytes().split(|&byte| byte == 0).any(|name| loaders.contains(name)))
}

/// The images of a program when it begins, its libraries among them: as ldd(1) finds them, by the program's dynamic loader,
/// which does not start the program then. None if that fails: running the program will report why.
pub fn images(configuration: &Configuration) -> Option<Vec<LoadedImage>> {
    let mut configuration = configuration.clone();
    let run = |_: &mut (dyn FnMut(()) + Send)| {
        configuration.environment.push(OsString::from("LD_TRACE_LOADED_OBJECTS=1"));
        let mut process = Process::new(&configuration)?;
        let is_loader = |image: &LoadedImage| {
            image.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"))
        };
        // Without a loader that obeys the variable, the program itself would run.
        let end = match process.images.get(1) {
            Some(loader) if is_loader(loader) => process.run(&mut RunCounter::default())?,
            _ => ProgramEnd::Exited(0),
        };
        Ok::<_, engine::Error>((matches!(end, ProgramEnd::Exited(0)), process.images))
    };
    let running: ForkedRun<(bool, Vec<LoadedImage>), ()> = forked_run::start(run).ok()?;
    let ((is_whole, images), said) = running.wait(&mut |()| {}).ok()?;
    (is_whole && !said.contains("=> not found")).then_some(images)
}
