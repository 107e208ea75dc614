//! Listing directories of the tree.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{dirent64 as Entry, size_t};

use crate::asked::{Path, fail, node};
use crate::next::next_functions;
use crate::refused::fail as none;
use softdev::tree::Node;

pub(crate) type Stream = *mut libc::DIR;
pub(crate) type Filter = Option<unsafe extern "C" fn(*const Entry) -> c_int>;
pub(crate) type Order = Option<unsafe extern "C" fn(*mut *const Entry, *mut *const Entry) -> c_int>;
pub(crate) type List = *mut *mut *mut Entry;

next_functions! {
    opendir(path: Path) -> Stream;
    readdir(stream: Stream) -> *mut Entry;
    readdir64(stream: Stream) -> *mut Entry;
    readdir_r(stream: Stream, to: *mut Entry, found: *mut *mut Entry) -> c_int;
    readdir64_r(stream: Stream, to: *mut Entry, found: *mut *mut Entry) -> c_int;
    closedir(stream: Stream) -> c_int;
    rewinddir(stream: Stream) -> ();
    telldir(stream: Stream) -> c_long;
    seekdir(stream: Stream, place: c_long) -> ();
    dirfd(stream: Stream) -> c_int;
    scandir(path: Path, list: List, filter: Filter, order: Order) -> c_int;
    scandir64(path: Path, list: List, filter: Filter, order: Order) -> c_int;
}

/// A directory that is being listed. Its address is the program's stream.
struct Listing {
    entries: Vec<Entry>,
    next: usize,
}

/// The addresses of this library's streams, and their number: a program that lists nothing of the
/// tree takes no lock.
static OURS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn ours() -> MutexGuard<'static, Vec<usize>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the listing of a stream, if the stream belongs to this library.
///
/// # Safety
/// The stream is open, and used by one thread at a time, as readdir(3) requires.
unsafe fn listing<'a>(stream: Stream) -> Option<&'a mut Listing> {
    if COUNT.load(Relaxed) == 0 || !ours().contains(&stream.addr()) {
        return None;
    }
    // SAFETY: it is the address of a listing, which is freed only when its stream is closed.
    Some(unsafe { &mut *stream.cast::<Listing>() })
}

pub(crate) unsafe fn opendir(path: Path) -> Stream {
    // SAFETY: the caller keeps the contract of the function of this name.
    let names = match unsafe { node(path) } {
        Some(Node::Directory(names)) => names,
        // SAFETY: as above.
        None => return unsafe { next::opendir(path) },
        Some(_) => {
            return none(libc::ENOTDIR);
        }
    };
    // SAFETY: as above; the path is a string.
    let entries = unsafe { entries(path, &names) };
    let stream: Stream = Box::into_raw(Box::new(Listing { entries, next: 0 })).cast();
    ours().push(stream.addr());
    COUNT.fetch_add(1, Relaxed);
    stream
}

pub(crate) unsafe fn readdir(stream: Stream) -> *mut Entry {
    // SAFETY: the caller keeps the contract of the function of this name.
    match unsafe { listing(stream) } {
        Some(listing) => listing.take(),
        // SAFETY: as above.
        None => unsafe { next::readdir(stream) },
    }
}

pub(crate) unsafe fn readdir64(stream: Stream) -> *mut Entry {
    // SAFETY: as for `readdir`.
    match unsafe { listing(stream) } {
        Some(listing) => listing.take(),
        // SAFETY: as above.
        None => unsafe { next::readdir64(stream) },
    }
}

pub(crate) unsafe fn readdir_r(stream: Stream, to: *mut Entry, found: *mut *mut Entry) -> c_int {
    // SAFETY: as for `readdir`.
    unsafe { copied(stream, to, found).unwrap_or_else(|| next::readdir_r(stream, to, found)) }
}

pub(crate) unsafe fn readdir64_r(stream: Stream, to: *mut Entry, found: *mut *mut Entry) -> c_int {
    // SAFETY: as for `readdir`.
    unsafe { copied(stream, to, found).unwrap_or_else(|| next::readdir64_r(stream, to, found)) }
}

/// readdir_r(3) of a listing.
///
/// # Safety
/// The contract of that function.
unsafe fn copied(stream: Stream, to: *mut Entry, found: *mut *mut Entry) -> Option<c_int> {
    // SAFETY: guaranteed by the caller; the entry is either null or one of the listing.
    unsafe {
        let entry = listing(stream)?.take();
        if !entry.is_null() {
            to.write(*entry);
        }
        found.write(if entry.is_null() { entry } else { to });
    }
    Some(0)
}

pub(crate) unsafe fn closedir(stream: Stream) -> c_int {
    // SAFETY: as for `readdir`.
    if unsafe { listing(stream) }.is_none() {
        // SAFETY: as above.
        return unsafe { next::closedir(stream) };
    }
    ours().retain(|address| *address != stream.addr());
    COUNT.fetch_sub(1, Relaxed);
    // SAFETY: the pointer came from `Box::into_raw`, and is no longer in the list.
    drop(unsafe { Box::from_raw(stream.cast::<Listing>()) });
    0
}

pub(crate) unsafe fn rewinddir(stream: Stream) {
    // SAFETY: as for `readdir`.
    match unsafe { listing(stream) } {
        Some(listing) => listing.next = 0,
        // SAFETY: as above.
        None => unsafe { next::rewinddir(stream) },
    }
}

pub(crate) unsafe fn telldir(stream: Stream) -> c_long {
    // SAFETY: as for `readdir`.
    match unsafe { listing(stream) } {
        Some(listing) => listing.next as c_long,
        // SAFETY: as above.
        None => unsafe { next::telldir(stream) },
    }
}

pub(crate) unsafe fn seekdir(stream: Stream, place: c_long) {
    // SAFETY: as for `readdir`.
    match unsafe { listing(stream) } {
        Some(listing) => listing.next = usize::try_from(place).unwrap_or(0),
        // SAFETY: as above.
        None => unsafe { next::seekdir(stream, place) },
    }
}

/// A listing has no descriptor.
pub(crate) unsafe fn dirfd(stream: Stream) -> c_int {
    // SAFETY: as for `readdir`.
    if unsafe { listing(stream) }.is_some() {
        return fail(libc::ENOTSUP);
    }
    // SAFETY: as above.
    unsafe { next::dirfd(stream) }
}

pub(crate) unsafe fn scandir(path: Path, list: List, filter: Filter, order: Order) -> c_int {
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe { scanned(path, list, filter, order).unwrap_or_else(|| next::scandir(path, list, filter, order)) }
}

pub(crate) unsafe fn scandir64(path: Path, list: List, filter: Filter, order: Order) -> c_int {
    // SAFETY: as for `scandir`.
    unsafe {
        scanned(path, list, filter, order).unwrap_or_else(|| next::scandir64(path, list, filter, order))
    }
}

impl Listing {
    fn take(&mut self) -> *mut Entry {
        let Some(entry) = self.entries.get_mut(self.next) else { return std::ptr::null_mut() };
        self.next += 1;
        entry
    }
}

/// Returns the entries of a directory, including `.` and `..`.
///
/// # Safety
/// The path is a string.
unsafe fn entries(path: Path, names: &[String]) -> Vec<Entry> {
    // SAFETY: guaranteed by the caller.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let kind = |name: &str| match softdev::tree::node(&[path, b"/", name.as_bytes()].concat()) {
        Some(Node::Directory(_)) | None => libc::DT_DIR,
        Some(Node::File(_)) => libc::DT_REG,
        Some(Node::Device(_) | Node::Manager) => libc::DT_CHR,
    };
    let all = [".", ".."].into_iter().chain(names.iter().map(String::as_str));
    let entry = |(place, name): (usize, &str)| {
        // SAFETY: all-zero bytes are a valid entry: integers.
        let mut entry: Entry = unsafe { std::mem::zeroed() };
        entry.d_ino = place as u64 + 1;
        entry.d_off = place as i64 + 1;
        entry.d_reclen = size_of::<Entry>() as u16;
        entry.d_type = kind(name);
        for (to, from) in entry.d_name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        entry
    };
    all.enumerate().map(entry).collect()
}

/// scandir(3) of a directory of the tree: the caller frees the entries and their list.
///
/// # Safety
/// The contract of that function.
unsafe fn scanned(path: Path, list: List, filter: Filter, order: Order) -> Option<c_int> {
    // SAFETY: guaranteed by the caller.
    let Some(Node::Directory(names)) = (unsafe { node(path) }) else { return None };
    // SAFETY: as above.
    let entries = unsafe { entries(path, &names) };
    // SAFETY: the filter accepts an entry.
    let is_wanted =
        |entry: &&Entry| filter.is_none_or(|filter| unsafe { filter(std::ptr::from_ref(*entry)) } != 0);
    let wanted: Vec<&Entry> = entries.iter().filter(is_wanted).collect();
    // SAFETY: there is memory for all pointers, and for an entry each, which are written before
    // they are read; the caller has space for the list.
    unsafe {
        let made: *mut *mut Entry = libc::malloc(size_of::<*mut Entry>() * wanted.len().max(1)).cast();
        if made.is_null() {
            return Some(-1);
        }
        for (place, entry) in wanted.iter().enumerate() {
            let copy: *mut Entry = libc::malloc(size_of::<Entry>()).cast();
            if copy.is_null() {
                return Some(-1);
            }
            copy.write(**entry);
            made.add(place).write(copy);
        }
        if let Some(order) = order {
            type Compare = unsafe extern "C" fn(*const c_void, *const c_void) -> c_int;
            let order: Compare = std::mem::transmute(order);
            let width: size_t = size_of::<*mut Entry>();
            libc::qsort(made.cast(), wanted.len(), width, Some(order));
        }
        list.write(made);
    }
    c_int::try_from(wanted.len()).ok()
}
