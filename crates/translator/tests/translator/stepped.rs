//! The oracle: a program is executed by single steps under ptrace, and the address of each step is counted.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The personality of programs whose addresses are not randomized.
const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;

/// How often each address was executed, and the status of the program's end, as `waitpid` gives it.
pub struct SteppedRun {
    pub executions: HashMap<u64, u64>,
    pub status: i32,
}

/// Steps through a program without variables. A string instruction that repeats is one instruction.
pub fn step(path: &Path, arguments: &[&str]) -> SteppedRun {
    let words: Vec<CString> = std::iter::once(path.as_os_str().as_bytes())
        .chain(arguments.iter().map(|word| word.as_bytes()))
        .map(|word| CString::new(word).unwrap())
        .collect();
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let environment = [std::ptr::null()];
    // SAFETY: the child only makes system calls.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: arrays that end with null pointers.
        unsafe {
            libc::personality(ADDR_NO_RANDOMIZE);
            let output = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
            libc::dup2(output, 1);
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::execve(pointers[0], pointers.as_ptr(), environment.as_ptr());
            libc::_exit(127);
        }
    }
    let (mut executions, mut status, mut last) = (HashMap::new(), 0, 0);
    loop {
        // SAFETY: the child is this process's.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        if !libc::WIFSTOPPED(status) {
            return SteppedRun { executions, status };
        }
        // SAFETY: the structure is filled by the kernel; the child is stopped.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers) }, 0);
        let signal = libc::WSTOPSIG(status);
        let pass = if signal == libc::SIGTRAP { 0 } else { signal };
        if pass == 0 {
            // The instruction at this address is executed next.
            // SAFETY: reads the memory of the stopped child.
            let code = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, child, registers.rip, 0) } as u64;
            let repeats = matches!(code as u8, 0xf2 | 0xf3) && is_string(code >> 8);
            if !(repeats && last == registers.rip) {
                *executions.entry(registers.rip).or_insert(0) += 1;
            }
            last = registers.rip;
        } else {
            // The instruction at this address was not executed, or its execution is counted by the stop before.
            *executions.get_mut(&registers.rip).unwrap() -= 1;
        }
        // SAFETY: the child is stopped.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, pass) };
    }
}

fn is_string(code: u64) -> bool {
    let opcode = if (0x40..0x50).contains(&(code as u8)) { code >> 8 } else { code } as u8;
    matches!(opcode, 0xa4..=0xa7 | 0xaa..=0xaf)
}
