//! The manager of Spike's database: a page that a browser on this machine shows, for this user only.
//!
//! The page shows the database, which it reads itself. What it does are commands of `pathlength spike`, started as jobs in the background, so that
//! it can do what they can and nothing else. `docs/design/spike-environment.md` says who is kept out, and how.

mod access;
mod answers;
mod commands;
mod gate;
mod jobs;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::thread;

use access::AccessControl;
use commands::Launcher;
use jobs::Jobs;
use rustix::fs::{Mode, OFlags};
use tiny_http::Server;

/// Threads that answer: one request that takes longer does not delay the others.
const THREADS: usize = 4;

/// How the manager starts commands.
#[derive(Clone, Debug)]
pub struct ManagerSettings {
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
    listener: TcpListener,
    server: Server,
    /// The server's socket, which has no name.
    socket: OwnedFd,
    access: AccessControl,
    launcher: Launcher,
    jobs: Jobs,
}

impl Manager {
    /// Listens, on this machine's own address only.
    pub fn new(settings: ManagerSettings) -> io::Result<Manager> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.port));
        let listener = TcpListener::bind(address)?;
        let port = listener.local_addr()?.port();
        // Only this user can enter the folder, which then goes.
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("server");
        let server = Server::http_unix(&path).map_err(io::Error::other)?;
        let socket = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let (access, launcher) = (AccessControl::new(port)?, Launcher::new(settings));
        Ok(Manager { listener, server, socket, access, launcher, jobs: Jobs::default() })
    }

    /// The page's address, with the secret that gives access.
    pub fn address(&self) -> String {
        self.access.address()
    }

    /// Answers requests, for ever.
    pub fn serve(&self) {
        let socket = PathBuf::from(format!("/proc/self/fd/{}", self.socket.as_raw_fd()));
        thread::scope(|scope| {
            scope.spawn(|| gate::pass_requests(&self.listener, &socket));
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
