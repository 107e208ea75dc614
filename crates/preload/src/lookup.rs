//! Functions of libibverbs that a program looks up while it runs, by `dlopen` and `dlsym` (NCCL,
//! UCC, Python's `ctypes`).
//!
//! A lookup that finds a function of libibverbs returns this library's function instead, for every
//! version (`dlvsym(handle, name, "IBVERBS_1.1")`) and every handle. The opened library is the real
//! one, and its other functions stay its own.
//!
//! # Invariants
//!
//! * The next function does the work: the function here inspects its arguments and jumps to the
//!   next one with the original registers and stack. So libc sees the program's own call: `dlopen`
//!   searches the RUNPATH of the caller, and `dlsym(RTLD_NEXT)` starts behind the caller. Only
//!   names with a prefix of libibverbs are looked up from here.
//! * The next functions themselves are looked up by these functions: until the next `dlsym` is
//!   known, it is found in the C library's own symbol table.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::next::{Next, next_functions};
use crate::symbols;

/// The functions of libc that the library defines for lookups.
pub const LOOKUPS: &[&str] = &["dlmopen", "dlopen", "dlsym", "dlvsym"];

/// A function to jump to.
type Target = *mut c_void;
type Handle = *mut c_void;
type Name = *const c_char;

/// It is only jumped to.
static DLOPEN: Next = Next::new(c"dlopen");

next_functions! {
    dlsym(handle: Handle, name: Name) -> *mut c_void;
    dlvsym(handle: Handle, name: Name, version: Name) -> *mut c_void;
    dlmopen(namespace: c_long, file: Name, flags: c_int) -> Handle;
}

/// A function of up to three arguments that asks another function for its target and jumps there.
macro_rules! jump {
    ($name:ident($($type:ty),*) by $choose:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($(_: $type),*) -> *mut c_void {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "call {choose}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                choose = sym $choose,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(
                "stp x29, x30, [sp, #-48]!",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {choose}",
                "mov x16, x0",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48",
                "br x16",
                choose = sym $choose,
            );
            #[cfg(target_arch = "riscv64")]
            std::arch::naked_asm!(
                "addi sp, sp, -32",
                "sd ra, 24(sp)",
                "sd a0, 16(sp)",
                "sd a1, 8(sp)",
                "sd a2, 0(sp)",
                "call {choose}",
                "mv t1, a0",
                "ld a2, 0(sp)",
                "ld a1, 8(sp)",
                "ld a0, 16(sp)",
                "ld ra, 24(sp)",
                "addi sp, sp, 32",
                "jr t1",
                choose = sym $choose,
            );
        }
    };
}

jump!(dlsym(Handle, Name) by for_dlsym);
jump!(dlvsym(Handle, Name, Name) by for_dlvsym);
jump!(dlopen(Name, c_int) by for_dlopen);
jump!(dlmopen(c_long, Name, c_int) by for_dlmopen);

/// Looks up all next functions. Returns the names that were not found.
pub(crate) fn find_all() -> Vec<&'static str> {
    let mut missing = find_next();
    missing.extend((!DLOPEN.find()).then_some("dlopen"));
    missing
}

/// # Safety
/// The arguments are those of `dlsym`.
unsafe extern "C" fn for_dlsym(_: Handle, name: Name) -> Target {
    // SAFETY: the caller of `dlsym` passes a C string.
    match unsafe { our_function(name) } {
        Some(_) => verbs_by_dlsym as Target,
        None => nexts::dlsym.address(),
    }
}

/// # Safety
/// The arguments are those of `dlvsym`.
unsafe extern "C" fn for_dlvsym(_: Handle, name: Name, _: Name) -> Target {
    // SAFETY: the caller of `dlvsym` passes a C string.
    match unsafe { our_function(name) } {
        Some(_) => verbs_by_dlvsym as Target,
        None => nexts::dlvsym.address(),
    }
}

/// # Safety
/// The arguments are those of `dlopen`.
unsafe extern "C" fn for_dlopen(file: Name, flags: c_int) -> Target {
    if flags & libc::RTLD_DEEPBIND != 0 && !file.is_null() {
        // SAFETY: the caller of `dlopen` passes a C string or null.
        let file = unsafe { CStr::from_ptr(file) };
        say_once(&[file.to_bytes(), DEEPBIND]);
    }
    DLOPEN.address()
}

/// # Safety
/// The arguments are those of `dlmopen`.
unsafe extern "C" fn for_dlmopen(namespace: c_long, file: Name, _: c_int) -> Target {
    if namespace == libc::LM_ID_BASE || file.is_null() {
        return nexts::dlmopen.address();
    }
    // SAFETY: the caller of `dlmopen` passes a C string or null.
    let file = unsafe { CStr::from_ptr(file) }.to_bytes();
    if is_libibverbs(file) {
        return refused_by_dlmopen as Target;
    }
    say_once(&[file, NAMESPACE]);
    nexts::dlmopen.address()
}

/// Messages on standard error about libraries that do not call libibverbs through this library.
const DEEPBIND: &[u8] =
    b" is opened with RTLD_DEEPBIND: if it calls libibverbs, it finds the host's devices and not \
                          the software device\n";
const NAMESPACE: &[u8] =
    b" is opened in a namespace of its own (dlmopen): if it calls libibverbs, it finds the host's \
                           devices and not the software device\n";

/// Writes a message to standard error, unless one was written before.
fn say_once(parts: &[&[u8]]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Relaxed) {
        return;
    }
    let sentence = [b"rdmascope exec: ", &parts.concat()[..]].concat();
    // SAFETY: the bytes are readable. A failed write is ignored.
    unsafe { libc::write(libc::STDERR_FILENO, sentence.as_ptr().cast(), sentence.len()) };
}

/// Returns this library's function for a name of libibverbs.
///
/// # Safety
/// The name is a string or null.
unsafe fn our_function(name: Name) -> Option<Target> {
    if name.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    symbols::verb(name)
}

/// `dlsym` of a name that this library defines.
unsafe extern "C" fn verbs_by_dlsym(handle: Handle, name: Name) -> *mut c_void {
    // SAFETY: the caller keeps the contract of `dlsym`.
    unsafe { in_place_of(next::dlsym(handle, name), name) }
}

/// As [`verbs_by_dlsym`], with a version.
unsafe extern "C" fn verbs_by_dlvsym(handle: Handle, name: Name, version: Name) -> *mut c_void {
    // SAFETY: the caller keeps the contract of `dlvsym`.
    unsafe { in_place_of(next::dlvsym(handle, name, version), name) }
}

/// Opens a file that does not exist, so that `dlerror` explains why libibverbs is not opened.
unsafe extern "C" fn refused_by_dlmopen(namespace: c_long, _: Name, flags: c_int) -> Handle {
    const WHY: &CStr =
        c"libibverbs in a namespace of its own (dlmopen), in which rdmascope exec cannot reach it";
    // SAFETY: the name is a C string.
    unsafe { next::dlmopen(namespace, WHY.as_ptr(), flags) }
}

/// Returns this library's function if a function of libibverbs was found, otherwise `found`.
///
/// # Safety
/// The name is a C string.
unsafe fn in_place_of(found: *mut c_void, name: Name) -> *mut c_void {
    // SAFETY: all-zero bytes are a valid structure: addresses.
    let mut object: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr accepts any address, and there is space for the structure.
    if found.is_null() || unsafe { libc::dladdr(found, &raw mut object) } == 0 || object.dli_fname.is_null() {
        return found;
    }
    // SAFETY: it is the path of a loaded library.
    let path = unsafe { CStr::from_ptr(object.dli_fname) }.to_bytes();
    if !is_libibverbs(path) {
        return found;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { our_function(name) }.unwrap_or(found)
}

/// Whether a path is that of libibverbs.
fn is_libibverbs(path: &[u8]) -> bool {
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    file.starts_with(b"libibverbs.so")
}
