//! Without GDB: what else may connect, and what it may say.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use super::{Debugged, eventually};
use crate::support::{guest, outcome, pathlength, run};

const PROGRAM: &str = ":ev5/debugged sum";
const OUTPUT: &str = "45 constant\n";

/// A client of the protocol.
struct Client {
    stream: TcpStream,
}

impl Client {
    fn new(debugged: &Debugged) -> Client {
        let stream = TcpStream::connect(&debugged.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream }
    }

    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes()).unwrap();
    }

    /// The next packet. None if the connection has been closed.
    fn receive(&mut self) -> Option<String> {
        let mut packet = Vec::new();
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                other => other.unwrap(),
            };
            packet.push(byte[0]);
            if packet.len() > 3 && packet[packet.len() - 3] == b'#' {
                self.stream.write_all(b"+").unwrap();
                let begin = packet.iter().position(|&byte| byte == b'$').unwrap();
                return Some(expanded(&packet[begin + 1..packet.len() - 3]));
            }
        }
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive().unwrap_or_else(|| panic!("no answer to {packet}"))
    }
}

/// What a packet says, with runs of the same character written out.
fn expanded(packet: &[u8]) -> String {
    let mut text = String::new();
    let mut bytes = packet.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'*' => {
                let (last, count) = (text.pop().unwrap(), *bytes.next().unwrap() - 28);
                text.extend(std::iter::repeat_n(last, count.into()));
            }
            _ => text.push(byte.into()),
        }
    }
    text
}

/// Asserts that the program continued without a debugger. Returns what the server reported.
#[track_caller]
fn assert_goes_on(debugged: Debugged) -> String {
    let outcome = debugged.outcome();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (3, OUTPUT), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("pathlength: note: "), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with("; the program continues without GDB\n"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    outcome.stderr
}

#[test]
fn where_nobody_can_connect() {
    let first = Debugged::new(PROGRAM);
    let message = run(&format!("run --gdb {} {PROGRAM}", first.address)).failure();
    assert!(
        message.contains(&format!("cannot wait for GDB at {}: Address already in use", first.address)),
        "{message}"
    );
    for (place, why) in [
        ("gdb", "name a PORT, a HOST:PORT or a PATH"),
        ("65536", "name a PORT"),
        ("", "name a PORT"),
        ("localhost:", "name a PORT"),
        ("no.such.host.invalid:1", ""),
        ("/no/such/folder/socket", "No such file"),
    ] {
        let message = run_at(place, PROGRAM);
        assert!(
            message.contains(&format!("cannot wait for GDB at {place}: ")) && message.contains(why),
            "{message}"
        );
    }
    // A file that is no program is reported before GDB connects.
    let message = run("run --gdb 0 /no/such/program").failure_with(127);
    assert!(message.contains("there is no such file"), "{message}");
    let mut client = Client::new(&first);
    client.ask("?");
    drop(client);
    assert!(assert_goes_on(first).contains("GDB has closed the connection"));
}

fn run_at(place: &str, program: &str) -> String {
    let mut command = pathlength(["run", "--gdb", place]);
    match program.strip_prefix(':') {
        Some(name) => command.arg(guest(name.split(' ').next().unwrap())),
        None => command.arg(program),
    };
    outcome(command).failure()
}

#[test]
fn a_socket_in_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let place = path.to_str().unwrap();
    for _ in 0..2 {
        let debugged = Debugged::at(place, PROGRAM, Stdio::null());
        assert_eq!(debugged.address, place);
        let message = run(&format!("run --gdb {place} {PROGRAM}")).failure();
        assert!(message.contains("Address already in use"), "{message}");
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"$D#44").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"+$OK#9a");
        assert_eq!(debugged.ending(), (3, OUTPUT.into()));
        assert!(!path.exists());
    }
}

#[test]
fn a_signal_ends_the_wait() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let debugged = Debugged::new(PROGRAM);
        // SAFETY: the child has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(debugged.child.id() as i32, signal) }, 0);
        assert_eq!(debugged.ending(), (128 + signal, String::new()));
    }
}

#[test]
fn who_talks_nonsense_is_left() {
    let oversize = [b"$", &[b'x'; 1 << 17][..]].concat();
    for nonsense in
        [&b"$qSupported#00"[..], b"-", b"$vCont;x#ff", b"$G00#a7", b"$vCont;s#b8", b"$#zz", &oversize]
    {
        let debugged = Debugged::new(PROGRAM);
        let mut client = Client::new(&debugged);
        // It may be refused before it has been sent to its end.
        let _ = client.stream.write_all(nonsense);
        let _ = client.stream.shutdown(Shutdown::Write);
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest);
        let said = assert_goes_on(debugged);
        assert!(said.contains("invalid data from GDB"), "{said}");
    }
}

#[test]
fn a_connection_may_end_anywhere() {
    for last in ["", "$", "$m120000000,4#", "$vCont;c#a8"] {
        let debugged = Debugged::new(":ev5/debugged sum");
        let mut client = Client::new(&debugged);
        assert!(client.ask("?").starts_with("T05thread:"));
        client.stream.write_all(last.as_bytes()).unwrap();
        drop(client);
        let outcome = debugged.outcome();
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (3, OUTPUT), "{last}: {}", outcome.stderr);
    }
    // While the program runs and has breakpoints.
    let debugged = Debugged::new(":ev5/debugged endless");
    let mut client = Client::new(&debugged);
    assert_eq!(client.ask(&format!("Z0,{:x},4", address("spin"))), "OK");
    client.send("vCont;c");
    assert!(client.receive().unwrap().contains("swbreak"));
    assert_eq!(client.ask(&format!("M{:x},4:01000000", address("go_on"))), "OK");
    drop(client);
    let outcome = debugged.outcome();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (3, ""), "{}", outcome.stderr);
}

/// The address of a symbol of the program, which is not position-independent.
fn address(symbol: &str) -> u64 {
    let image = image::Image::open(crate::support::guest("ev5/debugged")).unwrap();
    let address = image.symbol(symbol).unwrap().address;
    // The program's own calls leave out the two instructions that set the global pointer.
    if image.functions().iter().any(|function| function.address == address) { address + 8 } else { address }
}

/// A client, and a program that has come to `sum`.
fn at_sum() -> (Debugged, Client) {
    let debugged = Debugged::new(PROGRAM);
    let mut client = Client::new(&debugged);
    let sum = address("sum");
    assert_eq!(client.ask(&format!("Z0,{sum:x},4")), "OK");
    client.send("vCont;c");
    assert!(client.receive().unwrap().contains("swbreak"));
    assert_eq!(client.ask(&format!("z0,{sum:x},4")), "OK");
    (debugged, client)
}

#[test]
fn answers() {
    let (debugged, mut client) = at_sum();
    let constant = address("constant");
    for (packet, answer) in [
        // Nothing that we know.
        ("vMustReplyEmpty", ""),
        ("!", ""),
        ("QNonStop:1", ""),
        ("Z5,120000000,4", ""),
        // Memory: mapped and unmapped addresses.
        (&format!("m{constant:x},9"), "636f6e7374616e7400"),
        ("m0,8", "E0e"),
        ("m3ffffffffff,8", "E0e"),
        ("mffffffffffffffff,8", "E0e"),
        ("m120000000,0", ""),
        (&format!("M{constant:x},2:436f"), "OK"),
        ("M0,1:00", "E0e"),
        ("Mffffffffffffffff,2:0000", "E0e"),
        ("Z0,0,4", "E0e"),
        ("Z0,120000001,4", "E0e"),
        ("z0,120000000,4", "OK"),
        ("Z1,120000000,4", "OK"),
        ("z1,120000000,4", "OK"),
        ("Z2,fffffffffffffff8,10", "OK"),
        ("z2,fffffffffffffff8,10", "OK"),
        // Registers that are not all there, and of a thread that is not there.
        ("Hg7fffffff", "OK"),
        ("g", "E"),
        ("T7fffffff", "E01"),
        ("Hg0", "OK"),
        // Files can only be read, and only those that the program has mapped.
        ("vFile:open:2f6574632f706173737764,0,0", "F-1,"),
        ("vFile:open:2f70726f632f73656c662f656e7669726f6e,0,0", "F-1,"),
        ("vFile:readlink:2f70726f632f73656c662f657865", "F-1,"),
        ("vFile:open:2f746d702f6e6f7065,601,1b6", "F-1,"),
        ("vFile:open:2f6465762f7a65726f,0,0", "F-1,"),
        ("vFile:pread:7,10,0", "F-1,09"),
        ("vFile:close:7", "F-1,09"),
        ("qXfer:auxv:read::ffffffffffffffff,10", "l"),
    ] {
        let said = client.ask(packet);
        let is_prefix = ["E", "F-1,"].contains(&answer);
        assert!(said == answer || is_prefix && said.starts_with(answer), "{packet}: {said}");
    }
    let registers = client.ask("g");
    assert_eq!(registers.len(), 2 * 8 * 67);
    let pc = u64::from_str_radix(&registers[2 * 8 * 64..][..16], 16).unwrap().swap_bytes();
    assert_eq!(pc, address("sum"));
    assert_eq!(client.ask(&format!("G{registers}")), "OK");
    client.send("c");
    assert_eq!(client.receive().unwrap(), "W03");
    assert_eq!(client.receive(), None);
    assert_eq!(debugged.ending(), (3, "45 Constant\n".into()));
}

#[test]
fn killed() {
    let (debugged, mut client) = at_sum();
    client.send("k");
    assert_eq!(client.receive(), None);
    assert_eq!(debugged.ending(), (128 + libc::SIGKILL, String::new()));
}

/// Instruction by instruction from `sum` to its end, and each is what the one before leads to.
#[test]
fn every_step_is_one_instruction() {
    let (debugged, mut client) = at_sum();
    let image = image::Image::open(crate::support::guest("ev5/debugged")).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap().swap_bytes();
    let register = |client: &mut Client, index: usize| number(&client.ask("g")[16 * index..][..16]);
    let (mut pc, back) = (register(&mut client, 64), register(&mut client, 26));
    let mut steps = 0;
    while pc != back {
        let word = client.ask(&format!("m{pc:x},4"));
        let instruction = isa::decode((number(&format!("{word:0<16}"))) as u32).unwrap();
        client.send("s");
        assert!(client.receive().unwrap().starts_with("T05thread:"));
        let next = register(&mut client, 64);
        let jumps = matches!(
            instruction.op.format(),
            isa::InstructionFormat::Branch | isa::InstructionFormat::MemoryJump
        );
        assert!(next == pc + 4 || jumps, "{pc:x} {word} {next:x}");
        assert!(image.function_at(next).is_some());
        (pc, steps) = (next, steps + 1);
    }
    assert!(steps > 10 * 20, "{steps}");
    assert_eq!(client.ask("D"), "OK");
    assert_eq!(debugged.ending(), (3, OUTPUT.into()));
}

/// A step with a signal ends before the first instruction of its handler; one without, after the call.
#[test]
fn a_step_may_lead_to_a_signals_handler() {
    for (packet, place) in [("S1e", "handler"), ("s", "")] {
        let debugged = Debugged::new(":ev5/debugged signal");
        let mut client = Client::new(&debugged);
        client.send("vCont;c");
        assert!(client.receive().unwrap().starts_with("T1ethread:"));
        let pc = |client: &mut Client| {
            u64::from_str_radix(&client.ask("g")[2 * 8 * 64..][..16], 16).unwrap().swap_bytes()
        };
        let before = pc(&mut client);
        client.send(&format!("vCont;{packet}:{:x};c", debugged.child.id()));
        assert!(client.receive().unwrap().starts_with("T05thread:"));
        let expected = if place.is_empty() { before + 4 } else { address(place) - 8 };
        assert_eq!(pc(&mut client), expected);
        assert_eq!(client.ask("D"), "OK");
        let printed = if place.is_empty() { "got 0\n" } else { "got 30\n" };
        assert_eq!(debugged.ending(), (3, printed.into()));
    }
}

/// Packets made of parts of packets: the program survives, whatever becomes of the session.
#[test]
fn anything_may_be_said() {
    let pieces = [
        "vCont;",
        "c",
        "s",
        ":",
        "p1.",
        "-1",
        ";",
        "Z0,",
        "z0,",
        "Z2,",
        "120000000",
        "4000800000",
        ",4",
        ",8",
        "m",
        "?",
        "g",
        "Hg",
        "Hc",
        "qSupported",
        "qXfer:",
        "features:read:",
        "target.xml:",
        "auxv:read::",
        "exec-file:read::",
        "0,",
        "fff",
        "ffffffffffffffff",
        "vFile:",
        "open:2f",
        "pread:",
        "close:",
        "fstat:",
        "qfThreadInfo",
        "T",
        "r120000000,",
        "S05",
        "C0f",
        "\u{3}",
        "}",
        "*",
        "#",
        "$",
        "é",
    ];
    let mut random = fastrand::Rng::with_seed(1997);
    for _ in 0..30 {
        let debugged = Debugged::new(PROGRAM);
        let mut client = Client::new(&debugged);
        // The user of a connection that has been closed before it is accepted would be unknown.
        client.ask("?");
        let mut sent = String::new();
        for _ in 0..random.usize(1..40) {
            let count = random.usize(1..5);
            let packet: String =
                std::iter::repeat_with(|| *random.choice(&pieces).unwrap()).take(count).collect();
            // SIGTERM would end the program.
            if packet.contains("C0f") && packet.contains("vCont") {
                continue;
            }
            sent += &format!("{packet} ");
            let sum = packet.bytes().fold(0u8, u8::wrapping_add);
            let whole = [b"$", packet.as_bytes(), format!("#{sum:02x}").as_bytes()].concat();
            if client.stream.write_all(&whole).is_err() {
                break;
            }
        }
        drop(client);
        let outcome = debugged.outcome();
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (3, OUTPUT), "{sent}: {}", outcome.stderr);
    }
}

#[test]
fn an_interrupt_finds_a_program_that_sleeps() {
    let mut debugged = Debugged::at("0", ":ev5/debugged read", Stdio::piped());
    let input = debugged.child.stdin.take().unwrap();
    let mut client = Client::new(&debugged);
    client.send("vCont;c");
    let call = format!("/proc/{}/syscall", debugged.child.id());
    eventually("reads", || std::fs::read_to_string(&call).unwrap().starts_with("0 0x0 "));
    client.stream.write_all(&[3]).unwrap();
    assert!(client.receive().unwrap().starts_with("T02thread:"));
    assert_eq!(client.ask("D"), "OK");
    drop(input);
    assert_eq!(debugged.ending(), (3, "0 \0\n".into()));
}
