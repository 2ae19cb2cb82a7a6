//! The viewer's tests: pictures, the work of a frame, its cost on both machines, and a composite of weighted frame rates.

use report::Picture;

use super::error::Error;
use super::runs::{FrameCost, FrameJob, GraphicsRunner, SYSTEMS};

/// A test of the viewer.
pub(super) struct ViewerTest {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Its weight in percent.
    pub(super) weight: f64,
    pub(super) is_textured: bool,
}

/// The tests. The weights are our own.
pub(super) const TESTS: [ViewerTest; 5] = [
    ViewerTest { name: "wire", title: "wire frame", weight: 40.0, is_textured: false },
    ViewerTest { name: "facets", title: "smooth facets", weight: 30.0, is_textured: false },
    ViewerTest { name: "texture", title: "texture", weight: 12.0, is_textured: true },
    ViewerTest { name: "transparent", title: "transparency", weight: 10.0, is_textured: false },
    ViewerTest { name: "panel", title: "2-D panel", weight: 8.0, is_textured: false },
];

/// The work of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameWork {
    pub(super) vertices: u64,
    pub(super) triangles: u64,
    pub(super) vectors: u64,
    pub(super) changes: u64,
    pub(super) fragments: u64,
}

/// Cycles of a frame on a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameCycles {
    /// The client alone, with a library that does nothing.
    pub(super) client: f64,
    /// Client and library but for the rasterizer, by generic and by special paths.
    pub(super) geometry: [f64; 2],
    /// All of it, with special paths and the rasterizer in software.
    pub(super) drawn: f64,
}

/// The results of a test.
#[derive(Clone, Debug)]
pub(super) struct ViewerResult {
    pub(super) work: FrameWork,
    /// Vertices by their masks of conditions.
    pub(super) masks: Vec<(u32, u64)>,
    /// On each machine.
    pub(super) cycles: Vec<FrameCycles>,
    /// Milliseconds of a frame on the host, drawn in software.
    pub(super) native: Option<f64>,
    pub(super) picture: Option<Picture>,
}

/// Runs all tests.
pub(super) fn tests(runner: &GraphicsRunner) -> Result<Vec<ViewerResult>, Error> {
    let folder = tempfile::tempdir()
        .map_err(|error| Error::Program { program: "viewer".into(), reason: error.to_string() })?;
    let mut jobs = Vec::new();
    for test in &TESTS {
        for system in &SYSTEMS {
            let job = |program, work: &str, is_generic: bool| FrameJob {
                build: system.build,
                program,
                arguments: [vec![test.name.into()], vec![work.into()]],
                variable: is_generic.then(|| ("GENERIC", "1".into())),
                machines: vec![system.machine(None)],
                frames: 1,
            };
            jobs.extend([
                job("client/viewer", "draw", false),
                job("viewer", "geometry", true),
                job("viewer", "geometry", false),
                job("viewer", "draw", false),
            ]);
        }
    }
    let costs = runner.costs(&jobs)?;
    let of_tests = costs.chunks(4 * SYSTEMS.len());
    TESTS.iter().zip(of_tests).map(|(test, costs)| result(runner, test, costs, folder.path())).collect()
}

/// The result of a test from its costs, with a picture and counts of one more run.
fn result(
    runner: &GraphicsRunner,
    test: &ViewerTest,
    costs: &[FrameCost],
    folder: &std::path::Path,
) -> Result<ViewerResult, Error> {
    let path = folder.join(format!("{}.ppm", test.name));
    let file = path.display().to_string();
    let job = FrameJob {
        build: SYSTEMS[0].build,
        program: "viewer",
        arguments: [vec![test.name.into()], vec!["fragments".into(), file]],
        variable: None,
        machines: vec![],
        frames: 2,
    };
    let printed = runner.numbers(&job)?;
    let failed =
        |reason: &str| Error::Program { program: format!("viewer {}", test.name), reason: reason.into() };
    let [vertices, triangles, vectors, changes, fragments, masks @ ..] = &printed[..] else {
        return Err(failed("it printed too few numbers"));
    };
    let work = FrameWork {
        vertices: *vertices,
        triangles: *triangles,
        vectors: *vectors,
        changes: *changes,
        fragments: *fragments,
    };
    let cycles = costs.chunks(4).map(|costs| FrameCycles {
        client: costs[0].cycles_of(0, 1),
        geometry: [costs[1].cycles_of(0, 1), costs[2].cycles_of(0, 1)],
        drawn: costs[3].cycles_of(0, 1),
    });
    const FRAMES: u32 = 20;
    let seconds = runner.native_seconds("viewer", &[test.name, &FRAMES.to_string()], FRAMES)?;
    let bytes = std::fs::read(&path).map_err(|error| failed(&error.to_string()))?;
    Ok(ViewerResult {
        work,
        masks: masks.chunks_exact(2).map(|pair| (pair[0] as u32, pair[1])).collect(),
        cycles: cycles.collect(),
        native: seconds.map(|seconds| 1000.0 * seconds),
        picture: Picture::from_ppm(test.title, &bytes),
    })
}

/// Frames a second of all tests, weighted: their geometric mean.
pub(super) fn composite(rates: impl IntoIterator<Item = f64>) -> f64 {
    let weighted = TESTS.iter().zip(rates).map(|(test, rate)| test.weight / 100.0 * rate.ln());
    weighted.sum::<f64>().exp()
}

/// The masks of all tests, with their vertices.
pub(super) fn used_masks(results: &[ViewerResult]) -> Vec<(u32, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (mask, vertices) in results.iter().flat_map(|result| &result.masks) {
        *sums.entry(*mask).or_insert(0) += vertices;
    }
    sums.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composite_of_equal_rates_is_that_rate_and_weights_are_whole() {
        assert!((composite([30.0; 5]) - 30.0).abs() < 1e-9);
        assert_eq!(TESTS.iter().map(|test| test.weight).sum::<f64>(), 100.0);
        // Half the rate in a test of weight 40 divides by 2^0.4.
        let slower = composite([15.0, 30.0, 30.0, 30.0, 30.0]);
        assert!((slower - 30.0 / 2f64.powf(0.4)).abs() < 1e-9);
    }
}
