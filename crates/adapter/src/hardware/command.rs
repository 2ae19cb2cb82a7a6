//! The interface of the adapter: commands in the DMA engine's ring and registers, by the host; summaries and events, by the adapter.

/// A command of the DMA engine, in its ring in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaCommand {
    /// Copies bytes of host memory to the data memory.
    CopyToAdapter {
        /// The address in host memory.
        host: u64,
        /// The address in the data memory.
        adapter: u32,
        /// The bytes.
        bytes: u32,
    },
    /// Sends data of the data memory, which the commands before brought there.
    Transmit {
        /// The circuit.
        circuit: u32,
        /// The address in the data memory.
        adapter: u32,
        /// The bytes.
        bytes: u32,
        /// The transmitter divides them into packets of this size; 0 for one packet.
        packet_bytes: u32,
    },
    /// Sends a packet from host memory; the command of an adapter with hidden buffers.
    Send {
        /// The circuit.
        circuit: u32,
        /// The address in host memory.
        host: u64,
        /// The bytes.
        bytes: u32,
    },
    /// Copies bytes of a packet that was received to host memory.
    CopyToHost {
        /// The packet, as its summary names it.
        packet: u32,
        /// The first byte.
        offset: u32,
        /// The address in host memory.
        host: u64,
        /// The bytes.
        bytes: u32,
    },
    /// Frees the buffers of a packet.
    Recycle {
        /// The packet.
        packet: u32,
    },
    /// Writes the number of executed commands to host memory.
    Report,
}

/// A register of the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterRegister {
    /// The cause of an interrupt.
    Cause,
    /// The index behind the last command in the ring.
    CommandProducer,
    /// The number of commands that were executed, modulo the ring's size.
    CommandConsumer,
    /// The index behind the last summary that the host has processed.
    SummaryConsumer,
    /// The interrupt delay of the first class, in ns from now.
    FirstHoldoff,
    /// The same of the second class.
    SecondHoldoff,
    /// A write resets the adapter and its link.
    Reset,
    /// Any other one, without an effect in this model.
    Other,
}

/// Whether a packet was received well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketStatus {
    /// It was.
    Good,
    /// A cell is missing or damaged, as AAL5's length and CRC say.
    Damaged,
}

/// The record of a packet that the adapter writes to host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSummary {
    /// The packet's number, by which commands name it; none if the adapter has hidden buffers and keeps nothing.
    pub packet: Option<u32>,
    /// The circuit.
    pub circuit: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Whether it was received well.
    pub status: PacketStatus,
    /// The one's complement sum of its payloads; 0 in runs without contents.
    pub sum: u16,
}

/// A change of state that the adapter reports to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The time has come that the program asked for.
    Timer,
    /// An interrupt of a class.
    Interrupt(usize),
    /// A CSR was read.
    Value(AdapterRegister, u32),
    /// A summary is in host memory. Programs that take interrupts do not look before.
    Summary(PacketSummary),
    /// A command was executed: the data are where they should be. The same applies.
    Executed(DmaCommand),
    /// All cells of a transmission have left. The same applies.
    Transmitted,
    /// Data moved by the processor, or by another device, have arrived.
    Moved(u32),
}
