//! The gate between the port, which every user of this machine can connect to, and the server: it passes complete requests on. A
//! request that does not come to its end keeps nobody waiting: it is given up after some seconds, or when there are too many of
//! them.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// The time in which a request must arrive, and an answer be taken.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of connections whose requests are not complete.
const MOST_INCOMPLETE: usize = 64;
/// Maximum size of a request's head in bytes.
const MOST_HEAD: usize = 16 << 10;
/// Maximum size of a request's body in bytes: more than any has.
const MOST_BODY: usize = 1 << 20;
/// Headers that are not passed on: each connection has one request, whose body is there.
const OWN_HEADERS: [&str; 3] = ["connection", "keep-alive", "expect"];

/// The connections whose requests are not complete, in the order in which they began, with their numbers.
type Incomplete = Mutex<VecDeque<(u64, TcpStream)>>;

/// Passes requests from a port to the server at a socket, for ever.
pub fn pass_requests(listener: &TcpListener, server: &Path) {
    let incomplete = Incomplete::default();
    let (incomplete, mut number) = (&incomplete, 0u64);
    thread::scope(|scope| {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // Too many descriptors are open.
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            let Ok(handle) = stream.try_clone() else { continue };
            number += 1;
            let this = number;
            let mut waiting = lock(incomplete);
            waiting.push_back((this, handle));
            if waiting.len() > MOST_INCOMPLETE
                && let Some((_, oldest)) = waiting.pop_front()
            {
                let _ = oldest.shutdown(Shutdown::Both);
            }
            drop(waiting);
            let pass = move || {
                let request = read_request(&stream);
                lock(incomplete).retain(|(number, _)| *number != this);
                if let Ok(request) = request {
                    // The browser may have gone.
                    let _ = answer(&stream, &request, server);
                }
            };
            let _ = thread::Builder::new().spawn_scoped(scope, pass);
        }
    });
}

fn lock(incomplete: &Incomplete) -> std::sync::MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
    incomplete.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn answer(mut stream: &TcpStream, request: &[u8], server: &Path) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut server = UnixStream::connect(server)?;
    server.write_all(request)?;
    io::copy(&mut server, &mut stream)?;
    stream.shutdown(Shutdown::Write)
}

/// Reads a request with its body, as the server gets it.
fn read_request(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let end = Instant::now() + TIMEOUT;
    let mut bytes = Vec::new();
    let mut more = |bytes: &mut Vec<u8>| {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let mut part = [0; 4096];
        match stream.read(&mut part)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            count => {
                bytes.extend_from_slice(&part[..count]);
                Ok(())
            }
        }
    };
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > MOST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        more(&mut bytes)?;
    };
    let (passed, length) = passed_head(&bytes[..head - 2]).ok_or(io::ErrorKind::InvalidData)?;
    while bytes.len() < head + length {
        more(&mut bytes)?;
    }
    Ok([passed.as_bytes(), &bytes[head..head + length]].concat())
}

/// The head as it is passed on, and the length of the body. None if it is not valid.
fn passed_head(head: &[u8]) -> Option<(String, usize)> {
    let mut lines = std::str::from_utf8(head).ok()?.split_terminator("\r\n");
    let (mut passed, mut length) = (format!("{}\r\n", lines.next()?), 0);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "transfer-encoding" => return None,
            "content-length" => length = value.trim().parse().ok().filter(|&length| length <= MOST_BODY)?,
            _ => {}
        }
        if !OWN_HEADERS.contains(&name.as_str()) {
            passed.push_str(line);
            passed.push_str("\r\n");
        }
    }
    passed.push_str("Connection: close\r\n\r\n");
    Some((passed, length))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn complete_requests_pass_whatever_others_leave_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("server");
        let server = UnixListener::bind(&socket).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || pass_requests(&listener, &socket));
        thread::spawn(move || {
            for mut stream in server.incoming().flatten() {
                let mut got = vec![0; 4096];
                let count = stream.read(&mut got).unwrap();
                stream.write_all(&got[..count]).unwrap();
            }
        });
        let begin = |text: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream
        };
        let halves = [
            "GET / HT",
            "GET / HTTP/1.1\r\nHost: a\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
            "",
        ];
        let unfinished: Vec<_> = (0..3 * MOST_INCOMPLETE).map(|index| begin(halves[index % 4])).collect();
        let ask = |text: &str| {
            let mut answer = String::new();
            begin(text).read_to_string(&mut answer).map(|_| answer)
        };
        let head =
            "POST /x HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody and more";
        let passed = "POST /x HTTP/1.1\r\nhost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
        assert_eq!(ask(head).unwrap(), passed);
        for refused in [
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n",
            "GET / HTTP/1.1\r\nno header\r\n\r\n",
        ] {
            assert_eq!(ask(refused).unwrap_or_default(), "");
        }
        drop(unfinished);
    }
}
