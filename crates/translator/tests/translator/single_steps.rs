//! Counts against single steps, instruction by instruction.

use std::collections::HashMap;

use events::ProcessEnd;

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
    let (stepped, run) = (step(&program, &[]), translated(&program, &[]));
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
