//! Where GDB connects.

use std::io::{Error, ErrorKind, Result};
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// The connection with GDB. It may be any stream socket: the host's kernel makes no difference.
pub type Connection = UnixStream;

/// Our descriptors have this number or a higher one.
const LEAST_DESCRIPTOR: libc::c_int = 512;

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
            let socket = Socket::Unix(UnixListener::bind(place)?);
            return Ok(Listener { socket, address: place.into() });
        }
        let invalid =
            || Error::new(ErrorKind::InvalidInput, "name a PORT, a HOST:PORT or a PATH with a slash");
        let place = if place.contains(':') { place.into() } else { format!("localhost:{place}") };
        let (_, port) = place.rsplit_once(':').ok_or_else(invalid)?;
        port.parse::<u16>().map_err(|_| invalid())?;
        let addresses: Vec<_> = place.to_socket_addrs()?.collect();
        let listener = TcpListener::bind(&addresses[..])?;
        let address = listener.local_addr()?.to_string();
        Ok(Listener { socket: Socket::Tcp(listener), address })
    }

    /// What GDB's `target remote` takes.
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
            if engine::linux::pending() {
                return Ok(None);
            } else if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let socket = match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // GDB waits for the answer to each packet.
                stream.set_nodelay(true)?;
                OwnedFd::from(stream)
            }
            Socket::Unix(listener) => listener.accept()?.0.into(),
        };
        Ok(Some(out_of_the_way(socket).into()))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_) = self.socket {
            let _ = std::fs::remove_file(&self.address);
        }
    }
}

/// Another descriptor of the connection.
pub(crate) fn another(connection: &Connection) -> Result<Connection> {
    Ok(out_of_the_way(connection.as_fd().try_clone_to_owned()?).into())
}

/// The same file under a number that the program does not expect for its own, if there may be one.
fn out_of_the_way(file: OwnedFd) -> OwnedFd {
    // SAFETY: plain system call on a descriptor that is ours.
    let copy = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR) };
    // SAFETY: a new descriptor, which nobody else has.
    if copy < 0 { file } else { unsafe { OwnedFd::from_raw_fd(copy) } }
}
