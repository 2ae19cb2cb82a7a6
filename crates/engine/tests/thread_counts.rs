//! Counts of a program with threads are exact: every call of a function, in whatever thread, is
//! counted, and is as long as it is in a program with one thread.

mod guest;

use guest::Guest;
use pathlength_engine::{End, UnitCounter, UnitOfWork};
use trace::{Counts, Unit};

/// `work(n)` takes a number of steps that depends on n; thread i makes 50 calls of `work(i)`.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdlib.h>
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
int main(int count, char **arguments) {
    pthread_t threads[64];
    int wanted = atoi(arguments[1]), separate = count > 2;
    for (long i = 0; i < wanted; i++)
        if (separate) pthread_create(&threads[i], NULL, body, (void *)i);
        else body((void *)i);
    for (int i = 0; separate && i < wanted; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

fn count(guest: &Guest, arguments: &[&str]) -> (Vec<Unit>, Counts) {
    let mut process = guest.process(arguments);
    let mut units = Vec::new();
    let work = UnitOfWork { function: "work".into(), gauges: vec![] };
    let sink = |unit| {
        units.push(unit);
        true
    };
    let mut counter = UnitCounter::new(work, Box::new(sink));
    assert!(matches!(process.run(&mut counter), Ok(End::Exited(0))));
    let counts = counter.total.counts(&process.cache);
    drop(counter);
    (units, counts)
}

/// Instructions executed in the program itself, without those that start its threads and wait for
/// them: what lies between the first and the last address of the units' blocks.
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

#[test]
fn every_call_in_every_thread_is_counted() {
    const THREADS: usize = 12;
    let guest = Guest::new(SOURCE, &["-O2"]);
    let number = THREADS.to_string();
    let (mut one, one_counts) = count(&guest, &[&number]);
    let (mut several, several_counts) = count(&guest, &[&number, "threads"]);
    assert_eq!(several.len(), 50 * THREADS);
    assert!(several.iter().enumerate().all(|(index, unit)| unit.number == index as u64 && unit.returned));
    assert_eq!(in_work(&several, &several_counts), in_work(&one, &one_counts));
    for (units, counts) in [(&several, &several_counts), (&one, &one_counts)] {
        for unit in units {
            let lengths =
                unit.blocks.iter().map(|(id, n)| counts.blocks[*id as usize].words.len() as u64 * n);
            assert_eq!(lengths.sum::<u64>(), unit.instructions);
        }
    }
    one.sort_by_key(|unit| unit.instructions);
    several.sort_by_key(|unit| unit.instructions);
    let lengths = |units: &[Unit]| units.iter().map(|unit| unit.instructions).collect::<Vec<_>>();
    assert_eq!(lengths(&several), lengths(&one));
}
