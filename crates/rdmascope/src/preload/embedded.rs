//! The copy of the preload library that is inside this program.

use std::arch::global_asm;
use std::ptr;

// `include_bytes!` would need the file for `cargo check`, which links no library. An assembler
// reads it only when the program is compiled in full.
global_asm!(
    ".section .rodata.rdmascope_preload, \"a\"",
    ".balign 16",
    ".globl rdmascope_preload_start",
    ".hidden rdmascope_preload_start",
    "rdmascope_preload_start:",
    concat!(".incbin \"", env!("PRELOAD_LIBRARY"), "\""),
    ".globl rdmascope_preload_end",
    ".hidden rdmascope_preload_end",
    "rdmascope_preload_end:",
    ".byte 0",
    ".previous",
    options(raw)
);

unsafe extern "C" {
    static rdmascope_preload_start: u8;
    static rdmascope_preload_end: u8;
}

/// The bytes of the library, as cargo has linked it.
pub(super) fn library() -> &'static [u8] {
    let start = &raw const rdmascope_preload_start;
    let end = &raw const rdmascope_preload_end;
    let bytes = end.addr() - start.addr();
    // SAFETY: the two labels enclose the bytes of the file in one read-only section of this
    // program, which stays mapped for as long as the process runs.
    unsafe { &*ptr::slice_from_raw_parts(start, bytes) }
}
