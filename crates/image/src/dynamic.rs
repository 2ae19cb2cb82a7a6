//! The dynamic section: what an image needs, and is.

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{Dyn, ProgramHeader};

use crate::error::ImageProblem;
use crate::names::text;
use crate::segments::Segment;

/// The entries of the dynamic section.
#[derive(Default)]
pub struct Dynamic {
    pub needed: Vec<String>,
    pub soname: Option<String>,
    pub position_independent_executable: bool,
}

impl Dynamic {
    /// From the segment that the dynamic linker reads.
    pub fn read(
        headers: &[elf::ProgramHeader64<LE>],
        segments: &[Segment],
        bytes: &[u8],
    ) -> Result<Dynamic, ImageProblem> {
        let mut dynamic = Dynamic::default();
        let table = headers.iter().find_map(|header| header.dynamic(LE, bytes).transpose());
        let entries = table.transpose()?.unwrap_or_default();
        let end = entries.iter().position(|entry| entry.d_tag(LE) == elf::DT_NULL).unwrap_or(entries.len());
        let entries = &entries[..end];
        let value = |tag| entries.iter().find(|entry| entry.d_tag(LE) == tag).map(|entry| entry.d_val(LE));
        let strings = value(elf::DT_STRTAB).and_then(|address| contents(segments, bytes, address));
        let mut names = 0;
        for entry in entries.iter().filter(|entry| entry.d_tag(LE) == elf::DT_NEEDED) {
            let name = strings.and_then(|strings| strings.get(usize::try_from(entry.d_val(LE)).ok()?..));
            let name = name.and_then(|name| name.split(|&byte| byte == 0).next());
            let name = name.ok_or_else(|| ImageProblem::Damaged("a needed library without a name".into()))?;
            names += name.len();
            if names > bytes.len() {
                return Err(ImageProblem::Damaged("names of needed libraries longer than the file".into()));
            }
            dynamic.needed.push(text(name).into());
        }
        let soname = value(elf::DT_SONAME).and_then(|at| strings?.get(usize::try_from(at).ok()?..));
        let soname = soname.and_then(|name| name.split(|&byte| byte == 0).next());
        dynamic.soname = soname.map(|name| text(name).into());
        let flags = value(elf::DT_FLAGS_1).unwrap_or_default();
        dynamic.position_independent_executable = flags & elf::DF_1_PIE.0 != 0;
        Ok(dynamic)
    }
}

/// The file's contents from a link-time address to the end of its segment.
fn contents<'a>(segments: &[Segment], bytes: &'a [u8], address: u64) -> Option<&'a [u8]> {
    let segment = segments.iter().find(|segment| segment.addresses().contains(&address))?;
    let offset = usize::try_from(address - segment.address).ok()?;
    bytes.get(segment.file.clone())?.get(offset..)
}
