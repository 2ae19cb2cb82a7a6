//! What a profile is worth when it gets old: the gain of an image that is optimized by profiles of older builds, in
//! instructions and misses of an instruction cache, for both methods of matching.
//!
//! `persistence PATHLENGTH MACHINE RESET TRAIN TEST NEW OLD...`: the program `pathlength`, a machine with an instruction
//! cache, a shell command before each run, arguments of the program for training and for testing, the image that is
//! optimized, and the builds, older ones or the same, whose profiles are taken. Prints CSV.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pathlength_spike::optimize::{self, Options};
use pathlength_spike::profile::matching::{self, Matched, Method};
use pathlength_spike::profile::{ImageProfile, Profile};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Study {
    pathlength: String,
    machine: String,
    reset: String,
    folder: tempfile::TempDir,
}

impl Study {
    /// Runs the command with a program's arguments.
    fn run(&self, options: &[&str], program: &Path, arguments: &str) -> Result<()> {
        Command::new("sh").args(["-c", &self.reset]).status()?;
        let mut command = Command::new(&self.pathlength);
        command.args(options).arg(fs::canonicalize(program)?).args(arguments.split_whitespace());
        let output = command.stdout(Stdio::null()).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into()),
        }
    }

    /// Instructions and misses of a run.
    fn measure(&self, program: &Path, arguments: &str) -> Result<[u64; 2]> {
        let table = self.folder.path().join("caches.csv");
        let table = table.to_str().ok_or("the temporary folder has no name in UTF-8")?;
        self.run(
            &["caches", "--machine", &self.machine, "--format", "csv", "-o", table],
            program,
            arguments,
        )?;
        let text = fs::read_to_string(table)?;
        let row: Vec<&str> = text.lines().nth(1).ok_or("no row")?.split(',').collect();
        Ok([row[2].parse()?, row[3].parse()?])
    }

    fn profile(&self, program: &Path, arguments: &str) -> Result<ImageProfile> {
        let file = self.folder.path().join("profile");
        let name = file.to_str().ok_or("the temporary folder has no name in UTF-8")?;
        self.run(&["profile", "--replace", "-o", name], program, arguments)?;
        let mut lifted = optimize::open(program)?;
        let profile = Profile::open(&file)?;
        let image = optimize::find(&profile, &lifted).ok_or("the program is not in its profile")?;
        let calls = image.apply(&mut lifted);
        Ok(ImageProfile::of(&lifted, &image.name, &calls))
    }

    /// Optimizes an image by a profile, and measures it.
    fn optimized(
        &self,
        new: &Path,
        old: &ImageProfile,
        method: Method,
        test: &str,
    ) -> Result<(Matched, [u64; 2])> {
        let mut program = optimize::open(new)?;
        let (calls, matched) = matching::apply(old, &mut program, method);
        let bytes = optimize::optimize(program, &calls, Options::default())?.bytes;
        let file = self.folder.path().join("optimized");
        fs::write(&file, bytes)?;
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok((matched, self.measure(&file, test)?))
    }
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let study = Study {
        pathlength: word("PATHLENGTH")?,
        machine: word("MACHINE")?,
        reset: word("RESET")?,
        folder: tempfile::tempdir()?,
    };
    let (train, test, new) = (word("TRAIN")?, word("TEST")?, PathBuf::from(word("NEW")?));
    let original = study.measure(&new, &test)?;
    let own = study.optimized(&new, &study.profile(&new, &train)?, Method::Blocks, &test)?.1;
    println!(
        "old,method,procedures,matched procedures,blocks,matched blocks,matched instructions %,instructions,misses,instruction gain kept %,miss gain kept %"
    );
    println!("(not optimized),,,,,,,{},{},0,0", original[0], original[1]);
    for old in words {
        let profile = study.profile(Path::new(&old), &train)?;
        for (method, name) in [(Method::Signatures, "signatures"), (Method::Blocks, "blocks")] {
            let (matched, now) = study.optimized(&new, &profile, method, &test)?;
            let kept = |at: usize| {
                100.0 * (original[at] as f64 - now[at] as f64) / (original[at] as f64 - own[at] as f64)
            };
            println!(
                "{},{name},{},{},{},{},{:.1},{},{},{:.1},{:.1}",
                Path::new(&old).file_name().unwrap_or_default().to_string_lossy(),
                matched.procedures.0,
                matched.procedures.1,
                matched.blocks.0,
                matched.blocks.1,
                100.0 * matched.share(),
                now[0],
                now[1],
                kept(0),
                kept(1)
            );
        }
    }
    Ok(())
}
