//! Listens for GDB's connection.

use std::io::{Error, ErrorKind, Result};
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// The connection with GDB, which the program cannot close. It may be any stream socket.
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    fn new(socket: OwnedFd) -> Connection {
        Connection { stream: linux::out_of_reach(socket).into() }
    }

    /// The socket.
    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Waits for GDB.
pub struct Listener {
    socket: Socket,
    address: String,
}

impl Listener {
    /// Listens on a port of this machine (`1234`), at an address (`host:1234`), or at a path, which has a
    /// slash in it. Port 0 is any that is free.
    pub fn bind(place: &str) -> Result<Listener> {
        if place.contains('/') {
            let socket = UnixListener::bind(place)?;
            let socket = Socket::Unix(linux::out_of_reach(socket.into()).into());
            return Ok(Listener { socket, address: place.into() });
        }
        let invalid =
            || Error::new(ErrorKind::InvalidInput, "name a PORT, a HOST:PORT or a PATH with a slash");
        let place = if place.contains(':') { place.into() } else { format!("localhost:{place}") };
        let (_, port) = place.rsplit_once(':').ok_or_else(invalid)?;
        port.parse::<u16>().map_err(|_| invalid())?;
        let addresses: Vec<_> = place.to_socket_addrs()?.collect();
        let listener = TcpListener::from(linux::out_of_reach(TcpListener::bind(&addresses[..])?.into()));
        let address = listener.local_addr()?.to_string();
        Ok(Listener { socket: Socket::Tcp(listener), address })
    }

    /// The argument for GDB's `target remote`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until GDB connects. None if a signal for the program came first.
    pub fn accept(&self) -> Result<Option<Connection>> {
        let descriptor = match &self.socket {
            Socket::Tcp(listener) => listener.as_raw_fd(),
            Socket::Unix(listener) => listener.as_raw_fd(),
        };
        let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which outlives the call.
        while unsafe { libc::poll(&mut entry, 1, -1) } < 0 {
            let error = Error::last_os_error();
            if host::pending() {
                return Ok(None);
            } else if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let socket = match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // GDB waits for the reply to each packet.
                stream.set_nodelay(true)?;
                OwnedFd::from(stream)
            }
            Socket::Unix(listener) => listener.accept()?.0.into(),
        };
        Ok(Some(Connection::new(socket)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_) = self.socket {
            let _ = std::fs::remove_file(&self.address);
        }
    }
}
