//! System calls made directly, without a program: a page-by-page model of memory; hostile arguments; signal frames,
//! which must restore every register; and the virtual clock.

use alpha::cpu::{Cpu, Exception, register};
use guest_memory::{Memory, RegionBacking};
use linux_user::{self, Control, Kernel, SharedKernel, SystemSettings, Task};
use proptest::prelude::*;

const PAGE: u64 = <Cpu as linux_user::Abi>::LAYOUT.page;
const ADDRESS_SPACE: u64 = <Cpu as linux_user::Abi>::LAYOUT.bytes;

/// A process without a program, with some pages mapped for arguments.
struct Guest {
    kernel: SharedKernel<Cpu>,
    thread: Task<Cpu>,
    cpu: Cpu,
    memory: Memory,
}

const SCRATCH: u64 = 0x10_0000;
const SCRATCH_BYTES: u64 = 4 * PAGE;

impl Guest {
    fn new() -> Guest {
        let memory = pathlength_engine::reserve_memory().unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        memory.map_anonymous(SCRATCH, SCRATCH_BYTES, protection, false, RegionBacking::Anonymous).unwrap();
        let mut cpu = Cpu { pc: SCRATCH, ..Cpu::default() };
        cpu.r[register::SP] = SCRATCH + SCRATCH_BYTES;
        let thread = Task::first();
        let kernel = SharedKernel::new(Kernel::new(SystemSettings::default(), &thread));
        Guest { kernel, thread, cpu, memory }
    }

    /// Makes the call in the registers.
    fn make_call(&mut self) -> Control {
        let mut kernel = self.kernel.lock();
        self.thread.report(&mut kernel, self.cpu.instructions);
        linux_user::system_call(&mut kernel, &mut self.thread, &mut self.cpu, &self.memory)
    }

    /// The result, or the error number.
    fn call(&mut self, number: u64, arguments: [u64; 6]) -> Result<u64, u64> {
        self.cpu.r[register::V0] = number;
        self.cpu.r[register::A0..register::A0 + 6].copy_from_slice(&arguments);
        let control = self.make_call();
        assert!(matches!(control, Control::Continue | Control::Killed { .. }), "{number}: {control:?}");
        let value = self.cpu.r[register::V0];
        if self.cpu.r[register::A3] == 0 { Ok(value) } else { Err(value) }
    }
}

const MMAP: u64 = 71;
const MUNMAP: u64 = 73;
const MPROTECT: u64 = 74;
const MADVISE: u64 = 75;
const MREMAP: u64 = 341;
const ENOMEM: u64 = 12;
const EFAULT: u64 = 14;
const EINVAL: u64 = 22;

/// Where the model's pages are, and how many.
const BASE: u64 = 0x50_0000_0000;
const PAGES: usize = 24;

#[derive(Clone, Debug)]
enum Step {
    Map { at: usize, pages: usize, protection: u64 },
    Unmap { at: usize, pages: usize },
    Protect { at: usize, pages: usize, protection: u64 },
    Discard { at: usize, pages: usize },
    Move { at: usize, pages: usize, to: usize, new: usize },
    Store { at: usize, value: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let span = || (0..PAGES).prop_flat_map(|at| (Just(at), 1..=PAGES - at));
    let protection = || prop_oneof![Just(0u64), Just(1), Just(3), Just(5)];
    let step = prop_oneof![
        3 => (span(), protection()).prop_map(|((at, pages), protection)| Step::Map { at, pages, protection }),
        2 => span().prop_map(|(at, pages)| Step::Unmap { at, pages }),
        2 => (span(), protection()).prop_map(|((at, pages), protection)| Step::Protect { at, pages, protection }),
        1 => span().prop_map(|(at, pages)| Step::Discard { at, pages }),
        2 => (span(), span()).prop_map(|((at, pages), (to, new))| Step::Move { at, pages, to, new }),
        4 => (0..PAGES, any::<u8>()).prop_map(|(at, value)| Step::Store { at, value }),
    ];
    proptest::collection::vec(step, 1..40)
}

/// A page of the model: its protection and its first byte.
type Page = Option<(u64, u8)>;

fn address(page: usize) -> u64 {
    BASE + page as u64 * PAGE
}

/// Does a step on the model and in the guest, and compares the results.
fn apply(guest: &mut Guest, model: &mut [Page; PAGES], step: &Step) {
    let bytes = |pages: usize| pages as u64 * PAGE;
    match *step {
        Step::Map { at, pages, protection } => {
            let flags = 0x112; // MAP_FIXED, MAP_ANONYMOUS, MAP_PRIVATE
            let result = guest.call(MMAP, [address(at), bytes(pages), protection, flags, u64::MAX, 0]);
            assert_eq!(result, Ok(address(at)));
            model[at..at + pages].fill(Some((protection, 0)));
        }
        Step::Unmap { at, pages } => {
            assert_eq!(guest.call(MUNMAP, [address(at), bytes(pages), 0, 0, 0, 0]), Ok(0));
            model[at..at + pages].fill(None);
        }
        Step::Protect { at, pages, protection } => {
            let range = &mut model[at..at + pages];
            let whole = range.iter().all(Option::is_some);
            let result = guest.call(MPROTECT, [address(at), bytes(pages), protection, 0, 0, 0]);
            assert_eq!(result, if whole { Ok(0) } else { Err(ENOMEM) });
            if whole {
                range.iter_mut().flatten().for_each(|page| page.0 = protection);
            }
        }
        Step::Discard { at, pages } => {
            let range = &mut model[at..at + pages];
            let whole = range.iter().all(Option::is_some);
            let result = guest.call(MADVISE, [address(at), bytes(pages), 6, 0, 0, 0]);
            assert_eq!(result, if whole { Ok(0) } else { Err(ENOMEM) });
            if whole {
                range.iter_mut().flatten().for_each(|page| page.1 = 0);
            }
        }
        Step::Move { at, pages, to, new } => {
            let overlaps = to < at + pages && at < to + new;
            let first = model[at].map(|page| page.0);
            let alike = model[at..at + pages].iter().all(|page| page.map(|page| page.0) == first);
            let arguments = [address(at), bytes(pages), bytes(new), 3, address(to), 0];
            let before = *model;
            let result = guest.call(MREMAP, arguments);
            match result {
                Ok(result) => {
                    assert!(result == address(to) && !overlaps && first.is_some() && alike, "{step:?}");
                    model[at..at + pages].fill(None);
                    for index in 0..new {
                        let grown = Some((first.unwrap(), 0));
                        model[to + index] = if index < pages { before[at + index] } else { grown };
                    }
                }
                Err(EINVAL) => assert!(overlaps),
                Err(error) => {
                    // The host may have several mappings with the same properties: such a call may only be refused in
                    // addition.
                    assert_eq!(error, EFAULT, "{step:?}");
                    for (index, page) in model.iter_mut().enumerate().skip(to).take(new) {
                        if guest.memory.region_at(address(index)).is_none() {
                            *page = None;
                        }
                    }
                }
            }
        }
        Step::Store { at, value } => {
            let writable = model[at].is_some_and(|page| page.0 & 2 != 0);
            assert_eq!(guest.memory.store::<1>(address(at), u64::from(value)).is_ok(), writable);
            if let Some(page) = model[at].as_mut().filter(|_| writable) {
                page.1 = value;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn memory_is_as_the_calls_made_it(steps in steps()) {
        let mut guest = Guest::new();
        let mut model: [Page; PAGES] = [None; PAGES];
        for step in &steps {
            apply(&mut guest, &mut model, step);
            for (index, page) in model.iter().enumerate() {
                let region = guest.memory.region_at(address(index)).map(|(_, region)| region.protection as u64);
                prop_assert_eq!(region, page.map(|page| page.0), "page {} after {:?}", index, step);
                let loaded = guest.memory.load::<1>(address(index)).ok();
                let readable = page.filter(|page| page.0 != 0).map(|page| u64::from(page.1));
                prop_assert_eq!(loaded, readable, "page {} after {:?}", index, step);
            }
        }
    }

    /// Calls that cannot harm the test itself, with arbitrary arguments: they must not panic, and must return.
    #[test]
    fn hostile_arguments(calls in proptest::collection::vec((any::<prop::sample::Index>(), arguments()), 1..60)) {
        let mut guest = Guest::new();
        for (index, arguments) in calls {
            let number = *index.get(HARMLESS);
            let answer = guest.call(number, arguments);
            // sigreturn returns no result, but loads all registers from memory.
            if let Err(error) = answer && !RETURNS.contains(&number) {
                prop_assert!((1..=140).contains(&error), "call {number}: error {error}");
            }
        }
    }

    #[test]
    fn handlers_give_back_every_register(
        integers in proptest::array::uniform32(any::<u64>()),
        floats in proptest::array::uniform32(any::<u64>()),
        fpcr in any::<u64>(),
        with_information in any::<bool>(),
    ) {
        let mut guest = Guest::new();
        guest.cpu.r[..31].copy_from_slice(&integers[..31]);
        guest.cpu.f[..31].copy_from_slice(&floats[..31]);
        guest.cpu.fpcr = fpcr;
        guest.cpu.r[register::SP] = SCRATCH + SCRATCH_BYTES - 256;
        let before = guest.cpu.clone();
        const HANDLER: u64 = 0x1_2345_6780;
        const SIGTRAP: u64 = 5;
        let flags = if with_information { 0x40 } else { 0 };
        for (index, word) in [HANDLER, flags, 0].into_iter().enumerate() {
            guest.memory.store::<8>(SCRATCH + 8 * index as u64, word).unwrap();
        }
        guest.call(352, [SIGTRAP, SCRATCH, 0, 8, 0, 0]).unwrap();
        guest.cpu = before.clone();
        let mut kernel = guest.kernel.lock();
        let control = guest.thread.raise(&mut kernel, &mut guest.cpu, &guest.memory, Exception::Breakpoint);
        drop(kernel);
        prop_assert_eq!(control, Control::Continue);
        prop_assert_eq!(guest.cpu.pc, HANDLER);
        prop_assert_eq!(guest.cpu.r[register::PV], HANDLER);
        prop_assert_eq!(guest.cpu.r[register::A0], SIGTRAP);
        let frame = guest.cpu.r[register::SP];
        prop_assert_eq!(frame % 32, 0);
        // The return address holds code that makes the right call with the frame as its argument.
        let code: Vec<u64> = (0..3)
            .map(|index| guest.memory.load::<4>(guest.cpu.r[register::RA] + 4 * index).unwrap())
            .collect();
        let number = if with_information { 351 } else { 103 };
        prop_assert_eq!(code, vec![0x47fe_0410, 0x201f_0000 + number, 0x83]);
        guest.cpu.r[register::V0] = number;
        guest.cpu.r[register::A0] = frame;
        guest.make_call();
        prop_assert_eq!(&guest.cpu.r[..32], &before.r[..32]);
        prop_assert_eq!(&guest.cpu.f[..31], &before.f[..31]);
        prop_assert_eq!((guest.cpu.pc, guest.cpu.fpcr), (before.pc, before.fpcr));
    }
}

/// Arguments: numbers, valid and invalid pointers, and descriptors that are not open.
fn arguments() -> impl Strategy<Value = [u64; 6]> {
    let argument = prop_oneof![
        0..20u64,
        Just(u64::MAX),
        Just(1 << 63),
        Just(ADDRESS_SPACE - 1),
        Just(ADDRESS_SPACE),
        Just(ADDRESS_SPACE - PAGE),
        Just(SCRATCH),
        (0..SCRATCH_BYTES).prop_map(|offset| SCRATCH + offset),
        Just(SCRATCH + SCRATCH_BYTES - 4),
        Just(u64::MAX - 7),
        any::<u64>(),
    ];
    // The first is a number or a pointer too, but never an open descriptor.
    let first = prop_oneof![Just(SCRATCH), Just(u64::MAX), 100_000..100_020u64, any::<u64>()];
    (first, proptest::array::uniform5(argument)).prop_map(|(first, rest)| {
        let first = if (first as u32) < 1000 { first | 1 << 20 } else { first };
        [first, rest[0], rest[1], rest[2], rest[3], rest[4]]
    })
}

/// The calls of [`HARMLESS`] by which a signal handler returns.
const RETURNS: [u64; 2] = [103, 351];

/// Calls that take pointers, lengths and counts and can neither block nor change what the test needs.
#[rustfmt::skip]
const HARMLESS: &[u64] = &[
    3, 4, 17, 20, 33, 42, 48, 52, 54, 58, 59, 64, 67, 68, 71, 73, 74, 75, 79, 91, 92, 98, 99, 101,
    102, 103, 104, 105, 113, 114, 116, 117, 118, 120, 121, 125, 133, 135, 141, 144, 150, 160, 200, 202,
    203, 204, 206, 207, 209, 210, 211, 217, 235, 256, 257, 305, 314, 315, 318, 323, 328, 329, 339, 341,
    349, 350, 351, 354, 356, 359, 361, 364, 367, 375, 377, 385, 396, 408, 409, 415, 416, 420, 421, 423,
    425, 426, 427, 455, 460, 473, 479, 482, 484, 490, 491, 503, 511, 520, 522, 528, 529,
];

#[test]
fn pointers_outside_the_address_space() {
    let mut guest = Guest::new();
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&zeros) as u64;
    const READ: u64 = 3;
    for address in [0, 8, ADDRESS_SPACE, ADDRESS_SPACE - 4, 1 << 63, u64::MAX] {
        assert_eq!(guest.call(READ, [descriptor, address, 8, 0, 0, 0]), Err(EFAULT), "{address:#x}");
    }
    for bytes in [ADDRESS_SPACE, u64::MAX, 1 << 63] {
        assert_eq!(guest.call(READ, [descriptor, SCRATCH, bytes, 0, 0, 0]), Err(EFAULT), "{bytes:#x}");
    }
    assert_eq!(guest.call(READ, [descriptor, SCRATCH, 8, 0, 0, 0]), Ok(8));
}

#[test]
fn virtual_time_is_that_of_the_instructions() {
    const CLOCK_GETTIME: u64 = 420;
    let mut guest = Guest::new();
    let time = |guest: &mut Guest, clock: u64| {
        guest.call(CLOCK_GETTIME, [clock, SCRATCH, 0, 0, 0, 0]).unwrap();
        (guest.memory.load::<8>(SCRATCH).unwrap(), guest.memory.load::<8>(SCRATCH + 8).unwrap())
    };
    assert_eq!(time(&mut guest, 0), (1_767_225_600, 0));
    guest.cpu.instructions = 2_000_000_123;
    assert_eq!(time(&mut guest, 0), (1_767_225_602, 123));
    assert_eq!(time(&mut guest, 2), (2, 123));
}
