//! A frame as three stages that work side by side: the processor with client and library, the bus to the device, and the device.

use serde::Deserialize;

use super::composite::{FrameWork, TESTS, ViewerResult, composite};
use super::runs::SYSTEMS;
use super::vertices::{HOST, PATHS};

/// The devices that come with the study.
const DEVICES: [&str; 2] = [
    include_str!("../../../../data/graphics/powerstorm-4d60t.toml"),
    include_str!("../../../../data/graphics/competitive-1996.toml"),
];

/// A graphics device, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphicsDevice {
    pub(super) title: String,
    pub(super) triangles_per_second: f64,
    pub(super) vectors_per_second: f64,
    pub(super) texels_per_second: f64,
    pub(super) pixels_per_second: f64,
    pub(super) dma_megabytes_per_second: f64,
    pub(super) bytes_per_vertex: f64,
}

/// The devices.
pub(super) fn devices() -> impl Iterator<Item = GraphicsDevice> {
    let device =
        |text: &&str| toml::from_str(text).expect("a test reads the devices that come with the study");
    DEVICES.iter().map(device)
}

impl GraphicsDevice {
    /// Seconds of the bus, and of the device, for a frame. Setting up primitives and drawing pixels overlap.
    fn seconds(&self, work: &FrameWork, is_textured: bool) -> [f64; 2] {
        let bus = work.vertices as f64 * self.bytes_per_vertex / (self.dma_megabytes_per_second * 1e6);
        let set_up =
            work.triangles as f64 / self.triangles_per_second + work.vectors as f64 / self.vectors_per_second;
        let fill = if is_textured { self.texels_per_second } else { self.pixels_per_second };
        // Lines and points are in the rate of vectors.
        let fragments = if work.triangles > 0 { work.fragments as f64 } else { 0.0 };
        [bus, set_up.max(fragments / fill)]
    }
}

/// The stages of a frame on a machine with a device, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct StageTimes {
    pub(super) test: &'static str,
    pub(super) machine: &'static str,
    pub(super) device: String,
    pub(super) path: usize,
    pub(super) client: f64,
    pub(super) library: f64,
    pub(super) bus: f64,
    pub(super) raster: f64,
}

impl StageTimes {
    /// The time between frames: client and library share a processor, and the others work beside it.
    pub(super) fn frame(&self) -> f64 {
        (self.client + self.library).max(self.bus).max(self.raster)
    }

    /// The part that takes the most time of the slowest stage.
    pub(super) fn limit(&self) -> &'static str {
        let frame = self.frame();
        if frame == self.raster {
            "rasterizer"
        } else if frame == self.bus {
            "bus"
        } else if self.client > self.library {
            "client"
        } else {
            "library"
        }
    }
}

/// Every test on every machine, with every device, by both paths.
pub(super) fn stages(results: &[ViewerResult]) -> Vec<StageTimes> {
    let mut all = Vec::new();
    for device in devices() {
        for (number, system) in SYSTEMS.iter().enumerate() {
            let milliseconds = |cycles: f64| cycles / system.machine(None).processor.clock_mhz / 1000.0;
            for path in 0..2 {
                for (test, result) in TESTS.iter().zip(results) {
                    let cycles = &result.cycles[number];
                    let [bus, raster] =
                        device.seconds(&result.work, test.is_textured).map(|seconds| 1000.0 * seconds);
                    all.push(StageTimes {
                        test: test.title,
                        machine: system.label,
                        device: device.title.clone(),
                        path,
                        client: milliseconds(cycles.client),
                        library: milliseconds((cycles.geometry[path] - cycles.client).max(0.0)),
                        bus,
                        raster,
                    });
                }
            }
        }
    }
    all
}

/// A composite of frames a second.
#[derive(Clone, Debug)]
pub(super) struct CompositeRate {
    pub(super) machine: &'static str,
    pub(super) device: String,
    pub(super) path: &'static str,
    pub(super) rate: f64,
}

/// Composites with each device, and with the rasterizer in software, on the machines and on the host.
pub(super) fn composites(results: &[ViewerResult], stages: &[StageTimes]) -> Vec<CompositeRate> {
    const SOFTWARE: &str = "none: drawn in software";
    let mut all: Vec<CompositeRate> = stages
        .chunks(TESTS.len())
        .map(|tests| CompositeRate {
            machine: tests[0].machine,
            device: tests[0].device.clone(),
            path: PATHS[tests[0].path],
            rate: composite(tests.iter().map(|test| 1000.0 / test.frame())),
        })
        .collect();
    for (number, system) in SYSTEMS.iter().enumerate() {
        let mhz = system.machine(None).processor.clock_mhz;
        let rate = composite(results.iter().map(|result| mhz * 1e6 / result.cycles[number].drawn));
        all.push(CompositeRate { machine: system.label, device: SOFTWARE.into(), path: PATHS[1], rate });
    }
    let native: Option<Vec<f64>> = results.iter().map(|result| result.native.map(|ms| 1000.0 / ms)).collect();
    all.extend(native.map(|rates| CompositeRate {
        machine: HOST,
        device: SOFTWARE.into(),
        path: PATHS[1],
        rate: composite(rates),
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_and_the_slowest_stage_limits() {
        let devices: Vec<GraphicsDevice> = devices().collect();
        let work = FrameWork {
            vertices: 1_000_000,
            triangles: 1_100_000,
            vectors: 0,
            changes: 0,
            fragments: 30_000_000,
        };
        let [bus, raster] = devices[0].seconds(&work, false);
        assert!((bus - 0.36).abs() < 1e-9 && (raster - 1.0).abs() < 1e-9, "{bus} {raster}");
        // Texels are slower than triangles of this size.
        let [_, textured] = devices[0].seconds(&work, true);
        assert_eq!(textured, 1.0);
        let small = FrameWork { triangles: 1, ..work };
        assert_eq!(devices[0].seconds(&small, true)[1], 1.0);
        let stages = |client, library, bus, raster| StageTimes {
            test: "",
            machine: "",
            device: String::new(),
            path: 0,
            client,
            library,
            bus,
            raster,
        };
        assert_eq!(stages(3.0, 4.0, 6.9, 6.8).limit(), "library");
        assert_eq!(stages(3.0, 4.0, 7.1, 6.8).limit(), "bus");
        assert_eq!(
            (stages(3.0, 4.0, 7.1, 8.0).limit(), stages(3.0, 4.0, 7.1, 8.0).frame()),
            ("rasterizer", 8.0)
        );
        assert_eq!(stages(4.0, 3.0, 1.0, 1.0).limit(), "client");
    }
}
