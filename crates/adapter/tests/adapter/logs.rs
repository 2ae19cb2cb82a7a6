//! Logs of drivers: what is written is read again, what is damaged is refused, and hostile commands harm nobody.

use pathlength_adapter::log::{AdapterLogRecord, Awaited, LogReader};
use pathlength_adapter::{AdapterDescription, AdapterRegister, DmaCommand, LogReplay};

fn random_command(random: &mut fastrand::Rng) -> DmaCommand {
    let number = |random: &mut fastrand::Rng| match random.u8(0..4) {
        0 => random.u32(..),
        1 => random.u32(0..300),
        2 => random.u32(0..20_000_000),
        _ => random.u32(0..4),
    };
    let (host, adapter) = (u64::from(number(random)) << random.u8(0..33), number(random));
    let bytes = if random.bool() { random.u32(1..3000) } else { number(random) };
    let (packet, circuit) = (number(random), number(random));
    match random.u8(0..6) {
        0 => DmaCommand::CopyToAdapter { host, adapter, bytes },
        1 => DmaCommand::Transmit { circuit, adapter, bytes, packet_bytes: number(random) },
        2 => DmaCommand::Send { circuit, host, bytes },
        3 => DmaCommand::CopyToHost { packet, offset: number(random), host, bytes },
        4 => DmaCommand::Recycle { packet },
        _ => DmaCommand::Report,
    }
}

fn random_record(random: &mut fastrand::Rng) -> AdapterLogRecord {
    let registers = [
        AdapterRegister::Cause,
        AdapterRegister::CommandProducer,
        AdapterRegister::CommandConsumer,
        AdapterRegister::SummaryConsumer,
        AdapterRegister::FirstHoldoff,
        AdapterRegister::SecondHoldoff,
        AdapterRegister::Other,
    ];
    let register = *random.choice(&registers).unwrap();
    match random.u8(0..12) {
        0 => AdapterLogRecord::Delay(random.u32(0..10_000)),
        1 => AdapterLogRecord::Read(register),
        2 => AdapterLogRecord::Write(register, random.u32(0..2000)),
        3 => AdapterLogRecord::Write(register, random.u32(..)),
        4 => AdapterLogRecord::Store(random.u32(..), random.u32(0..1000)),
        5 => AdapterLogRecord::Load(random.u32(0..30), random.u32(0..1000)),
        6 => AdapterLogRecord::Arrive(random.u32(0..300), random.u32(0..3000)),
        7 if random.u8(0..8) == 0 => AdapterLogRecord::Write(AdapterRegister::Reset, 0),
        _ => AdapterLogRecord::Command(random.u32(0..1100), random_command(random)),
    }
}

fn text(records: &[AdapterLogRecord]) -> String {
    let lines = records.iter().map(AdapterLogRecord::to_string);
    std::iter::once("pathlength-adapter-log 1".into()).chain(lines).map(|line| line + "\n").collect()
}

#[test]
fn records_are_read_as_they_are_written() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut records: Vec<AdapterLogRecord> = (0..2000).map(|_| random_record(&mut random)).collect();
    for awaited in [Awaited::Summaries, Awaited::Executed, Awaited::Transmitted, Awaited::Interrupts] {
        records.push(AdapterLogRecord::Await(awaited, random.u64(..)));
    }
    let text = text(&records);
    let read: Vec<AdapterLogRecord> = LogReader::new(text.as_bytes()).unwrap().map(Result::unwrap).collect();
    assert_eq!(read, records);
}

/// Commands, indices and registers without sense are counted as errors. Nothing panics, and nothing is lost.
#[test]
fn hostile_logs_do_not_panic() {
    let mut random = fastrand::Rng::with_seed(6);
    let adapters: Vec<AdapterDescription> =
        AdapterDescription::all().map(|(_, description)| description).collect();
    let (mut errors, mut commands) = (0, 0);
    for _ in 0..testing::sample(150, 5000) {
        let records: Vec<_> = (0..300).map(|_| Ok(random_record(&mut random))).collect();
        let result = LogReplay::run(random.choice(&adapters).unwrap(), records.into_iter());
        if let Ok(result) = result {
            errors += result.counts.command_errors;
            commands += result.counts.commands;
        }
    }
    assert!(errors > 1000 && commands > 300, "{errors} errors, {commands} commands");
}

#[test]
fn damaged_logs_are_refused() {
    let error = |text: &[u8]| match LogReader::new(text) {
        Err(error) => error.to_string(),
        Ok(mut reader) => reader.find_map(Result::err).map_or("none".into(), |error| error.to_string()),
    };
    let line = |text: &str| error(format!("pathlength-adapter-log 1\n{text}\n").as_bytes());
    assert_eq!(
        error(b""),
        "line 1: this is no adapter's log; its first line must be \"pathlength-adapter-log 1\""
    );
    assert_eq!(error(b"pathlength-adapter-log 2\n"), error(b""));
    assert_eq!(error(b"pathlength-adapter-log 1"), "line 1: its end is missing: the log was cut");
    assert_eq!(error(b"pathlength-adapter-log 1\ndelay 1"), "line 2: its end is missing: the log was cut");
    assert_eq!(error(b"pathlength-adapter-log 1\n\xff\n"), "line 2: it is not text");
    assert_eq!(line(&"x".repeat(300)), "line 2: it is longer than 200 bytes");
    assert_eq!(line("# a comment\n\ndelay"), "line 4: the time is missing");
    assert_eq!(line("delay 4294967296"), "line 2: the time is \"4294967296\", which is no number that fits");
    assert_eq!(line("delay +1"), "line 2: the time is \"+1\", which is no number that fits");
    assert_eq!(line("delay 1 2"), "line 2: \"2\" is too much");
    assert!(line("read x").starts_with("line 2: \"x\" is no register: give cause, command-producer"));
    assert!(line("go").starts_with("line 2: \"go\" is no record: give delay, read"));
    assert!(line("command 1 jump").starts_with("line 2: \"jump\" is no command: give copy-to-adapter"));
    assert_eq!(line("command 1 report"), "none");
}

/// Random damage of a log's bytes.
#[test]
fn logs_with_random_damage_do_not_panic() {
    let mut random = fastrand::Rng::with_seed(7);
    let records: Vec<AdapterLogRecord> = (0..50).map(|_| random_record(&mut random)).collect();
    let whole = text(&records).into_bytes();
    let mut refused = 0;
    for _ in 0..testing::sample(2000, 200_000) {
        let mut damaged = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..damaged.len().max(1));
            damaged.resize(damaged.len().max(1), 0);
            match random.u8(0..3) {
                0 => damaged[at] = random.u8(..),
                1 => drop(damaged.remove(at)),
                _ => damaged.truncate(at.max(1)),
            }
        }
        let read = LogReader::new(damaged.as_slice()).map(|reader| reader.collect::<Result<Vec<_>, _>>());
        refused += u32::from(!matches!(read, Ok(Ok(_))));
    }
    assert!(refused > 500, "{refused}");
}

/// A log that waits for what does not come says so.
#[test]
fn a_log_that_waits_for_ever_is_an_error() {
    let dart = AdapterDescription::find("dart").unwrap();
    let text = "pathlength-adapter-log 1\narrive 0 100\nawait summaries 2\n";
    let error = LogReplay::run(&dart, LogReader::new(text.as_bytes()).unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        "record 2 of the log waits for what does not come any more: 2 summaries, and there were 1"
    );
}
