//! The server of GDB's remote protocol, with a stopped program. Whatever is sent, the server must answer or
//! disconnect, and the program must end. An input has one packet in each line, to which checksums are added; a line
//! that begins with `!` is sent unchanged.
#![no_main]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use engine::{Configuration, Process, ProgramEnd, SystemSettings};
use gdb::{Listener, Server};
use libfuzzer_sys::{Corpus, fuzz_target};
use pathlength_fuzz::guest;
use tempfile::TempDir;

/// A directory for the guest program and for sockets.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    guest::write(&folder.path().join("guest")).expect("writable");
    folder
});

fuzz_target!(|input: &[u8]| -> Corpus {
    let lines: Vec<&[u8]> = input.split(|&byte| byte == b'\n').collect();
    if lines.iter().any(|line| is_harmful(line)) {
        return Corpus::Reject;
    }
    serve(&lines.into_iter().flat_map(frame).collect::<Vec<u8>>());
    Corpus::Keep
});

/// Packets that would end or stop this process, or make the guest call the kernel, which is ours.
fn is_harmful(line: &[u8]) -> bool {
    let has = |what: &[u8]| line.windows(what.len()).any(|window| window == what);
    if line.starts_with(b"!") {
        // An unchanged line may contain a packet anywhere.
        return [&b"$k"[..], b"$M", b"$X", b"vKill", b"vCont"].iter().any(|what| has(what));
    }
    let writes = line.first().is_some_and(|first| b"MX".contains(first));
    // Signals from 0x10 on include those that stop a process.
    line.starts_with(b"k") || has(b"vKill") || has(b"C1") || has(b"C2") || writes && !is_beside_code(line)
}

/// Whether the packet, `M120000000,4:...`, writes outside of the code.
fn is_beside_code(packet: &[u8]) -> bool {
    let numbers = || {
        let text = std::str::from_utf8(packet.get(1..)?.split(|&byte| byte == b':').next()?).ok()?;
        let (address, bytes) = text.split_once(',')?;
        let [address, bytes] = [address, bytes].map(|number| u64::from_str_radix(number, 16).ok());
        Some((address?, bytes?))
    };
    let text = guest::text();
    numbers().is_none_or(|(address, bytes)| {
        address >= text.end || address.saturating_add(bytes.max(packet.len() as u64)) < text.start
    })
}

/// The bytes to send for a line.
fn frame(line: &[u8]) -> Vec<u8> {
    match line.strip_prefix(b"!") {
        Some(raw) => raw.into(),
        None => {
            let sum = line.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
            [b"$", line, b"#", format!("{sum:02x}").as_bytes()].concat()
        }
    }
}

fn serve(sent: &[u8]) {
    let socket = FOLDER.path().join("socket");
    let mut process =
        Process::new(&configuration(FOLDER.path().join("guest"))).expect("the program is loaded");
    let listener = Listener::bind(socket.to_str().expect("text")).expect("a socket");
    let client = UnixStream::connect(&socket).expect("it listens");
    let connection = listener.accept().expect("somebody connects").expect("no signal");
    let server = Server::start(connection, &process, "/".as_ref()).expect("threads");
    let (ended, has_ended) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| talk(client, sent));
        scope.spawn(|| watch(has_ended));
        let end = process.run(&mut server.observer()).expect("it runs");
        assert!(matches!(end, ProgramEnd::Killed(_)), "{end:?}");
        server.end(&end);
        drop(ended);
    });
}

/// Ends the process if the program has not ended in time. libFuzzer's own timeout uses a signal, which the engine
/// would deliver to the program.
fn watch(has_ended: Receiver<()>) {
    const PATIENCE: Duration = Duration::from_secs(60);
    if has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        eprintln!("the program runs after {PATIENCE:?}");
        std::process::abort();
    }
}

/// Sends all packets as far as the server reads them, and reads its answers.
fn talk(mut client: UnixStream, sent: &[u8]) {
    let said = client.write_all(sent).and_then(|()| client.shutdown(Shutdown::Write));
    let answered = client.read_to_end(&mut Vec::new());
    std::hint::black_box((said.is_ok(), answered.is_ok()));
}

fn configuration(program: PathBuf) -> Configuration {
    Configuration {
        program,
        name: None,
        arguments: vec![],
        environment: vec![],
        model: isa::Processors::default(),
        settings: SystemSettings::default(),
    }
}
