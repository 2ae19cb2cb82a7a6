//! The guest itself, whose kernel takes minutes to build: `make system-check` does it.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::Command;

use engine::Plan;
use pathlength_system::job::{GuestCommand, GuestJob, SharedFile};
use pathlength_system::kernel::{self, KernelConfiguration};
use pathlength_system::machine::{GuestHardware, ReportedAccesses, VirtualMachine};
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

fn built() -> kernel::GuestKernel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    kernel::build(&folder, None, KernelConfiguration::default(), &|step| eprintln!("{step:?}")).unwrap()
}

#[test]
#[ignore = "builds a kernel: make system-check"]
fn guest_replays_are_identical() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&source, PROGRAM).unwrap();
    let compiled =
        Command::new("alpha-linux-gnu-gcc").arg("-O1").arg(&source).arg("-o").arg(&program).status();
    assert!(compiled.unwrap().success());
    let shared = |host: &Path, guest: &str| SharedFile { host: host.into(), guest: guest.into() };
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
    let kernel = built();
    let hardware = GuestHardware { memory: 256 << 20, processors: 1, disk: 0 };
    let machine = VirtualMachine::new(&kernel, &job, hardware).unwrap();
    let result = machine.record(&mut |_, _| {}).unwrap();
    assert_eq!((result.status, result.output.as_slice(), result.errors.len()), (5 << 8, &b"done\n"[..], 0));
    let lines: String = (0..1000).map(|line| format!("{line}\n")).collect();
    assert_eq!(result.files, [Some(lines.into_bytes()), None]);
    let mut programs = vec![program, kernel.init.clone()];
    programs.extend(libraries);
    let images = GuestImages { kernel: kernel.image.clone(), palcode: machine.palcode().clone(), programs };
    let code = &machine.palcode().code;
    let header = Header {
        instruction_set: INSTRUCTION_SET.into(),
        palcode: Some((code.start, code.end)),
        ..Header::default()
    };
    let traces = ["first", "second"].map(|name| {
        let path = folder.path().join(name);
        let _new = File::create(&path).unwrap();
        let open = |_| Writer::new(OpenOptions::new().append(true).open(&path)?, &header);
        let converted = machine
            .replay(ReportedAccesses::All, |stream| convert(stream, &images, &Plan::default(), open))
            .unwrap();
        assert_eq!(converted.unexplained, 0, "{converted:?}");
        assert!(converted.instructions > 10_000_000, "{converted:?}");
        (fs::read(&path).unwrap(), converted)
    });
    assert!(traces[0].0 == traces[1].0);
    let path = folder.path().join("counts");
    let _new = File::create(&path).unwrap();
    let open = |_| Writer::new(OpenOptions::new().append(true).open(&path)?, &header);
    let reported = ReportedAccesses::NumberBut(exact_blocks(&kernel.image).unwrap());
    let counted = machine.replay(reported, |stream| count(stream, &images, open)).unwrap();
    assert_eq!(Converted { times: Default::default(), ..counted }, traces[0].1);
}
