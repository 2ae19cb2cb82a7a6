//! A SIGBUS or SIGSEGV that is sent to a thread is not a fault of the access that it interrupts.

use std::sync::atomic::{AtomicBool, Ordering};

use pathlength_guest_memory::{Layout, Memory, RegionBacking};

/// Kicks of the accessing thread, of which many interrupt an access.
const KICKS: u32 = 100_000;

#[test]
fn an_access_that_a_sent_signal_interrupts_completes() {
    let layout =
        Layout { page: 8192, bytes: 1 << 42, map_base: 1 << 38, large_page: 1 << 22, large_base: 1 << 41 };
    let memory = Memory::new(layout).expect("address space");
    let (page, protection) = (layout.map_base, libc::PROT_READ | libc::PROT_WRITE);
    memory.map_anonymous(page, layout.page, protection, false, RegionBacking::Anonymous).expect("a page");
    let (thread, is_done) = (host::adopt_thread(true), AtomicBool::new(false));
    let (mut accesses, mut kicks_seen) = (0_u64, 0_u32);
    std::thread::scope(|scope| {
        let is_done = &is_done;
        scope.spawn(move || {
            // SAFETY: the thread waits for the end of the scope.
            (0..KICKS).for_each(|_| unsafe { thread.kick() });
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            for _ in 0..100 {
                memory.store::<8>(page, accesses).expect("a mapped page");
                assert_eq!(memory.load::<8>(page), Ok(accesses));
                accesses += 1;
            }
            kicks_seen += u32::from(host::pending());
            host::take();
        }
    });
    assert!(kicks_seen > 0, "no kick arrived during {accesses} accesses");
}
