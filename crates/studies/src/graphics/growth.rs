//! The growth of the library with the number of conditions: variants, their text, and the time to compile them.

use std::path::Path;
use std::process::Command;

use workloads::toolchain::{NATIVE, ORIGINAL, Toolchain};

use super::error::Error;
use super::runs::GraphicsRunner;

/// The conditions in the order of their bits.
pub(super) const CONDITION_NAMES: [&str; 10] = [
    "lighting",
    "normalized",
    "texture",
    "fog",
    "second light",
    "specular",
    "colour material",
    "positional lights",
    "generated coordinates",
    "user clipping",
];

/// A library with paths for the first conditions.
#[derive(Clone, Debug)]
pub(super) struct LibrarySize {
    pub(super) conditions: u32,
    /// Variants that differ, as validation makes masks canonical.
    pub(super) distinct: usize,
    /// Those that the viewer's tests use.
    pub(super) used: usize,
    /// The viewer's vertices that take a special path, in percent.
    pub(super) coverage: f64,
    /// Bytes of text, and seconds of the compiler, for Alpha and for the host.
    pub(super) alpha: Option<CompiledPaths>,
    pub(super) native: Option<CompiledPaths>,
}

/// Special paths, compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompiledPaths {
    pub(super) text: u64,
    pub(super) seconds: f64,
}

/// The masks that differ if the first conditions alone are compiled.
fn canonical(conditions: u32) -> Vec<u32> {
    let of_lighting = |mask: u32| mask & 1 != 0 || mask & 242 == 0;
    let of_texture = |mask: u32| mask & 4 != 0 || mask & 256 == 0;
    (0..1 << conditions).filter(|&mask| of_lighting(mask) && of_texture(mask)).collect()
}

/// Libraries with no condition to all ten. `used` has the masks that the viewer's tests use, with their vertices.
pub(super) fn growth(runner: &GraphicsRunner, used: &[(u32, u64)]) -> Result<Vec<LibrarySize>, Error> {
    let all: u64 = used.iter().map(|(_, vertices)| vertices).sum();
    let mut sizes = Vec::new();
    for conditions in 0..=10 {
        let masks = canonical(conditions);
        let covered: Vec<_> = used.iter().filter(|(mask, _)| masks.contains(mask)).collect();
        let compiled = |toolchain: &Toolchain| {
            let build = runner.build(toolchain.name);
            build.map(|build| compile(&build.folder.join("source"), toolchain, &masks)).transpose()
        };
        sizes.push(LibrarySize {
            conditions,
            distinct: masks.len(),
            used: covered.len(),
            coverage: 100.0 * covered.iter().map(|(_, vertices)| vertices).sum::<u64>() as f64
                / all.max(1) as f64,
            alpha: compiled(&ORIGINAL)?,
            native: compiled(&NATIVE)?,
        });
    }
    Ok(sizes)
}

/// Compiles the paths of masks as the library's script does, and measures text and the compiler's processor time.
fn compile(source: &Path, toolchain: &Toolchain, masks: &[u32]) -> Result<CompiledPaths, Error> {
    const SCRIPT: &str = r#"
        folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
        sh "$source/make-special" $masks >"$folder/special.c"
        case $compiler in
        alpha*)
            for headers in GL KHR X11; do ln -s "/usr/include/$headers" "$folder/$headers"; done
            machine="-mfp-trap-mode=n -mtrap-precision=p" ;;
        *) machine= ;;
        esac
        $compiler -O3 $flags $machine -std=gnu11 -D__gl_glext_h_ -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno \
            -I"$folder" -I"$source" -c "$folder/special.c" -o "$folder/special.o"
        times
        $($compiler -print-prog-name=size) "$folder/special.o" | tail -1
    "#;
    let masks = masks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let (compiler, flags) = (toolchain.compiler, toolchain.flags.join(" "));
    let output = Command::new("sh")
        .args(["-e", "-c", SCRIPT])
        .envs([("compiler", compiler), ("flags", &flags), ("masks", &masks), ("LC_ALL", "C")])
        .env("source", source)
        .output();
    let failed = |reason: String| Error::Program { program: format!("{compiler} on special paths"), reason };
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    read_compiled(&printed).ok_or_else(|| failed(format!("it printed '{}'", printed.trim())))
}

/// Reads what `times` prints, whose second line is that of children (`1m2.5s 0m0.1s`), and the line of `size` after it.
fn read_compiled(printed: &str) -> Option<CompiledPaths> {
    let mut lines = printed.lines().skip(1);
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    let seconds = lines.next()?.split_whitespace().map(seconds).sum::<Option<f64>>()?;
    let text = lines.next()?.split_whitespace().next()?.parse().ok()?;
    Some(CompiledPaths { text, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_double_nominal_variants_and_less_the_distinct_ones() {
        let distinct: Vec<usize> = (0..=10).map(|conditions| canonical(conditions).len()).collect();
        assert_eq!(distinct, [1, 2, 3, 6, 12, 20, 36, 68, 132, 198, 396]);
    }

    #[test]
    fn times_of_children_and_text_are_read() {
        let compiled =
            read_compiled("0m0.01s 0m0.00s\n1m2.50s 0m0.25s\n   1234  8  0  1242  4da special.o\n").unwrap();
        assert_eq!((compiled.text, compiled.seconds), (1234, 62.75));
        assert!(read_compiled("0m0.01s 0m0.00s\n").is_none());
    }
}
