//! Finds the file that has the symbols and the debug information of a stripped image, where GDB looks for it ("Debugging
//! Information in Separate Files"): by the build id, or by the name in `.gnu_debuglink` and its checksum.

use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{LittleEndian as LE, Object};

/// The contents of the debug file of an image, if there is one that belongs to it.
pub(crate) fn find(path: &Path, file: &ElfFile64<LE>) -> Option<Vec<u8>> {
    let build_id = file.build_id().ok().flatten();
    let link = file.gnu_debuglink().ok().flatten();
    if build_id.is_none() && link.is_none() {
        return None;
    }
    let path = fs::canonicalize(path).ok()?;
    let folder = path.parent()?;
    let roots = roots(folder);
    let by_id = build_id.filter(|id| id.len() > 1).and_then(|id| {
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let name = format!(".build-id/{}/{}.debug", digits(&id[..1]), digits(&id[1..]));
        let mut found = roots.iter().filter_map(|root| fs::read(root.join(&name)).ok());
        found.find(|bytes| has_build_id(bytes, id))
    });
    by_id.or_else(|| {
        let (name, checksum) = link?;
        let name = Path::new(std::str::from_utf8(name).ok()?).file_name()?;
        let mirrored =
            roots.iter().map(|root| root.join(folder.strip_prefix("/").unwrap_or(folder)).join(name));
        let mut paths = vec![folder.join(name), folder.join(".debug").join(name)];
        paths.extend(mirrored);
        let mut found =
            paths.into_iter().filter(|other| *other != path).filter_map(|other| fs::read(other).ok());
        let belongs = |bytes: &Vec<u8>| match build_id {
            Some(id) if has_build_id(bytes, id) => true,
            _ => crc32fast::hash(bytes) == checksum,
        };
        found.find(belongs)
    })
}

/// The folders of debug files: the system's, and those of the sysroot that an image lies in.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let above = folder.ancestors().flat_map(|above| [above.join("lib/debug"), above.join("usr/lib/debug")]);
    above.filter(|root| root.is_dir()).collect()
}

fn has_build_id(bytes: &[u8], id: &[u8]) -> bool {
    ElfFile64::<LE>::parse(bytes).is_ok_and(|file| file.build_id().ok().flatten() == Some(id))
}
