//! TLBs of several processors against plain lists of pages, on random accesses and context switches.

use fastrand::Rng;
use pathlength_machine::{DataTlbs, Machine};

/// Two levels of TLBs of data, fully associative.
const SIZES: [usize; 2] = [4, 16];

fn machine(flushes: &str) -> Machine {
    let [first, second] = SIZES;
    Machine::from_toml(&format!(
        "base = \"pentium-pro\"\ncoherence.flushes = {flushes}\n\
         [translation_buffers.first]\nholds = \"data\"\nentries = {first}\npage = \"8K\"\nmiss_cycles = 7\n\
         [translation_buffers.second]\nlevel = 2\nholds = \"data\"\nentries = {second}\npage = \"8K\"\nmiss_cycles = 30\n"
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

/// A list of pages, the one used last at the end.
#[derive(Clone, Default)]
struct PlainTlb(Vec<(u32, u64)>);

impl PlainTlb {
    fn has(&mut self, page: (u32, u64), entries: usize) -> bool {
        let found = self.0.iter().position(|&one| one == page);
        found.map(|index| self.0.remove(index));
        self.0.push(page);
        if self.0.len() > entries {
            self.0.remove(0);
        }
        found.is_some()
    }
}

#[test]
fn tlbs_miss_as_lists_of_pages_do() {
    for (flushes, is_flushed) in
        [("[]", [false; 2]), ("[\"first\"]", [true, false]), ("[\"second\", \"first\"]", [true; 2])]
    {
        let mut random = Rng::with_seed(7);
        let mut tlbs = DataTlbs::new(&machine(flushes), 2);
        let mut plain = vec![[PlainTlb::default(), PlainTlb::default()]; 2];
        let mut running = [None; 2];
        let mut misses = [0; 2];
        for step in 0..20_000 {
            let processor = random.usize(..2);
            if running[processor].is_none() || random.u32(..40) == 0 {
                let process = random.u32(..3);
                tlbs.runs(processor as u8, process);
                if running[processor].replace(process).is_some_and(|before| before != process) {
                    let levels = plain[processor].iter_mut().zip(is_flushed);
                    levels.filter(|one| one.1).for_each(|(list, _)| list.0.clear());
                }
            }
            let process = running[processor].unwrap();
            let address = random.u64(..24) << 13 | random.u64(..1 << 13);
            tlbs.access(processor as u8, process, address);
            // A level is asked only if the one before it misses.
            for (level, list) in plain[processor].iter_mut().enumerate() {
                if list.has((process, address >> 13), SIZES[level]) {
                    break;
                }
                misses[level] += 1;
            }
            assert_eq!(tlbs.misses().map(|one| one.1).collect::<Vec<_>>(), misses, "{flushes}: {step}");
        }
        assert!(misses[1] > 1000 && misses[0] > misses[1], "{flushes}: {misses:?}");
        tlbs.reset_counts();
        assert_eq!(tlbs.misses().collect::<Vec<_>>(), [("first", 0), ("second", 0)]);
    }
}

#[test]
fn flushed_tlbs_exist() {
    let error = Machine::from_toml("base = \"pentium-pro\"\ncoherence.flushes = [\"itb\"]").unwrap_err();
    assert!(error.to_string().contains("coherence.flushes"), "{error}");
}
