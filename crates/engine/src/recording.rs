//! Records traces.

use std::io;
use std::sync::Arc;

use image::Image;
use trace::record::Event;
use trace::{BlockId, LoadedImage, Process, StreamWriter, Writer};

use crate::alpha::block::{Block, BlockCache};
use crate::alpha::interpreter::{Interest, Observer};

/// A block of the cache whose number in the trace is not known yet.
const UNKNOWN: BlockId = BlockId::MAX;

/// Records a thread: every block and every address.
pub struct Recorder {
    process: Arc<Process>,
    stream: StreamWriter,
    /// Numbers in the trace, by the cache's own.
    ids: Vec<BlockId>,
    words: Vec<u64>,
    images: Vec<(LoadedImage, Arc<Option<Image>>)>,
    error: Option<io::Error>,
}

impl Recorder {
    /// Records a program into a trace.
    pub fn new(writer: &Arc<Writer>, host_process: u32) -> Recorder {
        Recorder::of(Process::new(writer, 0, host_process), Vec::new())
    }

    fn of(process: Arc<Process>, images: Vec<(LoadedImage, Arc<Option<Image>>)>) -> Recorder {
        let stream = StreamWriter::new(&process);
        Recorder { process, stream, ids: Vec::new(), words: Vec::new(), images, error: None }
    }

    /// Why recording ended early, if it did.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    fn learn(&mut self, id: BlockId, block: &Block) -> io::Result<BlockId> {
        let holds = |(image, _): &(LoadedImage, _)| (image.start..image.end).contains(&block.address);
        let image = self.images.iter().rposition(holds);
        let entry = trace::Block {
            address: block.address,
            words: block.words.clone(),
            image: image.map(|i| i as u32),
        };
        let images = &self.images;
        let number = self.process.block(entry, || {
            let index = image?;
            let (loaded, file) = &images[index];
            let function = Option::as_ref(file)?.function_at(block.address.wrapping_sub(loaded.bias))?;
            Some(trace::Function {
                name: function.name.clone(),
                image: index as u32,
                address: function.address.wrapping_add(loaded.bias),
                size: function.size,
            })
        })?;
        if self.ids.len() <= id as usize {
            self.ids.resize(id as usize + 1, UNKNOWN);
        }
        self.ids[id as usize] = number;
        Ok(number)
    }

    fn record(&mut self, records: &[u64], cache: &BlockCache) -> io::Result<()> {
        self.words.clear();
        for &word in records {
            let word = match Event::new(word) {
                Event::Block(id) => {
                    let known = self.ids.get(id as usize).copied().filter(|&known| known != UNKNOWN);
                    let number = match known {
                        Some(number) => number,
                        None => self.learn(id, cache.block(id))?,
                    };
                    Event::Block(number).word()
                }
                _ => word,
            };
            self.words.push(word);
        }
        self.stream.write(&self.words)
    }
}

impl Observer for Recorder {
    const INTEREST: Interest = Interest::Accesses;

    fn thread(&self) -> Recorder {
        Recorder::of(self.process.clone(), self.images.clone())
    }

    fn executed(&mut self, records: &[u64], cache: &BlockCache) {
        if self.error.is_none() {
            self.error = self.record(records, cache).err();
        }
    }

    fn mapped(&mut self, image: &LoadedImage) {
        let file = Image::open(&image.path).ok();
        let build_id = file.as_ref().and_then(Image::build_id).unwrap_or_default().to_vec();
        let LoadedImage { path, start, end, bias } = image.clone();
        if let Err(error) = self.process.add_image(trace::Image { path, start, end, bias, build_id }) {
            self.error.get_or_insert(error);
        }
        self.images.push((image.clone(), Arc::new(file)));
    }
}
