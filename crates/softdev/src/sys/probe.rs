//! Whether the program's memory could be pinned: the check of an adapter's driver when it registers
//! memory.
//!
//! The device pins nothing, but it makes the pages present as pinning does. A registration of
//! memory that does not exist, or must not be written, therefore fails as on an adapter, instead of
//! killing the program at the first access.

use std::fs;
use std::sync::OnceLock;

/// Whether all pages of these bytes exist, and may be written if `to_write` is set. The pages are
/// then present.
pub(crate) fn can_be_pinned(addr: u64, length: u64, to_write: bool) -> bool {
    let page = page_size() as u64;
    let start = addr / page * page;
    let Some(end) = addr.checked_add(length).and_then(|end| end.checked_next_multiple_of(page)) else {
        return false;
    };
    if has_populate() {
        return populate(start, end - start, to_write);
    }
    fs::read_to_string("/proc/self/maps").is_ok_and(|maps| is_mapped(&maps, start, end, to_write))
}

/// Returns the bytes of memory of this machine: no more can be pinned, and a request for more would
/// exhaust the memory.
pub(crate) fn memory_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram.saturating_mul(u64::from(system.mem_unit))
}

/// Returns the page size in bytes. (rustix's function reads the auxiliary vector, which is wrong
/// under valgrind.)
fn page_size() -> usize {
    // SAFETY: the call reads no memory of the program.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Asks the kernel to fault pages in (madvise(2)); returns whether all of them exist. Mappings of
/// devices do not count.
fn populate(start: u64, length: u64, to_write: bool) -> bool {
    let advice = if to_write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    // SAFETY: this advice changes no byte, whatever the range is.
    unsafe { libc::madvise(start as *mut libc::c_void, length as usize, advice) == 0 }
}

/// Whether the kernel knows this advice (Linux 5.14): for an existing page, it refuses the advice
/// only if it does not know it.
fn has_populate() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let page = page_size() as u64;
        let there = (&raw const HAS).addr() as u64 / page * page;
        populate(there, page, false)
    })
}

/// Whether a list of mappings (proc_pid_maps(5)), which is in the order of addresses, allows
/// reading, or reading and writing, a whole range. It does not tell whether the file of a mapping
/// is long enough.
fn is_mapped(maps: &str, start: u64, end: u64, to_write: bool) -> bool {
    let needs: &[u8] = if to_write { b"rw" } else { b"r" };
    let mut reached = start;
    for line in maps.lines() {
        let Some((from, until, rights)) = mapping(line) else { continue };
        if until <= reached || from >= end {
            continue;
        }
        if from > reached || !rights.as_bytes().starts_with(needs) {
            return false;
        }
        reached = until;
    }
    reached >= end
}

/// Returns the start, the end and the rights of a line of that list.
fn mapping(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (from, until) = words.next()?.split_once('-')?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    Some((address(from)?, address(until)?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps `count` pages with these rights.
    fn pages(count: usize, protection: i32) -> u64 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
        let addr = unsafe { libc::mmap(std::ptr::null_mut(), count * page_size(), protection, flags, -1, 0) };
        assert!(addr != libc::MAP_FAILED);
        addr as u64
    }

    fn unmap(addr: u64, count: usize) {
        // SAFETY: `pages` made the range, and nothing refers to it.
        unsafe { libc::munmap(addr as *mut libc::c_void, count * page_size()) };
    }

    /// Checks by the advice, and as on a kernel without it.
    fn both(addr: u64, length: u64, to_write: bool) -> bool {
        let page = page_size() as u64;
        let start = addr / page * page;
        let end = (addr + length).next_multiple_of(page);
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let found = is_mapped(&maps, start, end, to_write);
        assert_eq!(can_be_pinned(addr, length, to_write), found, "{addr:#x} and {length} B");
        found
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_could_be_pinned_is_what_may_be_read_or_written() {
        let page = page_size() as u64;
        let [none, read, write] =
            [libc::PROT_NONE, libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE].map(|p| pages(4, p));
        for (addr, readable, writable) in
            [(none, false, false), (read, true, false), (write, true, true), (page, false, false)]
        {
            for (from, length) in [(0, 1), (100, 4000), (4 * page - 1, 1), (page - 1, 2), (0, 4 * page)] {
                assert_eq!(both(addr + from, length, false), readable, "{from} {length}");
                assert_eq!(both(addr + from, length, true), writable, "{from} {length}");
            }
        }
        unmap(write + page, 1);
        assert!(both(write, page, true) && both(write + 2 * page, 2 * page, true));
        assert!(
            !both(write, page + 1, true) && !both(write, 4 * page, false) && !both(write + page, 1, false)
        );
        for addr in [none, read, write] {
            unmap(addr, 4);
        }
        assert!(!can_be_pinned(u64::MAX - 1, 1, false) && !can_be_pinned(u64::MAX, 9, true));
    }

    #[test]
    fn lines_that_touch_make_one_range() {
        let maps = "1000-3000 rw-p 00000000 00:00 0 \n3000-4000 r--p 00000000 fe:01 7  /lib/a b\n\
                    5000-6000 rw-s 00000000 00:01 9  /memfd:x\nffffffffff600000-ffffffffff601000 --xp 0 0 0 [vsyscall]\n";
        assert!(is_mapped(maps, 0x1000, 0x4000, false) && is_mapped(maps, 0x2000, 0x3000, true));
        assert!(!is_mapped(maps, 0x1000, 0x4000, true) && !is_mapped(maps, 0x3000, 0x6000, false));
        assert!(!is_mapped(maps, 0, 0x2000, false) && !is_mapped(maps, 0x5000, 0x7000, true));
        assert!(!is_mapped(maps, 0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_1000, false));
        assert!(!is_mapped("", 0x1000, 0x2000, false));
    }
}
