//! The TCP/IP stack of `workloads/network`, built with sanitizers: scenarios of TCP, real traffic with the host's TCP,
//! hostile packets; and the same traffic of an Alpha program on the engine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use testing::sample;

mod preload;

/// The folder of the sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/network")
}

/// The folder of programs that `make` builds from them with these variables.
fn make(folder: &str, variables: &[&str]) -> PathBuf {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut command = Command::new("make");
    command.args(["-s", "-j2", "-C"]).arg(sources()).arg(format!("OUT={}", output.display())).args(variables);
    run(&mut command);
    output
}

/// The programs for the host, with sanitizers.
fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| make("network", &[]))
}

/// The output of a command that must succeed.
fn run(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?} is needed for this test: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// Real traffic; returns what was counted.
fn transfer(arguments: &str) -> String {
    run(Command::new(programs().join("transfer")).args(arguments.split(' ')))
}

/// The number behind a word of a report.
fn count(report: &str, word: &str) -> u64 {
    let (_, rest) = report.split_once(word).unwrap_or_else(|| panic!("no {word} in {report}"));
    let number = rest.trim_start().split(|end: char| !end.is_ascii_digit()).next();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no number behind {word} in {report}"))
}

/// The number of scenarios that passed.
fn scenarios(of: &[&str]) -> u64 {
    let report =
        run(Command::new(programs().join("scenario_run")).arg(sources().join("scenarios.txt")).args(of));
    report.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn scenarios_of_tcp_pass() {
    assert!(scenarios(&[]) >= 80);
}

/// The host's TCP passes the scenarios, too: they are no property of this stack alone.
#[test]
fn scenarios_describe_the_hosts_tcp() {
    assert!(scenarios(&["host"]) >= 50);
}

#[test]
fn a_scenario_can_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.txt");
    let steps = "scenario wrong\nlisten\n< S 0 mss 1460\n> SA 0 ack 2\n";
    std::fs::write(&wrong, steps).expect("a file");
    let output = Command::new(programs().join("scenario_run")).arg(&wrong).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("line 4: > SA 0 ack 2: this was sent: SA 0 ack 1"), "{errors}");
}

#[test]
fn every_byte_arrives_without_loss() {
    let bytes = sample(2_000_000, 500_000_000);
    let report = transfer(&format!("send={bytes} receive={bytes} echo={bytes} datagrams=30 probe=1"));
    assert_eq!(count(&report, "retransmitted"), 0, "{report}");
    assert!(count(&report, "reassembled") > 10 && count(&report, "echoed") == 1, "{report}");
}

#[test]
fn every_byte_arrives_at_one_in_a_thousand_lost() {
    let bytes = sample(4_000_000, 1_000_000_000);
    let report = transfer(&format!("send={bytes} receive={bytes} loss=1000 seed=3"));
    assert!(count(&report, "retransmitted") > 0, "{report}");
}

#[test]
fn every_byte_arrives_at_one_in_a_hundred_lost() {
    let bytes = sample(1_000_000, 200_000_000);
    let faults = "loss=10000 reorder=5000 duplicate=5000 corrupt=5000";
    let report = transfer(&format!("send={bytes} receive={bytes} echo={bytes} datagrams=10 seed=5 {faults}"));
    assert!(count(&report, "out of order") > 0 && count(&report, "bad checksums") > 0, "{report}");
}

/// The host completes checksums and cuts segments: nothing is summed but headers.
#[test]
fn offloading_leaves_checksums_and_segments_to_the_host() {
    let bytes = 3_000_000;
    let with = |switch: &str| transfer(&format!("send={bytes} receive={bytes} echo={bytes} {switch}"));
    let [plain, checksums, segments] = ["tso=0", "checksum=1", "tso=1"].map(with);
    assert!(count(&plain, "checksummed") > 4 * bytes, "{plain}");
    assert!(count(&checksums, "checksummed") < bytes, "{checksums}");
    assert!(count(&segments, "tcp: sent") * 3 < count(&plain, "tcp: sent"), "{segments}");
}

/// Nothing crashes, nothing stays allocated, and no byte is wrong; the program checks it.
#[test]
fn hostile_packets_do_no_harm() {
    let sessions = sample(300, 100_000);
    let report = run(Command::new(programs().join("fuzz")).args(["1", &sessions.to_string()]));
    let all = ["connections", "bytes read", "out of order", "reassembled", "refused"];
    for word in all {
        assert!(count(&report, word) > sessions / 10, "{word}: {report}");
    }
}

/// The adapter's memory holds what is sent and received; the processor copies and sums the small rest.
#[test]
fn data_stay_in_the_adapters_memory() {
    let bytes = sample(1_500_000, 200_000_000);
    let report = transfer(&format!("dart=1 send={bytes} receive={bytes} echo={bytes} datagrams=20 probe=1"));
    assert!(
        count(&report, "dart: bytes") > bytes * 3 / 2 && count(&report, "hardware sums") > bytes / 2000,
        "{report}"
    );
    assert!(count(&report, "summed again") < bytes / 20 && count(&report, "relocated") == 0, "{report}");
}

#[test]
fn data_survive_faults_behind_the_adapter() {
    let bytes = sample(1_500_000, 200_000_000);
    let faults = "loss=10000 reorder=5000 duplicate=5000 corrupt=5000";
    let report = transfer(&format!("dart=1 send={bytes} receive={bytes} seed=7 {faults}"));
    assert!(count(&report, "bad checksums") > 0 && count(&report, "retransmitted") > 0, "{report}");
}

/// Without memory of the adapter, data go through the host's.
#[test]
fn an_adapter_without_memory_is_a_traditional_one() {
    let bytes = 1_000_000;
    let report = transfer(&format!("dart=1 send={bytes} receive={bytes} echo={bytes} buffers=40"));
    assert!(count(&report, "refused") > 100 && count(&report, "dart: bytes") < bytes, "{report}");
    assert!(count(&report, "copied") > 3 * bytes, "{report}");
}

/// Data that a driver cannot send from the adapter's memory move to the host's. A stack without DART's paths never asks for adapter memory.
#[test]
fn data_move_to_the_hosts_memory_when_they_must() {
    let bytes = 600_000;
    let with = |switch: &str| {
        transfer(&format!("dart=1 send={bytes} receive={bytes} echo={bytes} datagrams=5 {switch}"))
    };
    let report = with("refuse=3");
    assert!(count(&report, "relocated") > 100, "{report}");
    let report = with("nodart=1");
    assert_eq!([count(&report, "dart: bytes"), count(&report, "hardware sums")], [0, 0], "{report}");
    assert!(count(&report, "copied") > 4 * bytes, "{report}");
}

/// The processes that a process has started.
fn children(process: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    listed.unwrap_or_default().split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Waits for something, on a busy machine, too.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn kill(process: u32) {
    run(Command::new("kill").args(["-KILL", &process.to_string()]));
}

/// Whether a process is gone or only waits to be noticed.
fn has_ended(process: &u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_none_or(|state| state.is_empty() || state.starts_with('Z'))
}

/// A killed run leaves no process behind, and thus no network; and a killed adapter ends its run.
#[test]
fn nothing_survives_a_kill() {
    let start = || {
        let mut command = Command::new(programs().join("transfer"));
        command.args(["dart=1", "echo=100000000000"]).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        // The adapter, and the host's side, which has started its echo.
        wait_until("children", || {
            let own = children(child.id());
            own.len() == 2 && !children(own[1]).is_empty()
        });
        let own = children(child.id());
        (child, own)
    };
    let (mut whole, own) = start();
    let all = [&own[..], &children(own[1])].concat();
    kill(whole.id());
    whole.wait().expect("it has ended");
    wait_until("a process survives", || all.iter().all(has_ended));

    let (without, own) = start();
    kill(own[0]);
    let output = without.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "dart: the adapter's process has ended\n");
    wait_until("the host's side survives", || has_ended(&own[1]));
}

/// Alpha's build behaves the same on the engine, with the guest's own TAP device.
#[test]
fn an_alpha_program_has_the_same_traffic() {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("network-alpha");
    let program = output.join("transfer");
    let mut command = Command::new("make");
    command.args(["-s", "-j2", "-C"]).arg(sources()).arg(format!("OUT={}", output.display())).arg(&program);
    run(command.args(["CC=alpha-linux-gnu-gcc", "SANITIZE=", "OPTIMIZE=-O1 -mcpu=ev56"]));
    let test = std::env::current_exe().expect("a test");
    let engine = test.ancestors().nth(2).expect("two folders").join("examples/run");
    assert!(
        engine.exists(),
        "build the engine's program first: cargo build -p pathlength-engine --example run"
    );
    for form in ["tso=0", "tso=1", "dart=1"] {
        let arguments = ["send=300000", "receive=300000", "echo=100000", "loss=1000", "datagrams=3", form];
        let report = run(Command::new(&engine).arg(&program).args(arguments));
        assert_eq!(count(&report, "dart: bytes") > 300_000, form == "dart=1", "{report}");
    }
}
