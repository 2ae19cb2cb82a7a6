//! The GDB server, in a thread of its own.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{BufWriter, Read, Result, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::debug::{DebugEvent, DebugObserver, DebugSession};
use engine::{Process, ProgramEnd};
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};

use crate::arch::signal_of_host;
use crate::listener::Connection;
use crate::target::GdbTarget;

/// The greatest size of a packet in bytes: GDB reads memory and files in parts of this size.
const PACKET: usize = 1 << 16;

/// The time limit for writes to GDB.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// An input of the session.
enum SessionInput {
    /// Bytes from GDB.
    Bytes(Vec<u8>),
    /// An event of the program.
    Event(DebugEvent),
    /// GDB has closed the connection.
    Closed,
}

/// Serves GDB while a program runs.
pub struct Server {
    session: Arc<DebugSession>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Serves GDB on a connection. The program was loaded and has not begun; its libraries are searched
    /// under `sysroot` first.
    pub fn start(connection: Connection, process: &Process, sysroot: &Path) -> Result<Server> {
        connection.stream().set_write_timeout(Some(WRITE_TIMEOUT))?;
        let connection = Arc::new(connection);
        let (sender, messages) = channel();
        let events = sender.clone();
        let session = DebugSession::new(process, move |event| drop(events.send(SessionInput::Event(event))));
        let (recycle, empty) = sync_channel(1);
        let (reader, closing) = (connection.clone(), connection.clone());
        let read = move || {
            // There is one buffer: a client that sends faster than the server parses has to wait.
            while let Ok(mut bytes) = empty.recv() {
                let count = read_some(reader.stream(), &mut bytes);
                bytes.truncate(count);
                let message = if count == 0 { SessionInput::Closed } else { SessionInput::Bytes(bytes) };
                if sender.send(message).is_err() || count == 0 {
                    break;
                }
            }
        };
        let target = GdbTarget::new(&session, sysroot);
        let mut gdb_session =
            GdbSession { messages, bytes: Vec::new(), next: 0, recycle, events: VecDeque::new() };
        let serve = move || {
            gdb_session.serve(connection, target);
            // Ends the reader too.
            let _ = closing.stream().shutdown(Shutdown::Both);
        };
        host::spawn("gdb reader", read)?;
        let thread = host::spawn("gdb", serve)?;
        Ok(Server { session, thread })
    }

    /// The program is to run with this observer.
    pub fn observer(&self) -> DebugObserver {
        DebugObserver::new(&self.session)
    }

    /// Reports the program's end to GDB, if it is still connected, and waits until it has received the report.
    pub fn end(self, end: &ProgramEnd) {
        self.session.end(end.clone());
        // A panic in the thread has been reported already.
        let _ = self.thread.join();
    }
}

/// Reads the available bytes. 0 at the end of the connection.
fn read_some(mut reader: &UnixStream, bytes: &mut Vec<u8>) -> usize {
    bytes.resize(PACKET, 0);
    reader.read(bytes).unwrap_or(0)
}

/// The protocol session on a connection.
struct GdbSession {
    messages: Receiver<SessionInput>,
    /// The last bytes from GDB, of which `next` have been parsed.
    bytes: Vec<u8>,
    next: usize,
    /// Returns the buffer to the reader.
    recycle: SyncSender<Vec<u8>>,
    /// Events that have not been reported to GDB.
    events: VecDeque<DebugEvent>,
}

/// The next input.
enum NextInput {
    Byte(u8),
    Event(DebugEvent),
    Closed,
}

impl GdbSession {
    /// Serves the connection, and then detaches or ends the program.
    fn serve(&mut self, connection: Arc<Connection>, mut target: GdbTarget) {
        match self.run_state_machine(connection, &mut target) {
            Ok(DisconnectReason::TargetExited(_) | DisconnectReason::TargetTerminated(_)) => {}
            Ok(DisconnectReason::Kill) => engine::die(libc::SIGKILL),
            Ok(DisconnectReason::Disconnect) => target.session().detach(),
            Err(reason) => {
                text::message!("note: {reason}; the program continues without GDB");
                target.session().detach();
            }
        }
    }

    fn run_state_machine(
        &mut self,
        connection: Arc<Connection>,
        target: &mut GdbTarget,
    ) -> std::result::Result<DisconnectReason, String> {
        const CLOSED: &str = "GDB has closed the connection";
        // A buffer of gdbstub's own would grow with the packet.
        let mut packet = vec![0; PACKET];
        let _ = self.recycle.send(Vec::new());
        target.session().settle();
        let stub = GdbStub::builder(ReplyWriter(BufWriter::new(Sender(connection))))
            .with_packet_buffer(&mut packet)
            .build();
        let mut machine = stub.map_err(invalid)?.run_state_machine(target).map_err(invalid)?;
        loop {
            let moved = match machine {
                GdbStubStateMachine::Idle(mut idle) => match self.next(idle.borrow_conn(), false) {
                    NextInput::Byte(byte) => idle.incoming_data(target, byte),
                    NextInput::Event(_) | NextInput::Closed => return Err(CLOSED.into()),
                },
                GdbStubStateMachine::Running(mut running) => match self.next(running.borrow_conn(), true) {
                    NextInput::Byte(byte) => running.incoming_data(target, byte),
                    NextInput::Event(DebugEvent::Stopped(stopped)) => {
                        target.session().settle();
                        running.report_stop(target, target.reason(&stopped))
                    }
                    NextInput::Event(DebugEvent::Ended(end)) => running.report_stop(target, ending(&end)),
                    NextInput::Closed => return Err(CLOSED.into()),
                },
                GdbStubStateMachine::CtrlCInterrupt(interrupt) => {
                    let reason = target.interrupt();
                    interrupt.interrupt_handled(target, reason)
                }
                GdbStubStateMachine::Disconnected(end) => return Ok(end.get_reason()),
            };
            machine = moved.map_err(invalid)?;
        }
    }

    /// Waits for the next input; for events only while GDB has let the program run.
    fn next(&mut self, writer: &mut ReplyWriter, is_running: bool) -> NextInput {
        loop {
            if is_running && let Some(event) = self.events.pop_front() {
                return NextInput::Event(event);
            }
            if let Some(&byte) = self.bytes.get(self.next) {
                self.next += 1;
                return NextInput::Byte(byte);
            }
            if self.next > 0 {
                let _ = self.recycle.send(std::mem::take(&mut self.bytes));
                self.next = 0;
            }
            // GDB waits for the buffered reply.
            if writer.0.flush().is_err() {
                return NextInput::Closed;
            }
            match self.messages.recv() {
                Ok(SessionInput::Bytes(bytes)) => self.bytes = bytes,
                Ok(SessionInput::Event(event)) => self.events.push_back(event),
                Ok(SessionInput::Closed) | Err(_) => return NextInput::Closed,
            }
        }
    }
}

/// Buffers replies, which gdbstub writes byte by byte.
struct ReplyWriter(BufWriter<Sender>);

/// The writing side of the connection.
struct Sender(Arc<Connection>);

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.stream().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.stream().flush()
    }
}

impl gdbstub::conn::Connection for ReplyWriter {
    type Error = std::io::Error;

    fn write(&mut self, byte: u8) -> Result<()> {
        self.0.write_all(&[byte])
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

/// The error for invalid packets, without gdbstub's message to its developers.
fn invalid(error: impl Display) -> String {
    let error = error.to_string();
    let reason = error.split(". ").next().unwrap_or_default();
    format!("invalid data from GDB ({reason})")
}

/// How the program ended, for GDB.
fn ending(end: &ProgramEnd) -> MultiThreadStopReason<u64> {
    match end {
        ProgramEnd::Exited(status) => MultiThreadStopReason::Exited(*status as u8),
        ProgramEnd::Killed(crash) => MultiThreadStopReason::Terminated(signal_of_host(crash.host_signal)),
    }
}
