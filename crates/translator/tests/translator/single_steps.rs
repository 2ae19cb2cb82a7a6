//! Counts against single steps, instruction by instruction.

use std::collections::HashMap;

use events::ProcessEnd;
use object::Object;

use crate::stepped::step;
use crate::support::{by_address, compile, translated};

/// A program without a library, at fixed addresses.
const ALONE: [&str; 5] = ["-O1", "-static", "-nostdlib", "-fno-stack-protector", "-fno-pie"];

/// Calls, recursion, loops, tables of jumps, calls by pointers, repeated string instructions, `loop` and `jrcxz`.
const TRANSFERS: &str = r#"
static long table[64];
static unsigned char bytes[64], other[64];
__attribute__((noinline)) static long fibonacci(long n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__attribute__((noinline)) static long twice(long n) { return 2 * n; }
__attribute__((noinline)) static long choose(int n) {
    switch (n & 7) {
    case 0: return table[1]; case 1: return bytes[2]; case 2: return 7; case 3: return table[3] * 3;
    case 4: return -table[4]; case 5: return bytes[5] ^ 5; case 6: return n; default: return table[n];
    }
}
static long (*volatile functions[3])(long) = { fibonacci, twice, (long (*)(long))choose };
void _start(void) {
    for (int i = 0; i < 64; i++) table[i] = (i * 37) % 64, bytes[i] = i;
    long sum = fibonacci(10);
    for (int i = 0; i < 64; i++) sum += choose(i) + functions[i % 3](i % 9);
    void *to = other, *from = bytes;
    long count = 40, again = 5, zero = 0;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    asm volatile("1: addq $3, %1\n loop 1b" : "+c"(again), "+r"(sum));
    asm volatile("jrcxz 1f\n addq $100, %1\n 1: repe cmpsb" : "+c"(zero), "+r"(sum), "+D"(to), "+S"(from));
    // Flags live over a transfer: the carry of a comparison, read in the next block.
    asm volatile("cmpq $5, %0\n jmp 1f\n 1: adcq $0, %0\n pushfq\n popq %%rax\n addq %%rax, %0" : "+r"(sum) : : "rax", "cc");
    asm volatile("call 1f\n jmp 2f\n 1: addq $1, %0\n ret $0\n 2:" : "+r"(sum) : : "cc", "memory");
    for (int i = 0; i < 39; i++) sum += other[i];
    asm volatile("syscall" : : "a"(231), "D"(sum & 63) : "memory");
}
"#;

/// Compares all counts of a run with those of single steps, and returns the number of instructions.
fn compare(name: &str, source: &str, options: &[&str]) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), name, source, options);
    let (stepped, run) = (step(&program, &[], None), translated(&program, &[]));
    let end = match libc::WIFEXITED(stepped.status) {
        true => ProcessEnd::Exited(libc::WEXITSTATUS(stepped.status)),
        false => ProcessEnd::Killed(libc::WTERMSIG(stepped.status)),
    };
    assert_eq!(run.end, end, "{name}");
    assert_eq!(differences(&stepped.executions, &by_address(&run)), Vec::<String>::new(), "{name}");
    run.counts.instructions()
}

/// The addresses with other counts.
pub fn differences(expected: &HashMap<u64, u64>, found: &HashMap<u64, u64>) -> Vec<String> {
    let mut addresses: Vec<u64> = expected.keys().chain(found.keys()).copied().collect();
    addresses.sort_unstable();
    addresses.dedup();
    let count = |counts: &HashMap<u64, u64>, address| counts.get(&address).copied().unwrap_or(0);
    let differs = |&address: &u64| count(expected, address) != count(found, address);
    let line = |address| format!("{address:#x}: {} {}", count(expected, address), count(found, address));
    addresses.into_iter().filter(differs).map(line).collect()
}

#[test]
fn transfers_are_counted_as_single_steps_find_them() {
    assert!(compare("transfers", TRANSFERS, &ALONE) > 5_000);
}

/// A program with the C library, that ends by a fault in a block.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int count, char **words) {
    int numbers[100];
    freopen("/dev/null", "w", stdout);
    for (int i = 0; i < 100; i++) numbers[i] = i * 7919 % 101;
    qsort(numbers, 100, sizeof *numbers, compare);
    char *text = strdup("text");
    for (int i = 0; i < 5; i++) printf("%d %s\n", numbers[i], text);
    fflush(stdout);
    volatile int *nowhere = (int *)8;
    numbers[1] += numbers[2] * 3;
    return *nowhere + numbers[1];
}
"#;

/// Where Linux maps a position-independent program, without randomization, and where the translator does.
const NATIVE_BASE: u64 = 0x5555_5555_4000;
const TRANSLATED_BASE: u64 = 0x5000_0000_0000;

#[test]
fn a_dynamic_program_is_counted_as_single_steps_find_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "library", LIBRARY, &["-O2", "-pie", "-fPIE"]);
    // The dynamic linker's part takes seconds.
    let contents = std::fs::read(&program).unwrap();
    let entry = NATIVE_BASE + object::File::parse(&*contents).unwrap().entry();
    let is_whole = testing::sample(false, true);
    let stepped = step(&program, &[], Some(entry).filter(|_| !is_whole));
    let run = translated(&program, &[]);
    assert_eq!(run.end, ProcessEnd::Killed(libc::SIGSEGV));
    let of_program = |counts: &HashMap<u64, u64>, base: u64| -> HashMap<u64, u64> {
        let own = counts.iter().filter(|&(address, _)| (base..base + (1 << 20)).contains(address));
        own.map(|(&address, &count)| (address - base, count)).collect()
    };
    let found = by_address(&run);
    let expected = of_program(&stepped.executions, NATIVE_BASE);
    assert!(expected.values().sum::<u64>() > 2_000);
    assert_eq!(differences(&expected, &of_program(&found, TRANSLATED_BASE)), Vec::<String>::new());
    // The libraries see other addresses and no restartable sequences.
    let [whole, all] = [&stepped.executions, &found].map(|counts| counts.values().sum::<u64>());
    assert!(
        !is_whole || whole.abs_diff(all) * 1000 < whole,
        "{whole} instructions by single steps, {all} here"
    );
}
