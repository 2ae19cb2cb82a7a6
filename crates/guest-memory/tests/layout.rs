//! A guest with pages of 4 KiB and an address space that is smaller than the window.

use pathlength_guest_memory::{Layout, Memory, RegionBacking, SEGV_MAPERR, WINDOW};

const PAGE: u64 = 4096;
const LARGE_PAGE: u64 = 1 << 21;
const LAYOUT: Layout = Layout {
    page: PAGE,
    bytes: 1 << 38,
    map_base: (1 << 38) - 4 * PAGE,
    large_page: LARGE_PAGE,
    large_base: 1 << 38,
};
const PROTECTION: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn map(memory: &Memory, start: u64, bytes: u64) -> Option<i32> {
    let mapped = memory.map_anonymous(start, bytes, PROTECTION, false, RegionBacking::Anonymous);
    mapped.err().map(|error| error.raw_os_error().expect("the host's error"))
}

#[test]
fn pages_and_the_end_of_the_address_space_are_the_layouts() {
    let memory = Memory::new(LAYOUT).expect("address space");
    let last = LAYOUT.bytes - PAGE;
    assert_eq!(map(&memory, last, PAGE), None);
    assert_eq!(memory.store::<8>(last, 7), Ok(()));
    // Beyond the end, across it, in the rest of the window; and a part of a page.
    for (start, bytes) in [(LAYOUT.bytes, PAGE), (last, 2 * PAGE), (WINDOW - PAGE, PAGE), (last, PAGE / 2)] {
        assert_eq!(map(&memory, start, bytes), Some(libc::EINVAL), "{start:#x}");
    }
    assert!(memory.is_free(last - PAGE, PAGE) && !memory.is_free(LAYOUT.bytes, PAGE));
    for address in [LAYOUT.bytes, WINDOW - 8, WINDOW, u64::MAX] {
        let fault = memory.load::<8>(address).expect_err("nothing is there");
        assert_eq!((fault.address, fault.code), (address, SEGV_MAPERR));
    }
    assert_eq!(memory.load::<8>(last), Ok(7));
}

#[test]
fn free_ranges_are_found_from_the_base_to_the_end() {
    let memory = Memory::new(LAYOUT).expect("address space");
    let mut found = Vec::new();
    while let Some(start) = memory.find_free(0, PAGE) {
        assert_eq!(map(&memory, start, PAGE), None);
        found.push(start);
    }
    assert_eq!(found, [4, 3, 2, 1].map(|pages| LAYOUT.bytes - pages * PAGE));
    // A hint is taken if it is the start of a page.
    let hint = 1 << 30;
    assert_eq!(memory.find_free(hint + PAGE / 2, PAGE), None);
    assert_eq!(memory.find_free(hint, PAGE), Some(hint));
}

#[test]
fn memory_in_large_pages_lies_apart() {
    let large_base = LAYOUT.bytes - 4 * LARGE_PAGE;
    let memory =
        Memory::new(Layout { map_base: large_base - 2 * PAGE, large_base, ..LAYOUT }).expect("address space");
    let found =
        |start: Option<u64>, bytes| start.inspect(|&start| assert_eq!(map(&memory, start, bytes), None));
    assert_eq!(found(memory.find_free_large(LARGE_PAGE), LARGE_PAGE), Some(large_base));
    // After a part of a large page, which is mapped otherwise, comes the next whole one.
    assert_eq!(map(&memory, large_base + LARGE_PAGE, PAGE), None);
    let two = 2 * LARGE_PAGE;
    assert_eq!(found(memory.find_free_large(two), two), Some(large_base + two));
    assert_eq!(memory.find_free_large(LARGE_PAGE), None);
    // Other memory does not go there.
    assert_eq!(found(memory.find_free(0, 2 * PAGE), 2 * PAGE), Some(large_base - 2 * PAGE));
    assert_eq!(memory.find_free(0, PAGE), None);
}

#[test]
#[should_panic(expected = "Layout")]
fn an_address_space_beyond_the_window_is_refused() {
    let _ = Memory::new(Layout { bytes: 2 * WINDOW, ..LAYOUT });
}
