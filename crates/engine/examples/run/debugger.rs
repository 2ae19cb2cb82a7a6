//! A debugger that stops a program again and again, steps it and reads its state, but changes nothing: the program
//! must behave as without a debugger.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fastrand::Rng;
use pathlength_engine::debug::{DebugEvent, DebugSession, Order, StopReason, WatchedAccesses};
use pathlength_engine::{Error, Process, ProgramEnd};

/// EMFILE: too many open files.
const EMFILE: i32 = 24;

/// Number of stops, after which the debugger detaches.
const STOPS: usize = 3000;

/// Runs a program under such a debugger, which makes random decisions with a seed.
pub fn run(process: &mut Process, seed: u64) -> Result<ProgramEnd, Error> {
    let (sender, events) = channel();
    let session = DebugSession::new(process, move |event| drop(sender.send(event)));
    let mut observer = pathlength_engine::debug::DebugObserver::new(&session);
    let debugger =
        Debugger { session: session.clone(), events, rng: Rng::with_seed(seed), addresses: Vec::new() };
    let debugger: JoinHandle<()> = host::without_signals(|| std::thread::spawn(|| debugger.debug()));
    let end = process.run(&mut observer)?;
    session.end(end.clone());
    debugger.join().expect("the debugger has not failed");
    Ok(end)
}

struct Debugger {
    session: Arc<DebugSession>,
    events: Receiver<DebugEvent>,
    rng: Rng,
    /// Addresses of the next instructions at stops, for breakpoints.
    addresses: Vec<u64>,
}

impl Drop for Debugger {
    /// The program continues even if the debugger fails.
    fn drop(&mut self) {
        self.session.detach();
    }
}

impl Debugger {
    fn debug(mut self) {
        self.session.settle();
        let (mut thread, mut signal) = (self.session.threads()[0], None);
        for _ in 0..STOPS {
            self.look();
            self.resume(thread, signal);
            let patience = Duration::from_micros(self.rng.u64(100..5000));
            let event = match self.events.recv_timeout(patience) {
                Ok(event) => event,
                Err(_) => match self.session.interrupt() {
                    Some(interrupted) => {
                        (thread, signal) = (interrupted, None);
                        continue;
                    }
                    None => self.events.recv().expect("the session lives"),
                },
            };
            let DebugEvent::Stopped(stopped) = event else { return };
            self.session.settle();
            thread = stopped.thread;
            signal = match stopped.reason {
                StopReason::Signal(signal) => Some(signal),
                _ => None,
            };
        }
    }

    /// Reads the state of every thread, and writes back the same contents.
    fn look(&mut self) {
        for thread in self.session.threads() {
            // A system call that was in progress may have ended meanwhile.
            let Ok(registers) = self.session.registers(thread) else { continue };
            let mut word = [0; 4];
            if self.session.read(registers.pc(), &mut word) == word.len() {
                match self.session.write(registers.pc(), &word) {
                    Ok(()) => {}
                    // The debugger shares the program's limit of open files.
                    Err(error) if error.raw_os_error() == Some(EMFILE) => {}
                    // The program may have unmapped the memory.
                    Err(_) if self.session.read(registers.pc(), &mut word) < word.len() => {}
                    // Linux cannot make a private copy of the page for a debugger to write to.
                    Err(_) if is_shared(registers.pc()) => {}
                    Err(error) => panic!("what can be executed can be written: {error}"),
                }
                self.addresses.push(registers.pc());
            }
            // The registers of a thread in a system call cannot be set.
            let _ = self.session.set_registers(thread, registers.words().to_vec());
        }
        if self.addresses.len() > 1000 {
            self.addresses.truncate(500);
        }
    }

    /// Sets some breakpoints and perhaps a watchpoint, and resumes the program or a single thread.
    fn resume(&mut self, thread: i32, signal: Option<i32>) {
        for _ in 0..self.rng.usize(..4) {
            let address = self.rng.choice(&self.addresses).copied().unwrap_or_default();
            match self.rng.bool() {
                true => self.session.add_breakpoint(address),
                false => self.session.remove_breakpoint(address),
            };
        }
        let Ok(registers) = self.session.registers(thread) else { return };
        self.session.remove_breakpoint(registers.pc());
        let watched = self.rng.u8(..8) == 0;
        let stack = registers.words()[30] & !7;
        let range = stack..stack + 32;
        if watched {
            self.session.add_watchpoint(range.start, 32, WatchedAccesses::All);
        } else {
            self.session.remove_watchpoint(range.start, 32, WatchedAccesses::All);
        }
        let order = match self.rng.u8(..4) {
            0 => Order::Run,
            1 => Order::Step(registers.pc()..registers.pc() + 64),
            _ => Order::Step(0..0),
        };
        let default = if self.rng.u8(..4) == 0 { Order::Stay } else { Order::Run };
        self.session.resume(&BTreeMap::from([(thread, (order, signal))]), &default);
    }
}

/// Whether an address is in a mapping that is shared with other processes. Guest addresses equal host addresses.
fn is_shared(address: u64) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).unwrap_or(0);
    maps.lines().any(|line| {
        let mut fields = line.split(' ');
        let (first, end) = fields.next().and_then(|range| range.split_once('-')).unwrap_or_default();
        (hexadecimal(first)..hexadecimal(end)).contains(&address)
            && fields.next().is_some_and(|access| access.ends_with('s'))
    })
}
