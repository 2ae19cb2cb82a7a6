//! Listens for GDB's connection. Who debugs a program can do whatever it could do, so that connections of other users
//! of this machine are refused.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// The connection with GDB, which the program cannot close. It may be any stream socket.
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    fn new(socket: OwnedFd) -> Connection {
        Connection { stream: linux_user::out_of_reach(socket).into() }
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
    /// Listens on a port of this machine (`1234`), at an address (`host:1234`), at which any user of other machines can
    /// connect, or at a path, which has a slash in it. Port 0 is any that is free.
    pub fn bind(address: &str) -> Result<Listener> {
        if address.contains('/') {
            let socket = UnixListener::bind(address)?;
            let socket = Socket::Unix(linux_user::out_of_reach(socket.into()).into());
            return Ok(Listener { socket, address: address.into() });
        }
        let invalid =
            || Error::new(ErrorKind::InvalidInput, "name a PORT, a HOST:PORT or a PATH with a slash");
        let address = if address.contains(':') { address.into() } else { format!("localhost:{address}") };
        let (_, port) = address.rsplit_once(':').ok_or_else(invalid)?;
        port.parse::<u16>().map_err(|_| invalid())?;
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        let listener = TcpListener::from(linux_user::out_of_reach(TcpListener::bind(&addresses[..])?.into()));
        let address = listener.local_addr()?.to_string();
        Ok(Listener { socket: Socket::Tcp(listener), address })
    }

    /// The argument for GDB's `target remote`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until GDB connects, started by this user or by root. None if a signal for the program came first.
    pub fn accept(&self) -> Result<Option<Connection>> {
        loop {
            let Some((socket, owner)) = self.accept_any()? else { return Ok(None) };
            // SAFETY: no preconditions.
            let ours = unsafe { libc::geteuid() };
            match owner {
                ConnectionOwner::User(user) if user != ours && user != 0 => {
                    text::message!("note: user {user} tried to debug the program, and was refused");
                }
                ConnectionOwner::Unknown => {
                    text::message!("note: an unknown user tried to debug the program, and was refused");
                }
                _ => return Ok(Some(Connection::new(socket))),
            }
        }
    }

    fn accept_any(&self) -> Result<Option<(OwnedFd, ConnectionOwner)>> {
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
        Ok(Some(match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                // GDB waits for the reply to each packet.
                stream.set_nodelay(true)?;
                let owner = owner_of(peer, stream.local_addr()?);
                (OwnedFd::from(stream), owner)
            }
            Socket::Unix(listener) => {
                let stream = listener.accept()?.0;
                let owner = ConnectionOwner::User(user_of(&stream)?);
                (stream.into(), owner)
            }
        }))
    }
}

/// Who has the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionOwner {
    /// A user of this machine.
    User(u32),
    /// Somebody on another machine.
    Remote,
    /// Somebody on this machine.
    Unknown,
}

/// Who connected from `peer` to `local`, by the kernel's list of sockets (proc_pid_net(5)). Sockets that nobody has any
/// more have root's number there, and no inode.
fn owner_of(peer: SocketAddr, local: SocketAddr) -> ConnectionOwner {
    const USER: usize = 7;
    const INODE: usize = 9;
    let wanted = [peer, local].map(socket_name);
    for list in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let sockets = std::fs::read_to_string(list).unwrap_or_default();
        let user = sockets.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let mut ends = fields.get(1..3)?.iter().zip(&wanted);
            let is_it =
                *fields.get(INODE)? != "0" && ends.all(|(end, names)| names.iter().any(|name| name == end));
            is_it.then(|| fields[USER].parse().ok())?
        });
        if let Some(user) = user {
            return ConnectionOwner::User(user);
        }
    }
    if peer.ip().to_canonical().is_loopback() || peer.ip() == local.ip() {
        ConnectionOwner::Unknown
    } else {
        ConnectionOwner::Remote
    }
}

/// How the kernel's lists name an address: in tcp6, IPv4's addresses are mapped.
fn socket_name(address: SocketAddr) -> [String; 2] {
    let hexadecimal = |bytes: &[u8]| {
        let words = bytes
            .chunks(4)
            .map(|word| format!("{:08X}", u32::from_ne_bytes(word.try_into().expect("4 bytes"))));
        format!("{}:{:04X}", words.collect::<String>(), address.port())
    };
    match address.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => [hexadecimal(&ip.octets()), hexadecimal(&ip.to_ipv6_mapped().octets())],
        std::net::IpAddr::V6(ip) => [hexadecimal(&ip.octets()), hexadecimal(&ip.octets())],
    }
}

/// The user of a socket's other end (SO_PEERCRED in unix(7)).
fn user_of(stream: &UnixStream) -> Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the pointers are to a ucred and its size, which outlive the call.
    let result = unsafe {
        let value = (&raw mut peer).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, value, &mut size)
    };
    if result == 0 { Ok(peer.uid) } else { Err(Error::last_os_error()) }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_) = self.socket {
            let _ = std::fs::remove_file(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn the_user_of_a_connection_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let host = if address.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
            let client = TcpStream::connect((host, port)).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            // SAFETY: no preconditions.
            let ours = ConnectionOwner::User(unsafe { libc::geteuid() });
            let local = stream.local_addr().unwrap();
            assert_eq!(owner_of(peer, local), ours, "{address}");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(owner_of(peer, local), ours, "{address}");
            drop(client);
            assert_eq!(owner_of(peer, local), ConnectionOwner::Unknown, "{address}: nobody has it any more");
        }
        let elsewhere: SocketAddr = "192.0.2.1:9".parse().unwrap();
        let here: SocketAddr = "192.0.2.2:10".parse().unwrap();
        assert_eq!(owner_of(elsewhere, here), ConnectionOwner::Remote);
        assert_eq!(owner_of("127.0.0.1:1".parse().unwrap(), here), ConnectionOwner::Unknown);
    }
}
