//! Processors on a bus against a plain model that keeps every transaction and every miss for ever, and searches them; and
//! against sequences computed by hand.

use events::record::{Event, Mark};
use events::{Block, Thread};
use fastrand::Rng;
use isa::{Op, encode};
use pathlength_machine::{
    BusOperation, BusProcessor, CoherentMemory, Exchange, Machine, Multiprocessor, NextStep, ProcessorCause,
    Transaction,
};

/// A machine with one private cache and a timed bus.
fn machine(size: u64, protocol: &str, bus: &str, processor: &str) -> Machine {
    Machine::from_toml(&format!(
        "title = \"small\"\n[processor]\nname = \"one\"\nclock_mhz = 200\n[caches.l1]\nlevel = 1\nholds = \"data\"\n\
         size = {size}\nways = 2\nline = 32\nwrite = \"back\"\nallocate_on_write = true\nlatency = 1\n[memory]\n\
         latency_ns = 1000\n[coherence]\nprotocol = \"{protocol}\"\n[coherence.bus]\n{bus}\n[coherence.processor]\n\
         {processor}\n"
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

/// What a processor executes: blocks of one program, with the addresses of their accesses.
type Program = Vec<(usize, Vec<u64>)>;

/// A block: the number of its instructions, of its barriers, and its accesses: size, and whether they store.
#[derive(Clone, Debug)]
struct PlainBlock {
    instructions: u64,
    barriers: u64,
    accesses: Vec<(u8, bool)>,
}

fn block(rng: &mut Rng, number: u64) -> (Block, PlainBlock) {
    let mut words = Vec::new();
    let mut plain = PlainBlock { instructions: 0, barriers: 0, accesses: Vec::new() };
    for _ in 0..rng.usize(1..8) {
        let (op, access) = *rng
            .choice(&[
                (Op::Ldq, Some((8, false))),
                (Op::Stq, Some((8, true))),
                (Op::Ldl, Some((4, false))),
                (Op::Lda, None),
                (Op::Lda, None),
                (Op::Mb, None),
            ])
            .unwrap();
        plain.barriers += u64::from(op == Op::Mb);
        plain.accesses.extend(access);
        words.push(match op {
            Op::Mb => encode::memory_function(op, 31, 31).unwrap(),
            op => encode::memory(op, 1, 2, 0).unwrap(),
        });
    }
    plain.instructions = words.len() as u64;
    (Block::new(&isa::Alpha, 0x1_2000_0000 + 64 * number, words), plain)
}

/// A transaction on the bus of a node, with all times.
#[derive(Clone, Copy, Debug)]
struct PlainTransaction {
    node: usize,
    address_end: u64,
    /// Without one, an upgrade.
    data_end: Option<u64>,
    /// The bank, and until when it is occupied.
    bank: Option<(u64, u64)>,
}

/// What a node needed of others: until when its interface sent it, and until when the directory at the line's home worked for it.
#[derive(Clone, Copy, Debug)]
struct PlainExchange {
    node: usize,
    sent: u64,
    directory: Option<(u8, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct PlainMiss {
    end: u64,
    kind: Transaction,
    is_load: bool,
    executed: u64,
}

#[derive(Clone, Debug, Default)]
struct PlainProcessor {
    time: u64,
    next: usize,
    access: Option<usize>,
    executed: u64,
    misses: Vec<PlainMiss>,
    spent: [u64; 9],
}

impl PlainProcessor {
    fn wait(&mut self, until: u64, cause: ProcessorCause) {
        if until > self.time {
            self.spent[cause as usize] += until - self.time;
            self.time = until;
        }
    }
}

fn cause_of(kind: Transaction) -> ProcessorCause {
    match kind {
        Transaction::Transfer | Transaction::TransferAndUpdate => ProcessorCause::Transfer,
        Transaction::Memory | Transaction::Upgrade | Transaction::WriteBack => ProcessorCause::Memory,
        Transaction::Remote => ProcessorCause::Remote,
    }
}

struct PlainMachine<'a> {
    memory: CoherentMemory,
    machine: &'a Machine,
    bus_cycle: u64,
    cycle: u64,
    transactions: Vec<PlainTransaction>,
    exchanges: Vec<PlainExchange>,
    waited: u64,
}

impl PlainMachine<'_> {
    fn node_of(&self, number: usize) -> usize {
        let nodes = self.machine.coherence.as_ref().unwrap().nodes.as_ref();
        nodes.map_or(0, |nodes| number / nodes.processors as usize)
    }

    /// What other nodes are needed for, from a time on: its end, and how long it takes if nothing else happens.
    fn exchange(&mut self, now: u64, node: usize, exchange: &Exchange) -> (u64, u64) {
        let nodes = self.machine.coherence.as_ref().unwrap().nodes.as_ref().unwrap();
        let [hop, directory, interface] =
            [nodes.hop_ns, nodes.directory_ns, nodes.interface_ns].map(|time| (time * 1000.0) as u64);
        let before = self.exchanges.iter().filter(|one| one.node == node).map(|one| one.sent).max();
        let start = before.unwrap_or(0).max(now);
        let idle = hop * u64::from(exchange.hops) + directory * u64::from(exchange.lookups);
        let mut end = start + idle;
        let of_home = self.exchanges.iter().filter_map(|one| one.directory);
        let busy = of_home.filter(|&(home, _)| home == exchange.home).map(|(_, end)| end).max();
        let served = busy.unwrap_or(0).max(start + hop);
        if exchange.lookups > 0 {
            end += served - (start + hop);
        }
        let directory =
            (exchange.lookups > 0).then(|| (exchange.home, served + directory * u64::from(exchange.lookups)));
        let sent = start + interface * exchange.operations.map(u64::from).iter().sum::<u64>();
        self.exchanges.push(PlainExchange { node, sent, directory });
        (end, idle)
    }

    fn request(&mut self, now: u64, node: usize, kind: Transaction, line: u64, remote: &Exchange) -> u64 {
        let bus = self.machine.coherence.as_ref().unwrap().bus.clone().unwrap();
        let bus_cycle = self.bus_cycle;
        let cycles = |count: u32| u64::from(count) * bus_cycle;
        let all: Vec<PlainTransaction> =
            self.transactions.iter().copied().filter(|one| one.node == node).collect();
        let has_data = !matches!(kind, Transaction::Upgrade | Transaction::Remote);
        // The first time at which few enough have not got their data.
        let open = |time: u64| all.iter().filter(|one| one.data_end.is_some_and(|end| end > time)).count();
        let ends = all.iter().filter_map(|one| one.data_end).filter(|&end| end > now);
        let admitted =
            std::iter::once(now).chain(ends).filter(|&time| open(time) < bus.outstanding as usize).min();
        let start = if has_data { admitted.unwrap() } else { now };
        let last_address = all.iter().map(|one| one.address_end).max().unwrap_or(0);
        let address_end = (start + cycles(bus.arbitration)).max(last_address) + cycles(bus.address);
        let last_data = all.iter().filter_map(|one| one.data_end).max().unwrap_or(0);
        let bank = line % u64::from(bus.banks);
        let bank_free = |at: u64| {
            let ends = all.iter().filter_map(|one| one.bank).filter(|&(other, _)| other == bank);
            ends.map(|(_, end)| end).max().unwrap_or(0).max(at)
        };
        let mut transaction = PlainTransaction { node, address_end, data_end: None, bank: None };
        let (end, idle) = match kind {
            Transaction::Upgrade => (address_end, 0),
            Transaction::Remote => {
                let (end, idle) = self.exchange(address_end, node, remote);
                (end + self.bus_cycle, idle + self.bus_cycle)
            }
            _ => {
                let from_memory = bank_free(address_end);
                let (ready, idle) = match kind {
                    Transaction::Memory => (from_memory + cycles(bus.memory), cycles(bus.memory)),
                    Transaction::WriteBack => (address_end, 0),
                    _ => (address_end + cycles(bus.transfer), cycles(bus.transfer)),
                };
                let data = ready.max(last_data);
                transaction.data_end = Some(data + cycles(bus.data));
                transaction.bank = match kind {
                    Transaction::Memory => Some((bank, from_memory + cycles(bus.bank))),
                    Transaction::Transfer => None,
                    _ => Some((bank, bank_free(data) + cycles(bus.bank))),
                };
                (data + self.bus_cycle, idle + self.bus_cycle)
            }
        };
        self.waited += end - now - (cycles(bus.arbitration) + cycles(bus.address) + idle);
        self.transactions.push(transaction);
        end
    }

    /// Makes the accesses of a block from a number on, up to one that uses the bus; the number of the next one.
    fn accesses(
        &mut self,
        number: usize,
        processor: &mut PlainProcessor,
        block: &PlainBlock,
        addresses: &[u64],
    ) {
        let rules: BusProcessor = self.machine.coherence.as_ref().unwrap().processor.clone().unwrap();
        let first = processor.access.take().unwrap_or(0);
        for (index, &address) in addresses.iter().enumerate().skip(first) {
            let (size, is_store) = block.accesses[index];
            let before = self.memory.counts().clone();
            let Some(event) = self.memory.access(number as u8, address, size, is_store) else {
                continue;
            };
            self.memory.take_decisions();
            let after = self.memory.counts().clone();
            let kind = match event.operation {
                _ if event.exchange.hops > 0 => Transaction::Remote,
                BusOperation::Upgrade => Transaction::Upgrade,
                _ if after.memory_updates > before.memory_updates => Transaction::TransferAndUpdate,
                _ if after.transfers > before.transfers => Transaction::Transfer,
                _ => Transaction::Memory,
            };
            let open = |processor: &PlainProcessor| -> Vec<u64> {
                processor.misses.iter().map(|miss| miss.end).filter(|&end| end > processor.time).collect()
            };
            while open(processor).len() >= rules.outstanding as usize {
                let first = open(processor).into_iter().min().unwrap();
                processor.wait(first, ProcessorCause::Outstanding);
            }
            let line = address / 32;
            let node = self.node_of(number);
            let end = self.request(processor.time, node, kind, line, &event.exchange);
            if after.write_backs > before.write_backs {
                self.request(processor.time, node, Transaction::WriteBack, line, &event.exchange);
            }
            if !is_store && rules.window == 0 {
                processor.wait(end, cause_of(kind));
            } else {
                let executed = processor.executed;
                processor.misses.push(PlainMiss { end, kind, is_load: !is_store, executed });
            }
            if index + 1 < block.accesses.len() {
                processor.access = Some(index + 1);
            }
            return;
        }
    }

    fn step(
        &mut self,
        number: usize,
        processor: &mut PlainProcessor,
        program: &Program,
        blocks: &[PlainBlock],
    ) {
        let rules = self.machine.coherence.as_ref().unwrap().processor.clone().unwrap();
        if processor.access.is_none() {
            let block = &blocks[program[processor.next].0];
            processor.next += 1;
            processor.executed += block.instructions;
            let time = (block.instructions as f64 * rules.cycles_per_instruction * self.cycle as f64).round();
            processor.wait(processor.time + time as u64, ProcessorCause::Busy);
            for miss in processor.misses.clone() {
                if miss.is_load && miss.executed + u64::from(rules.window) < processor.executed {
                    processor.wait(miss.end, cause_of(miss.kind));
                }
            }
            for _ in 0..block.barriers {
                for miss in processor.misses.clone() {
                    processor.wait(miss.end, ProcessorCause::Barrier);
                }
                let barrier = self.cycle * u64::from(rules.barrier);
                processor.wait(processor.time + barrier, ProcessorCause::Barrier);
            }
        }
        let (block, addresses) = &program[processor.next - 1];
        self.accesses(number, processor, &blocks[*block], addresses);
    }
}

/// Executes programs on the fast model.
fn run(machine: &Machine, blocks: &[Block], programs: &[Program]) -> Multiprocessor {
    let coherence = machine.coherence.as_ref().unwrap();
    let (bus, processor) = (coherence.bus.as_ref().unwrap(), coherence.processor.as_ref().unwrap());
    let mut fast = Multiprocessor::new(machine, coherence, bus, processor, programs.len());
    blocks.iter().for_each(|block| fast.define(block));
    for (number, program) in programs.iter().enumerate() {
        let words: Vec<u64> = program
            .iter()
            .flat_map(|(block, addresses)| {
                std::iter::once(Event::Block(*block as u32).word()).chain(addresses.iter().copied())
            })
            .collect();
        fast.feed(number, Thread { process: 0, number: number as u32 }, &words);
    }
    loop {
        match fast.next_step() {
            NextStep::Continue => fast.step(),
            NextStep::Feed(number) => fast.idle(number),
            NextStep::AllIdle => break,
        }
    }
    fast.end();
    fast
}

fn random_machine(rng: &mut Rng) -> Machine {
    let protocol = *rng.choice(&["msi", "mesi", "moesi"]).unwrap();
    let bus = format!(
        "clock_mhz = {}\narbitration = {}\naddress = {}\ndata = {}\nmemory = {}\ntransfer = {}\nbanks = {}\nbank = {}\n\
         outstanding = {}",
        *rng.choice(&[66.67, 50.0, 200.0]).unwrap(),
        rng.u32(0..4),
        rng.u32(1..5),
        rng.u32(1..6),
        rng.u32(0..20),
        rng.u32(0..20),
        rng.u32(1..5),
        rng.u32(0..15),
        rng.u32(1..9)
    );
    let processor = format!(
        "cycles_per_instruction = {}\noutstanding = {}\nwindow = {}\nbarrier = {}",
        *rng.choice(&[0.7, 1.0, 2.5]).unwrap(),
        rng.u32(1..6),
        *rng.choice(&[0, 0, 5, 40]).unwrap(),
        rng.u32(0..10)
    );
    let nodes = match protocol != "moesi" && rng.bool() {
        true => format!(
            "[coherence.nodes]\nprocessors = {}\ndirectory = \"{}\"\nhop_ns = {}\ndirectory_ns = {}\ninterface_ns = {}\n\
             [coherence.nodes.far_cache]\nsize = 1024\nways = 1\nline = 32\n",
            rng.u32(1..4),
            *rng.choice(&["sci", "bit-vector"]).unwrap(),
            rng.u32(0..300),
            rng.u32(0..200),
            rng.u32(0..100)
        ),
        false => String::new(),
    };
    machine(*rng.choice(&[256, 1024]).unwrap(), protocol, &bus, &(processor + "\n" + &nodes))
}

#[test]
fn random_programs_take_the_time_of_the_plain_model() {
    let mut seen = [0u64; 9];
    for seed in 0..testing::sample(150, 5000) {
        let mut rng = Rng::with_seed(seed);
        let machine = random_machine(&mut rng);
        let (blocks, plain_blocks): (Vec<Block>, Vec<PlainBlock>) =
            (0..rng.u64(1..6)).map(|number| block(&mut rng, number)).unzip();
        let processors = rng.usize(1..6);
        let address = |rng: &mut Rng, processor: usize| match rng.u32(0..3) {
            0 => 0x1000 + 8 * rng.u64(0..16),
            _ => 0x10_0000 * (processor as u64 + 1) + 8 * rng.u64(0..100),
        };
        let mut program = |processor: usize| -> Program {
            let mut one = || {
                let block = rng.usize(0..blocks.len());
                let count = plain_blocks[block].accesses.len();
                (block, (0..count).map(|_| address(&mut rng, processor)).collect())
            };
            (0..60).map(|_| one()).collect()
        };
        let programs: Vec<Program> = (0..processors).map(&mut program).collect();
        let fast = run(&machine, &blocks, &programs);

        let coherence = machine.coherence.as_ref().unwrap();
        let mut plain = PlainMachine {
            memory: CoherentMemory::new(&machine, coherence, processors),
            machine: &machine,
            bus_cycle: (1e6 / coherence.bus.as_ref().unwrap().clock_mhz).round() as u64,
            cycle: 5000,
            transactions: Vec::new(),
            exchanges: Vec::new(),
            waited: 0,
        };
        let mut all = vec![PlainProcessor::default(); processors];
        loop {
            let is_left = |number: &usize| all[*number].access.is_some() || all[*number].next < 60;
            let least = (0..processors).filter(is_left).min_by_key(|&number| (all[number].time, number));
            let Some(number) = least else { break };
            let mut processor = std::mem::take(&mut all[number]);
            plain.step(number, &mut processor, &programs[number], &plain_blocks);
            all[number] = processor;
        }
        for processor in &mut all {
            for miss in processor.misses.clone() {
                processor.wait(miss.end, ProcessorCause::Memory);
            }
        }
        let last = all.iter().map(|processor| processor.time).max().unwrap();
        all.iter_mut().for_each(|processor| processor.wait(last, ProcessorCause::Idle));
        assert_eq!(fast.elapsed(), last, "seed {seed}");
        for (fast, plain) in fast.processors().zip(&all) {
            assert_eq!((fast.time, fast.instructions), (plain.spent, plain.executed), "seed {seed}");
            seen.iter_mut().zip(fast.time).for_each(|(seen, time)| *seen += u64::from(time > 0));
        }
        let used: Vec<_> = fast.buses().iter().flat_map(|bus| bus.used().transactions).collect();
        let count: u64 = used.iter().map(|one| one.count).sum();
        let waited: u64 = used.iter().map(|one| one.waited).sum();
        assert_eq!((count, waited), (plain.transactions.len() as u64, plain.waited), "seed {seed}");
        assert_eq!(fast.memory().counts().transfers, plain.memory.counts().transfers);
    }
    // The programs call no system, and the machine has no cache of instructions.
    let others = [ProcessorCause::System, ProcessorCause::Instructions].map(|cause| cause as usize);
    assert!(seen.iter().enumerate().all(|(cause, &count)| others.contains(&cause) || count > 20), "{seen:?}");
}

/// The bus of the sequences below: a cycle of 10 ns.
const BUS: &str = "clock_mhz = 100\narbitration = 2\naddress = 3\ndata = 4\nmemory = 14\ntransfer = 8\nbanks = 2\n\
                   bank = 20\noutstanding = 2";
const NANOSECOND: u64 = 1000;

/// A load and a store, each a block of one instruction.
fn load_and_store() -> Vec<Block> {
    let words = [Op::Ldq, Op::Stq].map(|op| encode::memory(op, 1, 2, 0).unwrap());
    words.map(|word| Block::new(&isa::Alpha, 0x1_2000_0000, vec![word])).into()
}

#[test]
fn sequences_take_the_time_that_was_computed_by_hand() {
    let blocking = "cycles_per_instruction = 1\noutstanding = 1";
    let machine_of = |protocol: &str, processor: &str| machine(1024, protocol, BUS, processor);
    let mesi = machine_of("mesi", blocking);
    let blocks = load_and_store();
    let times = |machine: &Machine, programs: &[Program]| -> Vec<u64> {
        let fast = run(machine, &blocks, programs);
        let idle = ProcessorCause::Idle as usize;
        fast.processors().map(|processor| (processor.whole() - processor.time[idle]) / NANOSECOND).collect()
    };
    // An instruction of 5 ns; 2 + 3 + 14 cycles, and the first data in one more.
    assert_eq!(times(&mesi, &[vec![(0, vec![0x1000])]]), [205]);
    // The same line again is a hit; the next line is in the other bank.
    assert_eq!(times(&mesi, &[vec![(0, vec![0x1000]), (0, vec![0x1008])]]), [210]);
    // Two processors at once, in different banks. The second address follows the first one: 5 + 20 + 30 + 30 ns; data
    // could come at 225, but the lines are occupied from 195 to 235.
    let one_each = |lines: [u64; 2]| lines.map(|address| vec![(0, vec![address])]);
    assert_eq!(times(&mesi, &one_each([0x1000, 0x2020])), [205, 245]);
    // In the same bank the second one waits until the first has left it: at 55 + 200 ns.
    assert_eq!(times(&mesi, &one_each([0x1000, 0x2000])), [205, 255 + 140 + 10]);
    // A dirty line. The store reads it, without waiting: 5 ns; its data end at 195 + 40. The other processor's load
    // begins after 100 instructions of its own, at 505 + 5 ns: 20 + 30 + 80 + 10.
    let hits: Program = (0..100).map(|_| (0, vec![0x3000])).collect();
    let [store, load] = [(1, vec![0x1000]), (0, vec![0x1000])];
    let after_hits = |one: &(usize, Vec<u64>)| [hits.clone(), vec![one.clone()]].concat();
    let all = times(&mesi, &[vec![store.clone()], after_hits(&load)]);
    // The first load of the hits: its address comes after the store's, in the same bank: 55 + 200 + 140 + 10 = 405.
    assert_eq!(all, [205, 405 + 99 * 5 + 5 + 140]);
    // An upgrade of a line that both have: its 20 + 30 ns are waited for at the end.
    let both = [vec![load.clone(), store.clone()], vec![load.clone()]];
    let all = run(&mesi, &blocks, &both);
    let counts = all.buses()[0].used().transactions;
    assert_eq!(counts[Transaction::Upgrade as usize].count, 1);
    assert_eq!(counts[Transaction::Upgrade as usize].latency, 50 * NANOSECOND);
    // With a window of 40 instructions a load that misses costs what 40 more instructions do not hide.
    let window = machine_of("mesi", "cycles_per_instruction = 1\noutstanding = 4\nwindow = 40");
    let behind: Program = [vec![load.clone()], (0..45).map(|_| (1, vec![0x1008])).collect()].concat();
    let fast = run(&window, &blocks, std::slice::from_ref(&behind));
    let spent = fast.processors().next().unwrap().time;
    // 41 instructions take 205 ns, and the load ends at 205.
    assert_eq!(spent[ProcessorCause::Memory as usize], 0);
    let short = machine_of("mesi", "cycles_per_instruction = 1\noutstanding = 4\nwindow = 20");
    let spent = run(&short, &blocks, &[behind]).processors().next().unwrap().time;
    // It waits when 21 instructions are behind it: at 22 * 5 ns.
    assert_eq!(spent[ProcessorCause::Memory as usize], (205 - 110) * NANOSECOND);
}

/// A machine whose caches of instructions and data, of 256 bytes, are before one of 1 KB; its bus is that of the sequences.
fn machine_with_instructions(processor: &str) -> Machine {
    let cache = |name: &str, level: u32, holds: &str, size: u32| {
        format!(
            "[caches.{name}]\nlevel = {level}\nholds = \"{holds}\"\nsize = {size}\nways = 2\nline = 32\nwrite = \"back\"\n\
             allocate_on_write = true\nlatency = 1\n"
        )
    };
    let caches = [
        cache("icache", 1, "instructions", 256),
        cache("dcache", 1, "data", 256),
        cache("l2", 2, "both", 1024),
    ];
    Machine::from_toml(&format!(
        "title = \"small\"\n[processor]\nname = \"one\"\nclock_mhz = 200\n{}[memory]\nlatency_ns = 1000\n[coherence]\n\
         protocol = \"mesi\"\n[coherence.bus]\n{BUS}\n[coherence.processor]\n{processor}\n",
        caches.concat()
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn processors_wait_for_lines_of_instructions() {
    let machine = machine_with_instructions("cycles_per_instruction = 1\noutstanding = 4\nwindow = 40");
    // Sixteen instructions in two lines, without accesses; and one that loads, in a third line.
    let words = vec![encode::memory(Op::Lda, 1, 2, 0).unwrap(); 16];
    let load = vec![encode::memory(Op::Ldq, 1, 2, 0).unwrap()];
    let blocks =
        [Block::new(&isa::Alpha, 0x1_2000_0000, words), Block::new(&isa::Alpha, 0x1_2000_0040, load)];
    let spent = |programs: &[Program]| {
        let fast = run(&machine, &blocks, programs);
        let times = fast.processors().map(|one| one.time.map(|time| time / NANOSECOND)).collect::<Vec<_>>();
        (times, fast.buses()[0].used().transactions[Transaction::Memory as usize].count)
    };
    let waits = ProcessorCause::Instructions as usize;
    // Both lines miss, one after the other: each 2 + 3 + 14 cycles of the bus and one for the first data, in two banks. When the
    // block is executed again they are there.
    let (times, lines) = spent(&[vec![(0, vec![]), (0, vec![])]]);
    assert_eq!((times[0][waits], lines), (400, 2));
    assert_eq!(times[0][ProcessorCause::Busy as usize], 2 * 16 * 5);
    // The line of a load's instruction is waited for, its data are not.
    let (times, lines) = spent(&[vec![(1, vec![0x1000])]]);
    assert_eq!((times[0][waits], lines), (200, 2));
    // Another processor gets the lines from memory, too: instructions are clean. It waits for the address lines, the banks and
    // the data lines.
    let (times, lines) = spent(&[vec![(0, vec![])], vec![(0, vec![])]]);
    assert_eq!(lines, 4);
    assert!(times.iter().all(|one| one[waits] >= 400) && times[1][waits] > 400, "{times:?}");
}

#[test]
fn counts_are_reset() {
    let machine = machine(1024, "mesi", BUS, "cycles_per_instruction = 1\noutstanding = 1");
    let coherence = machine.coherence.as_ref().unwrap();
    let (bus, processor) = (coherence.bus.as_ref().unwrap(), coherence.processor.as_ref().unwrap());
    let mut fast = Multiprocessor::new(&machine, coherence, bus, processor, 2);
    load_and_store().iter().for_each(|block| fast.define(block));
    let execute = |fast: &mut Multiprocessor, number: usize, address: u64| {
        let thread = Thread { process: 0, number: number as u32 };
        fast.feed(number, thread, &[Event::Block(0).word(), address]);
        while fast.next_step() == NextStep::Continue {
            fast.step();
        }
    };
    fast.idle(1);
    execute(&mut fast, 0, 0x1000);
    fast.reset_counts();
    assert_eq!((fast.elapsed(), fast.units(), fast.memory().counts().loads), (0, 0, 0));
    // The line is there.
    execute(&mut fast, 0, 0x1000);
    fast.idle(0);
    fast.end();
    assert_eq!(fast.elapsed(), 5 * NANOSECOND);
    for counts in fast.processors() {
        assert_eq!(counts.whole(), fast.elapsed());
    }
    let counts = fast.processors().next().unwrap();
    assert_eq!((counts.instructions, counts.transactions, fast.buses()[0].used().data), (1, 0, 0));
}

#[test]
fn system_calls_and_units_are_counted() {
    let machine =
        machine(1024, "mesi", BUS, "cycles_per_instruction = 1\noutstanding = 1\nsystem_call = 100");
    let coherence = machine.coherence.as_ref().unwrap();
    let (bus, processor) = (coherence.bus.as_ref().unwrap(), coherence.processor.as_ref().unwrap());
    let mut fast = Multiprocessor::new(&machine, coherence, bus, processor, 1);
    let marks = [Mark::UnitBegins(0), Mark::SystemCall(4), Mark::UnitEnds(0)];
    fast.feed(0, Thread::default(), &marks.map(|mark| Event::Mark(mark).word()));
    while fast.next_step() == NextStep::Continue {
        fast.step();
    }
    fast.end();
    let counts = fast.processors().next().unwrap();
    assert_eq!((counts.units, counts.time[ProcessorCause::System as usize]), (1, 500 * NANOSECOND));
}

#[test]
fn impossible_buses_are_rejected() {
    let whole = BUS.to_string() + "\n[coherence.processor]\ncycles_per_instruction = 1\noutstanding = 1\n";
    let text = |bus: &str| {
        format!("base = \"pentium-pro\"\n[coherence]\nprotocol = \"mesi\"\n[coherence.bus]\n{bus}")
    };
    Machine::from_toml(&text(&whole)).unwrap();
    for (from, to, what) in [
        ("banks = 2", "banks = 0", "coherence.bus.banks: it must be 1 or more"),
        ("clock_mhz = 100", "clock_mhz = 0", "coherence.bus.clock_mhz: 0 is no clock"),
        ("clock_mhz = 100", "clock_mhz = nan", "coherence.bus.clock_mhz: NaN is no clock"),
        ("cycles_per_instruction = 1", "cycles_per_instruction = 0", "0 is no number from 0.01 to 1000"),
        ("outstanding = 1\n", "outstanding = 0\n", "coherence.processor.outstanding: it must be 1 to 1,024"),
        (
            "[coherence.processor]\ncycles_per_instruction = 1\noutstanding = 1\n",
            "",
            "a machine with a timed bus has both",
        ),
    ] {
        let mut changed = text(&whole.replace(from, to));
        if to.is_empty() {
            // The base has a processor.
            changed = changed.replace("[coherence]\n", "[coherence]\nprocessor = \"none\"\n");
        }
        let error = Machine::from_toml(&changed).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
