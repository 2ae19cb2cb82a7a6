//! The guest itself, whose kernel takes minutes to build: `make system-check` does it.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::Command;

use engine::Plan;
use pathlength_system::job::{AwaitedFile, GuestCommand, GuestJob, SharedFile};
use pathlength_system::kernel::{self, KernelConfiguration};
use pathlength_system::machine::{GuestHardware, ReportedAccesses, VirtualMachine};
use pathlength_system::network::GuestNetwork;
use pathlength_system::{Converted, GuestImages, INSTRUCTION_SET, convert, count, exact_blocks};
use trace::{Header, Writer};

/// The library and its loader, of the cross compiler.
const LIBRARIES: [&str; 2] = ["ld-linux.so.2", "libc.so.6.1"];

/// A program that works for some clock interrupts, writes a file and forks.
const PROGRAM: &str = "\
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    volatile long sum = 0;
    for (int i = 0; i < 3000000; i++) sum += i;
    FILE *file = fopen(\"/tmp/file\", \"w\");
    for (int i = 0; i < 1000; i++) fprintf(file, \"%d\\n\", i);
    fclose(file);
    if (fork() == 0) exit(3);
    wait(NULL);
    puts(\"done\");
    return 5;
}
";

fn built(configuration: KernelConfiguration) -> kernel::GuestKernel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    kernel::build(&folder, None, configuration, &|step| eprintln!("{step:?}")).unwrap()
}

fn shared(host: &Path, guest: &str) -> SharedFile {
    SharedFile { host: host.into(), guest: guest.into() }
}

fn compile(source: &Path, flags: &[&str], program: &Path) {
    let mut compiler = Command::new("alpha-linux-gnu-gcc");
    assert!(compiler.args(flags).arg(source).arg("-o").arg(program).status().unwrap().success());
}

/// Repeats what was recorded twice, and returns both traces, whose transfers of control are all explained.
fn replay_twice(
    machine: &VirtualMachine,
    images: &GuestImages,
    folder: &Path,
    plan: &Plan,
) -> [(Vec<u8>, Converted); 2] {
    ["first", "second"].map(|name| {
        let path = folder.join(name);
        let _new = File::create(&path).unwrap();
        let open = |_| Writer::new(OpenOptions::new().append(true).open(&path)?, &header(machine));
        let converted =
            machine.replay(ReportedAccesses::All, |stream| convert(stream, images, plan, open)).unwrap();
        assert_eq!(converted.unexplained, 0, "{converted:?}");
        (fs::read(&path).unwrap(), converted)
    })
}

fn header(machine: &VirtualMachine) -> Header {
    let code = &machine.palcode().code;
    Header {
        instruction_set: INSTRUCTION_SET.into(),
        palcode: Some((code.start, code.end)),
        ..Header::default()
    }
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn guest_replays_are_identical() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&source, PROGRAM).unwrap();
    compile(&source, &["-O1"], &program);
    let mut files = vec![shared(&program, "/program")];
    let libraries = LIBRARIES.map(|name| Path::new("/usr/alpha-linux-gnu/lib").join(name));
    files.extend(libraries.iter().zip(LIBRARIES).map(|(path, name)| shared(path, &format!("/lib/{name}"))));
    let job = GuestJob {
        command: GuestCommand { program: "/program".into(), arguments: vec!["program".into()] },
        folder: "/".into(),
        files,
        outputs: vec![shared(Path::new(""), "/tmp/file"), shared(Path::new(""), "/none")],
        ..GuestJob::default()
    };
    let kernel = built(KernelConfiguration::default());
    let hardware = GuestHardware { memory: 256 << 20, processors: 1, disk: 0, network: None };
    let machine = VirtualMachine::new(&kernel, &job, hardware).unwrap();
    let result = machine.record(&mut |_, _| {}).unwrap();
    assert_eq!((result.status, result.output.as_slice(), result.errors.len()), (5 << 8, &b"done\n"[..], 0));
    let lines: String = (0..1000).map(|line| format!("{line}\n")).collect();
    assert_eq!(result.files, [Some(lines.into_bytes()), None]);
    let mut programs = vec![program, kernel.init.clone()];
    programs.extend(libraries);
    let images = GuestImages { kernel: kernel.image.clone(), palcode: machine.palcode().clone(), programs };
    let traces = replay_twice(&machine, &images, folder.path(), &Plan::default());
    assert!(traces[0].1.instructions > 10_000_000, "{:?}", traces[0].1);
    assert!(traces[0].0 == traces[1].0);
    let path = folder.path().join("counts");
    let _new = File::create(&path).unwrap();
    let open = |_| Writer::new(OpenOptions::new().append(true).open(&path)?, &header(&machine));
    let reported = ReportedAccesses::NumberBut(exact_blocks(&kernel.image).unwrap());
    let counted = machine.replay(reported, |stream| count(stream, &images, open)).unwrap();
    assert_eq!(Converted { times: Default::default(), ..counted }, traces[0].1);
}

/// Two programs send a megabyte to each other over each kind of interfaces, and check each byte of it.
#[test]
#[ignore = "builds a kernel: make system-check"]
fn guest_networks_are_repeated_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("transfer");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/transfer.c");
    compile(&source, &["-std=gnu11", "-O2", "-static", "-Wl,--no-relax"], &program);
    let command = |words: &[&str]| {
        let parts = ["100000", "1000000"];
        let arguments = ["transfer"].iter().chain(words).chain(&parts).map(Into::into).collect();
        GuestCommand { program: "/transfer".into(), arguments }
    };
    let kernel = built(KernelConfiguration { has_network: true, ..KernelConfiguration::default() });
    let plan = Plan {
        from: Some("counted_begin".parse().unwrap()),
        until: Some("counted_end".parse().unwrap()),
        ..Plan::default()
    };
    for (network, call) in [
        ("tulip", "write"),
        ("virtio", "write"),
        ("e1000:none", "write"),
        ("e1000:checksum", "sendfile"),
        ("e1000:segmentation", "zerocopy"),
        ("veth", "write"),
    ] {
        let network: GuestNetwork = network.parse().unwrap();
        let job = GuestJob {
            command: command(&["send", "10.0.0.2", "5001", call, "65536"]),
            background: vec![command(&["receive", "5001", "/tmp/ready"])],
            awaited: vec![AwaitedFile { path: "/tmp/ready".into(), text: None }],
            folder: "/".into(),
            files: vec![shared(&program, "/transfer")],
            ..GuestJob::default()
        };
        let hardware = GuestHardware { memory: 256 << 20, processors: 1, disk: 0, network: Some(network) };
        let machine = VirtualMachine::new(&kernel, &job, hardware).unwrap();
        let result = machine.record(&mut |_, _| {}).unwrap();
        let output = String::from_utf8_lossy(&result.output);
        assert!(
            result.status == 0 && output.contains("part 1: 1000000 bytes right"),
            "{network:?} {result:?}"
        );
        // Data that are not copied for the card are copied for the other end of a pair without cards.
        assert!(call != "zerocopy" || output.contains("; 0 of "), "{output}");
        let programs = vec![program.clone(), kernel.init.clone()];
        let images =
            GuestImages { kernel: kernel.image.clone(), palcode: machine.palcode().clone(), programs };
        let traces = replay_twice(&machine, &images, folder.path(), &plan);
        assert!(traces[0].1.instructions > 1_000_000, "{network:?} {:?}", traces[0].1);
        assert!(traces[0].0 == traces[1].0, "{network:?}");
    }
}
