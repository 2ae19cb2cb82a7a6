//! Many cells under random circuits, credits, losses, resets and exhaustion: nothing is lost that the link did not lose, nothing leaks,
//! and every byte of a packet that was received well is the one that was sent.

use std::collections::VecDeque;

use pathlength_adapter::{
    AdapterDescription, AdapterModel, AdapterProgram, AdapterRegister, CommandRing, DmaCommand, FarEnd,
    Hardware, HostEvent, LinkFaults, PacketStatus, PacketSummary, aal5,
};

const SLOTS: u32 = 1024;
const SLOT: u32 = 4096;
/// The address of received packets in host memory, behind those that are sent.
const RECEIVED: u64 = (SLOTS * SLOT) as u64;
const LONGEST: u32 = 3000;
/// Ticks without a packet, after which the program resets the adapter.
const PATIENCE: u32 = 300;

/// A packet that was sent, and not received yet.
struct SentPacket {
    number: u64,
    slot: u32,
    bytes: u32,
}

/// A program that sends, keeps and recycles packets at random.
struct RandomHost {
    random: fastrand::Rng,
    ring: CommandRing,
    circuits: Vec<VecDeque<SentPacket>>,
    free_slots: Vec<u32>,
    next: u64,
    /// Packets that were copied and checked, and wait to be recycled.
    kept: Vec<u32>,
    most_kept: usize,
    /// Packets whose copy was ordered.
    copied: VecDeque<(PacketSummary, u64)>,
    consumer: u32,
    is_resetting: bool,
    resets_at_random: bool,
    without_progress: u32,
    cells: u64,
    target: u64,
    checked: u64,
    damaged: u64,
}

fn byte(number: u64, index: usize) -> u8 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (index % 7 * 8)) as u8 ^ (index as u8).wrapping_mul(31)
}

fn contents(number: u64, bytes: u32) -> Vec<u8> {
    let mut all = number.to_le_bytes().to_vec();
    all.extend((8..bytes as usize).map(|index| byte(number, index)));
    all
}

impl RandomHost {
    fn new(mut random: fastrand::Rng, circuits: u32, target: u64, resets_at_random: bool) -> RandomHost {
        let most_kept = *random.choice(&[0, 5, 50]).unwrap();
        RandomHost {
            random,
            ring: CommandRing::default(),
            circuits: (0..circuits).map(|_| VecDeque::new()).collect(),
            free_slots: (0..SLOTS).collect(),
            next: 0,
            kept: Vec::new(),
            most_kept,
            copied: VecDeque::new(),
            consumer: 0,
            is_resetting: false,
            resets_at_random,
            without_progress: 0,
            cells: 0,
            target,
            checked: 0,
            damaged: 0,
        }
    }

    fn send(&mut self, hardware: &mut Hardware) {
        let circuit = self.random.usize(0..self.circuits.len());
        if self.circuits[circuit].len() >= 8 {
            return;
        }
        let Some(slot) = self.free_slots.pop() else { return };
        let most = *self.random.choice(&[40, 100, LONGEST]).unwrap();
        let (number, bytes) = (self.next, self.random.u32(8..=most));
        self.next += 1;
        let (host, adapter) = (u64::from(slot * SLOT), slot * SLOT);
        let memory = hardware.host_contents().unwrap();
        memory[host as usize..][..bytes as usize].copy_from_slice(&contents(number, bytes));
        // Scattered: in two parts, whose border is any byte.
        let first = self.random.u32(1..=bytes);
        for (offset, part) in [(0, first), (first, bytes - first)] {
            if part > 0 {
                let (host, adapter) = (host + u64::from(offset), adapter + offset);
                self.ring.push(hardware, DmaCommand::CopyToAdapter { host, adapter, bytes: part });
            }
        }
        let command = DmaCommand::Transmit { circuit: circuit as u32, adapter, bytes, packet_bytes: 0 };
        self.ring.push(hardware, command);
        self.circuits[circuit].push_back(SentPacket { number, slot, bytes });
    }

    fn tell(&mut self, hardware: &mut Hardware) {
        if let Some(producer) = self.ring.take_producer() {
            hardware.write_register(AdapterRegister::CommandProducer, producer);
        }
    }

    fn receive(&mut self, summary: PacketSummary, hardware: &mut Hardware) {
        self.without_progress = 0;
        self.consumer = (self.consumer + 1) % hardware.description().receive.ring;
        hardware.write_register(AdapterRegister::SummaryConsumer, self.consumer);
        let packet = summary.packet.unwrap();
        if summary.status == PacketStatus::Damaged {
            self.damaged += 1;
            self.ring.push(hardware, DmaCommand::Recycle { packet });
        } else {
            self.cells += aal5::cells(summary.bytes as usize) as u64;
            let host = RECEIVED + u64::from(packet % SLOTS * SLOT);
            self.ring
                .push(hardware, DmaCommand::CopyToHost { packet, offset: 0, host, bytes: summary.bytes });
            self.copied.push_back((summary, host));
        }
        self.tell(hardware);
    }

    /// A packet was copied to host memory: it must be the next one of its circuit that the link has not lost.
    fn check(&mut self, hardware: &mut Hardware) {
        let (summary, host) = self.copied.pop_front().unwrap();
        let memory = hardware.host_contents().unwrap();
        let bytes = &memory[host as usize..][..summary.bytes as usize];
        let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert_eq!(bytes, contents(number, summary.bytes), "packet {number} has other bytes");
        assert_eq!(summary.sum, aal5::internet_sum(bytes));
        let sent = &mut self.circuits[summary.circuit as usize];
        loop {
            let packet = sent.pop_front().expect("a packet was received that was not sent, or twice");
            self.free_slots.push(packet.slot);
            if packet.number == number {
                assert_eq!(packet.bytes, summary.bytes);
                break;
            }
        }
        self.checked += 1;
        self.kept.push(summary.packet.unwrap());
    }

    fn tick(&mut self, hardware: &mut Hardware) {
        hardware.wake_after(self.random.u64(1..40_000_000));
        self.without_progress += 1;
        let resets = self.resets_at_random && self.random.u32(0..100) == 0;
        if resets || self.without_progress > PATIENCE {
            self.is_resetting = true;
            hardware.write_register(AdapterRegister::Reset, 0);
            return hardware.read_register(AdapterRegister::Other);
        }
        for _ in 0..self.random.u32(0..8) {
            self.send(hardware);
        }
        while self.kept.len() > self.most_kept || (!self.kept.is_empty() && self.random.bool()) {
            let packet = self.kept.swap_remove(self.random.usize(0..self.kept.len()));
            self.ring.push(hardware, DmaCommand::Recycle { packet });
        }
        self.tell(hardware);
    }

    /// The adapter has nothing any more of what it had.
    fn was_reset(&mut self) {
        self.is_resetting = false;
        self.without_progress = 0;
        self.ring = CommandRing::default();
        self.consumer = 0;
        self.kept.clear();
        self.copied.clear();
        self.free_slots = (0..SLOTS).collect();
        self.circuits.iter_mut().for_each(VecDeque::clear);
    }
}

impl AdapterProgram for RandomHost {
    fn start(&mut self, hardware: &mut Hardware) {
        hardware.wake_after(1);
    }

    fn observe(&mut self, event: HostEvent, hardware: &mut Hardware) {
        match event {
            HostEvent::Value(..) => {
                self.was_reset();
                hardware.wake_after(1);
            }
            _ if self.is_resetting => {}
            HostEvent::Timer => self.tick(hardware),
            HostEvent::Summary(summary) => self.receive(summary, hardware),
            HostEvent::Executed(command) => {
                self.ring.executed(hardware);
                if matches!(command, DmaCommand::CopyToHost { .. }) {
                    self.check(hardware);
                }
            }
            _ => {}
        }
    }

    fn is_finished(&self) -> bool {
        self.cells >= self.target
    }
}

/// An adapter whose buffers are as few as they may be, or many; with credits, in batches or not, or without.
fn random_adapter(random: &mut fastrand::Rng) -> AdapterDescription {
    let batch = random.u32(1..10);
    let longest = aal5::cells(LONGEST as usize) as u32;
    // A packet must fit the quota of its circuit beside the credits that wait for their batch.
    let least = longest + batch;
    let settings = [
        format!("link.circuits={}", random.u32(1..40)),
        format!("receive.shared={}", random.choice(&[0, 1, 30, 10_000]).unwrap()),
        format!("receive.per_circuit={}", random.u32(least..2 * least)),
        format!("receive.ring={}", random.choice(&[4, 16, 1024]).unwrap()),
        format!("dma.ring={}", random.choice(&[4, 16, 1024]).unwrap()),
        format!("dma.fetch={}", random.u32(1..9)),
        format!("dma.prefetch={}", random.u32(1..4)),
        format!("bus.bits={}", random.choice(&[32, 64]).unwrap()),
        format!("bus.latency_timer={}", random.choice(&["none", "8", "32"]).unwrap()),
        if random.u32(0..4) == 0 { "credits=none".into() } else { format!("credits.batch={batch}") },
    ];
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    AdapterDescription::find_with("dart-simulation", &settings).unwrap()
}

#[test]
fn nothing_is_lost_and_nothing_leaks() {
    let mut random = fastrand::Rng::with_seed(3);
    let (runs, target) = testing::sample((20, 5_000), (100, 100_000));
    let [mut cells, mut lost, mut dropped, mut resets, mut damaged, mut batches] = [0; 6];
    for run in 0..runs {
        let description = random_adapter(&mut random);
        let [rate, damage] = *random.choice(&[[0, 0], [1000, 0], [0, 1000], [300, 300]]).unwrap();
        let faults = LinkFaults::new(run, rate, damage);
        let host = RandomHost::new(random.fork(), description.link.circuits, target, random.bool());
        let memory = (RECEIVED * 2) as usize;
        let mut model = AdapterModel::new(&description, FarEnd::LoopWithContents(memory), faults, host);
        let mut steps = 0_u32;
        while !model.host().is_finished() {
            assert!(model.step(), "run {run} stands still");
            steps += 1;
            if steps.is_multiple_of(1024) {
                model.hardware().audit().unwrap_or_else(|error| panic!("run {run}, step {steps}: {error}"));
            }
        }
        model.hardware().audit().unwrap();
        let counts = model.hardware().counts();
        assert_eq!(counts.command_errors, 0, "run {run}");
        if rate == 0 && damage == 0 && description.credits.is_some() && counts.resets == 0 {
            assert_eq!((counts.packets_damaged, counts.cells_dropped), (0, 0), "run {run}");
        }
        cells += counts.cells_received;
        lost += counts.cells_lost;
        dropped += counts.cells_dropped;
        resets += counts.resets;
        damaged += counts.packets_damaged;
        batches += counts.credit_messages;
        assert!(model.host().checked > 0 && model.host().damaged <= counts.packets_damaged);
    }
    assert!(cells >= runs * target, "{cells}");
    let seen = [lost, dropped, resets, damaged, batches];
    assert!(seen.iter().all(|&number| number > 10), "{seen:?}");
}
