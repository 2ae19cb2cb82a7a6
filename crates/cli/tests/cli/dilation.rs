//! `count --time-dilation`: a server that one client asks executes the same instructions, however long the client takes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::{sleep, spawn};
use std::time::Duration;

use crate::support::{csv, guest, outcome, pathlength};

/// Asks a server with pauses between requests, in milliseconds.
fn ask(socket: &std::path::Path, pauses: &[u64]) {
    let mut stream = (0..3000).find_map(|_| {
        sleep(Duration::from_millis(10));
        UnixStream::connect(socket).ok()
    });
    let stream = stream.as_mut().expect("the server listens");
    for &pause in pauses {
        sleep(Duration::from_millis(pause));
        stream.write_all(b"?").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
}

/// The instructions of each function of the server.
fn counts(dilation: &str, pauses: &'static [u64]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let (socket, table) = (folder.path().join("socket"), folder.path().join("table.csv"));
    let mut command =
        pathlength(["count", "--by", "function", "--format", "csv", "--time-dilation", dilation, "-o"]);
    command.arg(&table).arg(guest("ev56/answers")).arg("socket").current_dir(folder.path());
    let client = spawn(move || ask(&socket, pauses));
    outcome(command).noted_success();
    client.join().unwrap();
    csv(&fs::read_to_string(table).unwrap())
}

#[test]
fn what_a_server_executes_does_not_depend_on_when_its_client_asks() {
    let (quick, slow): (&[u64], &[u64]) = (&[0, 0, 0, 0, 0, 0], &[0, 30, 0, 1, 60, 0]);
    assert_eq!(counts("100000", quick), counts("100000", slow));
    // Without, time passes in the server.
    assert_ne!(counts("1", quick), counts("1", slow));
}
