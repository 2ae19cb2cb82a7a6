//! Who may use the manager: who knows the page's address, in a browser that was not sent here by another page.

use std::fs::File;
use std::io::{self, Read};

use tiny_http::{Method, Request};

/// Bytes of the secret in the address.
const SECRET_BYTES: usize = 16;

/// The secret, and the names that a browser on this machine has for the server.
pub struct AccessControl {
    secret: String,
    hosts: [String; 2],
}

impl AccessControl {
    /// A new secret.
    pub fn new(port: u16) -> io::Result<AccessControl> {
        let mut bytes = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let secret = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(AccessControl { secret, hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")] })
    }

    /// The page's address.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.secret)
    }

    /// The path behind the secret, if the request is allowed.
    pub fn path<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let header = |name: &'static str| {
            let found = request.headers().iter().find(|header| header.field.equiv(name));
            found.map(|header| header.value.as_str())
        };
        // Another name in Host is that of a page elsewhere whose name was made to lead here.
        let host = header("Host")?;
        let is_host = self.hosts.iter().any(|name| name == host);
        let is_origin = match header("Origin") {
            Some(origin) => origin.strip_prefix("http://") == Some(host),
            // A browser names the origin of each request that changes something.
            None => *request.method() == Method::Get,
        };
        if !is_host || !is_origin {
            return None;
        }
        let (secret, path) = request.url().strip_prefix('/')?.split_once('/')?;
        is_equal(secret.as_bytes(), self.secret.as_bytes()).then_some(path)
    }
}

/// Compares in a time that does not depend on how much is right.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
