//! The connection between a recorded process and its client.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, sendmsg, sockopt,
};

use super::messages::AttachAnswer;

/// Maximum size of a request in bytes.
const LONGEST: usize = 16 << 10;

/// The path of the socket at which a client listens, by the number of its request.
pub(super) fn path(request: u64) -> String {
    format!("/tmp/pathlength-attach-{request:016x}")
}

/// Our end of the connection.
#[derive(Debug)]
pub(in super::super) struct AttachConnection {
    stream: UnixStream,
}

impl AttachConnection {
    /// Connects to the client of a request, if that belongs to the same user or to root.
    pub(super) fn connect(request: u64) -> io::Result<AttachConnection> {
        let stream = UnixStream::connect(path(request))?;
        let peer = sockopt::socket_peercred(&stream)?;
        let ours = rustix::process::geteuid();
        if peer.uid != ours && !peer.uid.is_root() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(AttachConnection { stream: linux_user::out_of_reach(stream.into()).into() })
    }

    /// Sends an answer. Errors are ignored.
    pub(in super::super) fn send(&mut self, answer: &AttachAnswer) {
        let answer = serde_json::to_string(answer).unwrap_or_default();
        let _ = self.stream.write_all(format!("{answer}\n").as_bytes());
    }

    /// Receives the request, with the trace's file and the shared memory.
    pub(super) fn request(&self) -> io::Result<(String, [OwnedFd; 2])> {
        let mut bytes = vec![0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        let received = loop {
            // A signal to this thread, such as another thread's request, must not end the session.
            match recvmsg(&self.stream, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                received => break received?,
            }
        };
        let descriptors = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors.collect::<Vec<OwnedFd>>()),
            _ => None,
        });
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the request is not complete");
        let [file, numbers] = descriptors.and_then(|two| two.try_into().ok()).ok_or_else(wrong)?;
        let text = String::from_utf8(bytes[..received.bytes].to_vec()).map_err(|_| wrong())?;
        let request = text.strip_suffix('\n').ok_or_else(wrong)?.to_string();
        Ok((request, [file, numbers].map(linux_user::out_of_reach)))
    }

    /// Whether the other end has disconnected or has ended the session.
    pub(in super::super) fn is_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(&self.stream, &mut [0u8; 1], flags) {
            Ok((_, bytes)) => bytes == 0,
            Err(error) => error != rustix::io::Errno::AGAIN && error != rustix::io::Errno::INTR,
        }
    }

    /// A handle to wait for that on another thread.
    pub(in super::super) fn end(&self) -> Option<ConnectionEnd> {
        let stream = linux_user::high_copy(self.stream.as_raw_fd())?;
        Some(ConnectionEnd { stream: stream.into() })
    }
}

/// A handle to wait for the end of a connection.
pub(in super::super) struct ConnectionEnd {
    stream: UnixStream,
}

impl ConnectionEnd {
    /// Waits until the other end has disconnected or has ended the session.
    pub(super) fn wait(&self) {
        while recv(&self.stream, &mut [0u8; 1], RecvFlags::empty()) == Err(rustix::io::Errno::INTR) {}
    }
}

/// Sends a request.
pub(super) fn send(stream: &UnixStream, request: &str, file: &File, numbers: BorrowedFd) -> io::Result<()> {
    let descriptors = [file.as_fd(), numbers];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let connection = format!("{request}\n");
    let sent = sendmsg(stream, &[IoSlice::new(connection.as_bytes())], &mut ancillary, SendFlags::empty())?;
    if sent == connection.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}
