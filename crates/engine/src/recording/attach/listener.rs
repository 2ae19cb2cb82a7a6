//! The socket at which a client waits for the processes that it wants to record.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
};

use super::connection::path;

/// A socket in a process's /tmp, to which only the process's user can connect. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct RequestListener {
    /// The number that the process is told.
    pub(super) request: u64,
    process: u32,
    user: u32,
    socket: UnixListener,
    path: PathBuf,
}

impl RequestListener {
    /// Listens for a process.
    pub(super) fn new(process: u32) -> io::Result<RequestListener> {
        let mut random = 0u64;
        // SAFETY: the buffer has 8 bytes.
        if unsafe { libc::getrandom((&raw mut random).cast(), 8, 0) } != 8 {
            return Err(io::Error::last_os_error());
        }
        // A name that nobody can take before, of 63 bits; 0 has another meaning.
        let request = (random >> 1).max(1);
        let user = fs::metadata(format!("/proc/{process}"))?.uid();
        // The process may have another root directory. Not every user may look at it.
        let paths = [format!("/proc/{process}/root{}", path(request)), path(request)];
        let mut failure = None;
        for path in paths.map(PathBuf::from) {
            match as_user(user, || open(&path)) {
                Ok(socket) => return Ok(RequestListener { request, process, user, socket, path }),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.expect("there are two paths"))
    }

    /// A connection of the process that is there already; others get nothing.
    pub(super) fn accept(&self) -> io::Result<Option<UnixStream>> {
        loop {
            match self.socket.accept() {
                Ok((stream, _)) if self.is_peer(&stream) => return Ok(Some(stream)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_peer(&self, stream: &UnixStream) -> bool {
        let peer = sockopt::socket_peercred(stream);
        peer.is_ok_and(|peer| peer.pid.as_raw_nonzero().get() as u32 == self.process)
    }
}

impl Drop for RequestListener {
    fn drop(&mut self) {
        let _ = as_user(self.user, || fs::remove_file(&self.path));
    }
}

/// A socket that is listening at a path, for the user who owns it.
fn open(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the mode of the socket (net/unix/af_unix.c).
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, 16)?;
    Ok(socket.into())
}

/// Does something with files with the rights of a user: root's would let the user, to whom the folder may belong,
/// redirect it to other files.
fn as_user<T>(user: u32, what: impl FnOnce() -> T) -> T {
    // SAFETY: no pointers are passed; the identity is the calling thread's alone.
    let before = unsafe { libc::syscall(libc::SYS_setfsuid, user) };
    let result = what();
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_setfsuid, before) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_gets_the_connection() {
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let listener = RequestListener::new(other.id()).unwrap();
        let mode = fs::metadata(&listener.path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut stranger = UnixStream::connect(&listener.path).unwrap();
        assert!(listener.accept().unwrap().is_none());
        assert_eq!(io::Read::read(&mut stranger, &mut [0]).unwrap(), 0, "the connection is closed");
        let path = listener.path.clone();
        drop(listener);
        assert!(!path.exists());
        let listener = RequestListener::new(std::process::id()).unwrap();
        let _ours = UnixStream::connect(&listener.path).unwrap();
        assert!(listener.accept().unwrap().is_some());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
