//! Counts are exact: every call of a function in every thread is counted, with the same length as in a program with
//! one thread; and instructions that a signal prevents are not counted.

mod guest;

use events::{Counts, Unit};
use guest::Guest;
use pathlength_engine::{ProgramEnd, UnitCounter, UnitOfWork};

/// In [`THREADS`], `work(n)` takes a number of steps that depends on n; thread i makes 50 calls of `work(i)`.
const THREADS: &str = r#"
long __attribute__((noinline)) work(long n) {
    long sum = 0;
    for (long i = 0; i < 100 * (n + 1); i++) __asm__ volatile("addq %0, %1, %0" : "+r"(sum) : "r"(i));
    return sum;
}
void *__attribute__((noinline)) body(void *number) {
    long sum = 0;
    for (int i = 0; i < 50; i++) sum += work((long)number);
    return (void *)sum;
}
"#;

fn count(guest: &Guest, arguments: &[&str]) -> (Vec<Unit>, Counts) {
    let mut process = guest.process(arguments);
    let mut units = Vec::new();
    let work = UnitOfWork { functions: vec!["work".into()], gauges: vec![], ..UnitOfWork::default() };
    let sink = |_, _: Option<&str>, unit| {
        units.push(unit);
        true
    };
    let mut counter = UnitCounter::new(work, Box::new(sink));
    assert!(matches!(process.run(&mut counter), Ok(ProgramEnd::Exited(0))));
    let counts = counter.total.counts();
    drop(counter);
    (units, counts)
}

/// Instructions executed in the program itself, except those that start its threads and wait for them: instructions
/// between the first and the last address of the units' blocks.
fn in_work(units: &[Unit], counts: &Counts) -> u64 {
    let block = |id: u32| &counts.blocks[id as usize];
    let ids = || units.iter().flat_map(|unit| &unit.blocks).map(|(id, _)| *id);
    let (low, high) = (ids().map(|id| block(id).address).min(), ids().map(|id| block(id).address).max());
    let within = low.unwrap()..=high.unwrap();
    let all = counts.blocks.iter().zip(&counts.executions);
    all.filter(|(block, _)| within.contains(&block.address))
        .map(|(block, n)| block.words.len() as u64 * n)
        .sum()
}

/// Instructions of the blocks that were executed in a unit.
fn in_blocks(unit: &Unit, counts: &Counts) -> u64 {
    unit.blocks.iter().map(|(id, n)| counts.blocks[*id as usize].words.len() as u64 * n).sum()
}

#[test]
fn every_call_in_every_thread_is_counted() {
    const NUMBER: usize = 12;
    let guest = Guest::with_threads(THREADS, &["-O2"]);
    let number = NUMBER.to_string();
    let (mut one, one_counts) = count(&guest, &[&number]);
    let (mut several, several_counts) = count(&guest, &[&number, "threads"]);
    assert_eq!(several.len(), 50 * NUMBER);
    // Units are numbered in the order of their beginnings, and reported in the order of their ends.
    several.sort_by_key(|unit| unit.number);
    assert!(several.iter().zip(0..).all(|(unit, number)| unit.number == number && unit.returned));
    assert_eq!(in_work(&several, &several_counts), in_work(&one, &one_counts));
    for (units, counts) in [(&several, &several_counts), (&one, &one_counts)] {
        for unit in units {
            assert_eq!(in_blocks(unit, counts), unit.instructions);
        }
    }
    one.sort_by_key(|unit| unit.instructions);
    several.sort_by_key(|unit| unit.instructions);
    let lengths = |units: &[Unit]| units.iter().map(|unit| unit.instructions).collect::<Vec<_>>();
    assert_eq!(lengths(&several), lengths(&one));
}

/// `work(n)` calls a loop that a timer interrupts, until n interrupts have occurred, which is mostly the case
/// already. So `wait_until` is compiled as a whole, and other code does not enter it at its loop.
const INTERRUPTED: &str = r#"
#include <signal.h>
#include <sys/time.h>
enum { SIGNALS = 20 };
static volatile sig_atomic_t signals;
static void tick(int signal) { signals++; }
long __attribute__((noinline)) wait_until(long until) {
    long sum = 0, i = 0;
    do {
        if (i & 3) __asm__ volatile("addq %0, %1, %0" : "+r"(sum) : "r"(i));
        else __asm__ volatile("subq %0, %1, %0" : "+r"(sum) : "r"(i));
        i++;
    } while (signals < until || i < 8);
    return sum;
}
long __attribute__((noinline)) work(long until) { return wait_until(until) + 1; }
int main(void) {
    struct itimerval often = {{0, 500}, {0, 500}}, never = {};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &often, 0);
    for (long unit = 1; unit <= 10; unit++) {
        for (int i = 0; i < 100; i++) work(0);
        work(unit * SIGNALS);
    }
    setitimer(ITIMER_REAL, &never, 0);
    return 0;
}
"#;

#[test]
fn what_signals_interrupt_is_counted_once() {
    let guest = Guest::new(INTERRUPTED, &["-O2"]);
    let (units, counts) = count(&guest, &[]);
    assert_eq!(units.len(), 1010);
    for unit in &units {
        assert_eq!(in_blocks(unit, &counts), unit.instructions);
    }
}

/// A program that ends while its timers run.
const ARMED: &str = r#"
#include <signal.h>
#include <sys/time.h>
#include <time.h>
static void tick(int signal) {}
long __attribute__((noinline)) work(long until) { return until + 1; }
int main(void) {
    struct itimerval often = {{0, 50}, {0, 50}};
    struct itimerspec seldom = {{0, 50000}, {0, 50000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    signal(SIGALRM, tick);
    signal(SIGPROF, tick);
    signal(SIGUSR1, tick);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &seldom, 0)) return 1;
    if (setitimer(ITIMER_PROF, &often, 0) || setitimer(ITIMER_REAL, &often, 0)) return 1;
    return work(0) - 1;
}
"#;

/// Their signals would end this process, which has no handlers any more.
#[test]
fn timers_end_with_their_program() {
    let guest = Guest::new(ARMED, &["-O2"]);
    let (units, _) = count(&guest, &[]);
    assert_eq!(units.len(), 1);
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_millis(100) {
        std::hint::spin_loop();
    }
}
