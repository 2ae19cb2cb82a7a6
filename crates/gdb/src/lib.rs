//! Lets GDB debug a program on the engine, by its remote serial protocol.
//!
//! ```no_run
//! # use engine::{Configuration, Process};
//! # fn example(configuration: &Configuration) -> Result<(), Box<dyn std::error::Error>> {
//! let listener = pathlength_gdb::Listener::bind("1234")?;
//! let mut process = Process::new(configuration)?;
//! eprintln!("target remote {}", listener.address());
//! let connection = listener.accept()?.ok_or("a signal came first")?;
//! let server = pathlength_gdb::Server::start(connection, &process, &process.sysroot())?;
//! let end = process.run(&mut server.observer())?;
//! server.end(&end);
//! # Ok(())
//! # }
//! ```

mod arch;
mod files;
mod listener;
mod server;
mod target;

pub use listener::{Connection, Listener};
pub use server::Server;
