//! Commands and programs that are killed at any moment, and many at once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use vlm::{Access, Allocation, Registry, Section, Size, usage};

use crate::guard::{Guard, guard_or_skip};
use crate::sections::fill;

/// Whether pool and mounts agree, with no command running.
fn assert_consistent(guard: &Guard) {
    // The next command repairs what a killed one left.
    guard.said(&["apply", "--dry-run"]);
    let registry = guard.registry();
    let mounts: Vec<_> = vlm::Mount::all()
        .unwrap()
        .into_iter()
        .filter(|mount| mount.point.starts_with(&registry.mounts))
        .collect();
    let pages: u64 = mounts.iter().map(|mount| mount.reserve.bytes() / mount.page_size.bytes()).sum();
    let counts = guard.counts();
    assert_eq!(counts.total, guard.before().total + pages, "{mounts:?}");
    assert_eq!((counts.surplus, counts.free >= counts.reserved), (0, true));
    for mount in &mounts {
        let name = mount.point.file_name().unwrap().to_str().unwrap();
        let usage = usage(&registry, name).unwrap();
        assert_eq!((usage.is_in_use, usage.available), (false, mount.size), "{name}");
    }
    assert!(!registry.path().with_file_name(".vlm-").exists());
}

fn kill(mut child: Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn commands_killed_at_each_moment_lose_nothing() {
    let guard = guard_or_skip!();
    guard.add("orders", Size::mib(32), Allocation::Alloc);
    guard.add("items", Size::mib(8), Allocation::Fluid);
    let (mut done, mut interrupted) = (0, 0);
    for step in 0..testing::sample(60, 600) {
        let arguments: &[&str] = if step % 2 == 0 { &["apply"] } else { &["free", "--all"] };
        let mut child = guard.command(arguments).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(step * 997 % 24_000));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                done += 1;
            }
            None => interrupted += 1,
        }
        kill(child);
        assert_consistent(&guard);
    }
    assert!(interrupted > 5 && done + interrupted > 50, "{done} done, {interrupted} interrupted");
    guard.said(&["apply"]);
    guard.said(&["check"]);
}

#[test]
fn the_memory_of_a_killed_program_returns() {
    let guard = guard_or_skip!();
    let registry = guard.reserve("orders", Size::mib(16), Allocation::Alloc);
    for _ in 0..3 {
        let section = Section::create(&registry, "orders").unwrap();
        let mut user =
            guard.command(&["touch", "orders"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(user.stdout.take().unwrap()).read_line(&mut line).unwrap();
        drop(section);
        assert!(usage(&registry, "orders").unwrap().is_in_use);
        assert!(guard.said(&["list", "--format", "csv"]).contains(",0 B,1\n"), "one process uses it");
        kill(user);
        assert_eq!(usage(&registry, "orders").unwrap().available, Size::mib(16));
    }
}

/// The work of a racing process: any call at all, with any outcome but a signal.
fn act(guard: &Guard, registry: &Registry, random: &mut fastrand::Rng) {
    let name = *random.choice(&["orders", "items"]).unwrap();
    match random.u8(0..8) {
        0 => drop(guard.vlm(&["apply"])),
        1 => drop(guard.vlm(&["free", name])),
        2 => {
            let allocation = *random.choice(&["alloc", "fluid"]).unwrap();
            drop(guard.vlm(&["modify", name, "--allocation", allocation]));
        }
        3 => drop(Section::delete(registry, name)),
        4 => kill(guard.command(&["apply"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()),
        5 => {
            let child =
                guard.command(&["free", name]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.u64(0..8_000)));
            kill(child);
        }
        6 => {
            let mut command = guard.command(&["touch", name]);
            let child =
                command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.u64(0..8_000)));
            kill(child);
        }
        _ => {
            if let Ok(mapping) =
                Section::open_or_create(registry, name).and_then(|section| section.map(Access::ReadWrite))
            {
                fill(&mapping, random.u8(..));
            }
        }
    }
}

#[test]
fn random_calls_of_racing_processes_leave_all_consistent() {
    let guard = guard_or_skip!();
    guard.add("orders", Size::mib(16), Allocation::Alloc);
    guard.add("items", Size::mib(8), Allocation::Fluid);
    let registry = guard.registry();
    let mut seed = 1;
    for round in 0..testing::sample(10, 100) {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                seed += 1;
                let (guard, registry) = (&guard, &registry);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    (0..10).for_each(|_| act(guard, registry, &mut random));
                });
            }
        });
        assert_consistent(&guard);
        assert_eq!(guard.registry().entries.len(), 2, "round {round}");
    }
}
