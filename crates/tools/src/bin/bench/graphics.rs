//! The rate of lit vertices on one core by our library for OpenGL, beside Mesa's rasterizers, and the instructions of a vertex.

use std::path::{Path, PathBuf};
use std::process::Command;

use table::{Kind, Value};
use workloads::build::build;
use workloads::toolchain::NATIVE;
use workloads::workload::Workload;

use crate::record::BenchRecord;
use crate::{Bench, Error};

const COLUMNS: [(&str, Kind); 4] = [
    ("library", Kind::Text),
    ("mode", Kind::Text),
    ("M vertices a processor second", Kind::Real(1)),
    ("instructions a vertex", Kind::Count),
];

/// Conditions: lit by one light, with normals that are normalized.
const LIT: &str = "3";

/// A library, and the program `vertices` with it.
struct GraphicsLibrary {
    name: &'static str,
    program: PathBuf,
    /// The last argument, if there is one.
    path: Option<&'static str>,
    /// Mesa's driver.
    driver: &'static str,
    frames: u32,
}

/// Vertices from calls, from a display list and from arrays, with all triangles culled.
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    record.begin("graphics", "Lit vertices of culled triangles on one core", &COLUMNS)?;
    let workload = Workload::named("graphics").ok_or("no such workload")?;
    let builds = build(workload, &[NATIVE], &bench.folders, &|_| {})?;
    let [native] = &builds[..] else { return Err("one build was asked for".into()) };
    let ours = |name, path| GraphicsLibrary {
        name,
        program: native.program.clone(),
        path,
        driver: "",
        frames: 2000,
    };
    let mut libraries = vec![ours("ours, special paths", None), ours("ours, generic path", Some("generic"))];
    match compile_peer(&native.folder.join("source/tests/vertices.c"), bench.directory()) {
        Ok(program) => {
            let mesa = |name, driver, frames| {
                let program = program.clone();
                GraphicsLibrary { name, program, path: None, driver, frames }
            };
            libraries
                .extend([mesa("Mesa, llvmpipe", "llvmpipe", 1000), mesa("Mesa, softpipe", "softpipe", 100)]);
        }
        Err(error) => eprintln!("Mesa is left out: {error}"),
    }
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        eprintln!("instructions are left out: valgrind is not installed");
    }
    for mode in ["immediate", "list", "array"] {
        // In turns, so that all meet the same disturbances.
        let mut rates = vec![0f64; libraries.len()];
        for _ in 0..bench.options.runs {
            for (library, rate) in libraries.iter().zip(&mut rates) {
                *rate = rate.max(library.rate(mode)?);
            }
        }
        for (library, rate) in libraries.iter().zip(rates) {
            let instructions = has_valgrind.then(|| library.instructions(mode)).transpose()?;
            let instructions =
                instructions.map_or(Value::Missing, |count| Value::Integer(count.round() as i64));
            record.row(vec![library.name.into(), mode.into(), rate.into(), instructions])?;
        }
    }
    Ok(())
}

impl GraphicsLibrary {
    /// The program with this number of frames, after other words.
    fn command(&self, before: &[&str], mode: &str, frames: u32) -> Command {
        let words = before.iter().map(Path::new).chain([self.program.as_path()]);
        let words: Vec<&Path> = words.collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args([LIT, mode, &frames.to_string()]).args(self.path);
        // One thread, and no shaders from earlier runs.
        command.envs([
            ("GALLIUM_DRIVER", self.driver),
            ("LP_NUM_THREADS", "0"),
            ("MESA_SHADER_CACHE_DISABLE", "1"),
            ("TIMED", "1"),
        ]);
        command
    }

    /// Millions of vertices in a processor second.
    fn rate(&self, mode: &str) -> Result<f64, Error> {
        let (vertices, microseconds) = numbers(self.command(&[], mode, self.frames))?;
        Ok(vertices as f64 / microseconds as f64)
    }

    /// Instructions of a vertex: the difference of two lengths.
    fn instructions(&self, mode: &str) -> Result<f64, Error> {
        const FRAMES: [u32; 2] = [2, 6];
        let count = |frames: u32| -> Result<(u64, u64), Error> {
            let mut command = self.command(
                &["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
                mode,
                frames,
            );
            let output = command.output()?;
            let vertices = String::from_utf8(output.stdout)?.lines().next().unwrap_or_default().parse()?;
            Ok((
                vertices,
                references(&String::from_utf8_lossy(&output.stderr)).ok_or("callgrind counted nothing")?,
            ))
        };
        let [few, many] = [count(FRAMES[0])?, count(FRAMES[1])?];
        Ok((many.1 - few.1) as f64 / (many.0 - few.0) as f64)
    }
}

/// The instructions that callgrind reports: `==1== I   refs:      1,234`.
fn references(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains("refs:"))?;
    line.rsplit(' ').next()?.replace(',', "").parse().ok()
}

/// The two numbers that a program prints.
fn numbers(mut command: Command) -> Result<(u64, u64), Error> {
    let output = command.output()?;
    let printed = String::from_utf8(output.stdout)?;
    let mut numbers = printed.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(vertices)), Some(Ok(microseconds))) => Ok((vertices, microseconds)),
        _ => Err(format!("vertices failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}

/// Compiles the program with Mesa's off-screen library.
fn compile_peer(source: &Path, folder: &Path) -> Result<PathBuf, Error> {
    let program = folder.join("vertices-mesa");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-std=gnu11", "-D__gl_glext_h_", "-DOSMESA", "-o"]).arg(&program).arg(source);
    match compiler.args(["-lOSMesa", "-lm"]).output()?.status.success() {
        true => Ok(program),
        false => Err("its off-screen library is not installed: run ./setup bench".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_that_callgrind_reports_are_read() {
        let report = "==7== Callgrind\n==7== \n==7== I   refs:      4,160,887\n";
        assert_eq!((references(report), references("==7== Killed")), (Some(4_160_887), None));
    }
}
