//! The library for OpenGL 1.1, with the programs that measure it.

use crate::toolchain::{EV6, EXACT_TRAPS, NATIVE, ORIGINAL};
use crate::workload::{Recipe, Script, Source, Workload};

/// A file of the library or of its programs.
macro_rules! graphics_source {
    ($name:literal) => {
        Source::Embedded {
            name: concat!("source/", $name),
            text: include_str!(concat!("../../../workloads/graphics/", $name)),
        }
    };
}

/// Every file that `workloads/graphics/build` and the programs are made from, GLX apart.
const SOURCES: &[Source] = &[
    graphics_source!("arrays.c"),
    graphics_source!("attribs.c"),
    graphics_source!("buffers.c"),
    graphics_source!("build"),
    graphics_source!("clip.c"),
    graphics_source!("commands.def"),
    graphics_source!("context.c"),
    graphics_source!("context.h"),
    graphics_source!("elements.c"),
    graphics_source!("elements.h"),
    graphics_source!("enables.def"),
    graphics_source!("entry.c"),
    graphics_source!("eval.c"),
    graphics_source!("expand.h"),
    graphics_source!("forms.c"),
    graphics_source!("functions.h"),
    graphics_source!("generic.c"),
    graphics_source!("get.c"),
    graphics_source!("images.c"),
    graphics_source!("lanes.h"),
    graphics_source!("line.c"),
    graphics_source!("lists.c"),
    graphics_source!("make-special"),
    graphics_source!("matrix.c"),
    graphics_source!("offscreen.c"),
    graphics_source!("offscreen.h"),
    graphics_source!("paths.h"),
    graphics_source!("pixels.c"),
    graphics_source!("sample.c"),
    graphics_source!("select.c"),
    graphics_source!("span.c"),
    graphics_source!("state.c"),
    graphics_source!("template.h"),
    graphics_source!("texture.c"),
    graphics_source!("triangle.c"),
    graphics_source!("validate.c"),
    graphics_source!("values.c"),
    graphics_source!("variables.def"),
    graphics_source!("vertex.c"),
    graphics_source!("protocol/connection.c"),
    graphics_source!("protocol/device.c"),
    graphics_source!("protocol/encode.c"),
    graphics_source!("protocol/protocol.h"),
    graphics_source!("protocol/queries.c"),
    graphics_source!("queries.def"),
    graphics_source!("server/answers.c"),
    graphics_source!("server/decode.c"),
    graphics_source!("server/draw.c"),
    graphics_source!("server/main.c"),
    graphics_source!("server/no_windows.c"),
    graphics_source!("server/serve.c"),
    graphics_source!("server/server.h"),
    graphics_source!("xlib/flat.c"),
    graphics_source!("xlib/flat.h"),
    graphics_source!("xlib/vectored.c"),
    graphics_source!("xlib/vectored.h"),
    graphics_source!("programs/viewer.c"),
    graphics_source!("tests/ppm.h"),
    graphics_source!("tests/vertices.c"),
];

/// A library for OpenGL 1.1 with generic and special vertex paths, for two Alphas, for one with exact traps of floating point, and for
/// the host. The library's script has optimization levels of its own. `client/viewer` is the viewer with a library that does nothing: the
/// client's part of its work.
pub(crate) const GRAPHICS: Workload = Workload {
    name: "graphics",
    title: "A library for OpenGL 1.1",
    sources: SOURCES,
    recipe: Recipe::Script(Script {
        tools: &[],
        steps: &[
            (
                "compiling",
                "flags=$(echo '{flags}' | sed 's/-O2 //') && CC={compiler} \
                 FLAGS=\"$flags -ffile-prefix-map=$PWD=.\" sh source/build .",
            ),
            (
                "linking the programs of",
                "include=; [ ! -d include ] || include=-Iinclude; \
                 for program in tests/vertices programs/viewer; do \
                 {compiler} {flags} \"-ffile-prefix-map=$PWD=.\" -std=gnu11 -D__gl_glext_h_ $include -o ${program#*/} \
                 source/$program.c libGL.so.1 -Wl,-rpath,'$ORIGIN' -lm; done",
            ),
            (
                "making a library without work for",
                "mkdir client && cp viewer client && \
                 $({compiler} -print-prog-name=nm) -u viewer | \
                 sed -n 's/.* U \\(gl[A-Z][A-Za-z0-9]*\\|offscreen_[a-z_]*\\)$/long \\1(void) { return 0; }/p' >client/empty.c && \
                 {compiler} {flags} -fPIC -shared -Wl,-soname,libGL.so.1 -o client/libGL.so.1 client/empty.c",
            ),
        ],
        images: &["vertices", "viewer", "libGL.so.1", "client/viewer"],
        editable: None,
    }),
    program: "vertices",
    unit: "vertices_frame",
    gauges: &[],
    toolchains: &[ORIGINAL, EXACT_TRAPS, EV6, NATIVE],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of the build's folders that it does not take: a fuzzer, and what needs an X server.
    const OTHERS: [&str; 2] = ["server/fuzz.c", "server/present.c"];

    #[test]
    fn the_sources_are_all_files_of_the_build() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/graphics");
        let mut files = 0;
        for part in ["", "protocol/", "server/", "xlib/"] {
            for entry in std::fs::read_dir(folder.join(part)).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{part}{}", entry.file_name().to_string_lossy());
                let is_source = GRAPHICS.sources.iter().any(|source| match source {
                    Source::Embedded { name: known, .. } => known.strip_prefix("source/") == Some(&name),
                    _ => false,
                });
                let is_file = entry.file_type().unwrap().is_file() && !OTHERS.contains(&name.as_str());
                assert_eq!(is_source, is_file, "{name}");
                files += u32::from(is_file);
            }
        }
        assert!(files > 30, "{files} files");
    }
}
