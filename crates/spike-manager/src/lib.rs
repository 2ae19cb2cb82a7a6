//! The manager of Spike's database: a page that a browser on this machine shows, for this user only.
//!
//! The page shows the database, which it reads itself. What it does are commands of `pathlength spike`, started as jobs in the background, so that
//! it can do what they can and nothing else. `docs/design/spike-environment.md` says who is kept out, and how.

mod access;
mod answers;
mod commands;
mod jobs;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;

use access::Access;
use commands::Launcher;
use jobs::Jobs;
use tiny_http::Server;

/// Threads that answer: one request that takes longer does not delay the others.
const THREADS: usize = 4;

/// How the manager starts commands.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of the database.
    pub folder: PathBuf,
    /// The program `pathlength`.
    pub program: PathBuf,
    /// Options of all commands that run programs: the processor, the libraries.
    pub engine: Vec<OsString>,
    /// The port; 0 for any.
    pub port: u16,
}

/// A manager that listens.
pub struct Manager {
    server: Server,
    access: Access,
    launcher: Launcher,
    jobs: Jobs,
}

impl Manager {
    /// Listens, on this machine's own address only.
    pub fn new(settings: Settings) -> io::Result<Manager> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.port));
        let server = Server::http(address).map_err(io::Error::other)?;
        let port = server.server_addr().to_ip().map_or(settings.port, |address| address.port());
        let jobs = Jobs::default();
        Ok(Manager { server, access: Access::new(port)?, launcher: Launcher::new(settings), jobs })
    }

    /// The page's address, with the secret that gives access.
    pub fn address(&self) -> String {
        self.access.address()
    }

    /// Answers requests, for ever.
    pub fn serve(&self) {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Ok(mut request) = self.server.recv() {
                        let response = self.answer(&mut request);
                        // The browser may have gone.
                        let _ = request.respond(response);
                    }
                });
            }
        });
    }
}
