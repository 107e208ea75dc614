//! Symbols of loaded libraries, read from the tables of the dynamic linker (elf(5)).

use std::ffi::{CStr, c_int, c_void};

use libc::dl_phdr_info;

/// Returns the address of a function in the first of the named libraries that defines it.
pub(crate) fn function_of(libraries: &[&[u8]], name: &CStr) -> Option<*mut c_void> {
    let mut search = Search { libraries, name, found: None };
    // SAFETY: `look` receives a pointer to `search`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

struct Search<'a> {
    libraries: &'a [&'a [u8]],
    name: &'a CStr,
    found: Option<*mut c_void>,
}

/// Searches a library. Returns 1 to end the search.
unsafe extern "C" fn look(info: *mut dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: dl_iterate_phdr passes a description that is valid during this call, and the pointer
    // from `function_of`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: it is the path of a loaded library.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if search.libraries.contains(&file) {
        // SAFETY: the description belongs to a loaded library.
        search.found = unsafe { Tables::of(info) }.and_then(|tables| unsafe { tables.function(search.name) });
    }
    c_int::from(search.found.is_some())
}

/// The tables of a library that the dynamic linker uses to find symbols.
struct Tables {
    base: usize,
    symbols: *const libc::Elf64_Sym,
    strings: *const u8,
    hashes: *const u32,
}

/// An entry of the dynamic section.
#[repr(C)]
struct Entry {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
/// The type of a function in `st_info`.
const STT_FUNC: u8 = 2;

impl Tables {
    /// # Safety
    /// The library is loaded, and stays loaded.
    unsafe fn of(info: &dl_phdr_info) -> Option<Self> {
        let base = usize::try_from(info.dlpi_addr).ok()?;
        // SAFETY: the caller guarantees that the library is loaded, with its program headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let mut entry = (base + usize::try_from(dynamic.p_vaddr).ok()?) as *const Entry;
        let mut found = [None; 3];
        loop {
            // SAFETY: the section ends with DT_NULL, which ends the loop.
            let Entry { tag, value } = unsafe { entry.read() };
            // On some machines the dynamic linker has added the base to addresses, on others not.
            let address = if value < base { base + value } else { value };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => found[0] = Some(address),
                DT_STRTAB => found[1] = Some(address),
                DT_GNU_HASH => found[2] = Some(address),
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        let [Some(symbols), Some(strings), Some(hashes)] = found else { return None };
        Some(Self {
            base,
            symbols: symbols as *const _,
            strings: strings as *const _,
            hashes: hashes as *const _,
        })
    }

    /// Returns the address of a function that the library defines. `DT_GNU_HASH` has a Bloom
    /// filter, buckets, and chains of hashes; the last hash of a chain has its lowest bit set.
    ///
    /// # Safety
    /// As [`of`](Self::of).
    unsafe fn function(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the table starts with this header, which contains its size.
        unsafe {
            let buckets = self.hashes.read();
            let first = self.hashes.add(1).read();
            let filter_words = self.hashes.add(2).read() as usize;
            let bucket = self.hashes.add(4 + 2 * filter_words);
            let chain = bucket.add(buckets as usize);
            let hash = hash(name.to_bytes());
            let mut symbol = bucket.add((hash % buckets.max(1)) as usize).read();
            while symbol >= first {
                let of_symbol = chain.add((symbol - first) as usize).read();
                if of_symbol | 1 == hash | 1 {
                    let found = &*self.symbols.add(symbol as usize);
                    let is_defined = found.st_shndx != 0 && found.st_info & 0xf == STT_FUNC;
                    if is_defined && CStr::from_ptr(self.strings.add(found.st_name as usize).cast()) == name {
                        return Some((self.base + usize::try_from(found.st_value).ok()?) as *mut c_void);
                    }
                }
                if of_symbol & 1 == 1 {
                    break;
                }
                symbol += 1;
            }
        }
        None
    }
}

/// The hash of `DT_GNU_HASH`.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_c_library_are_where_the_dynamic_linker_finds_them() {
        let found = function_of(&[b"libc.so.6"], c"getpid").unwrap();
        // SAFETY: the function has this type.
        let getpid: extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
        assert_eq!(u32::try_from(getpid()), Ok(std::process::id()));
        assert_eq!(function_of(&[b"libc.so.6"], c"no_such_function"), None);
        assert_eq!(function_of(&[b"libno.so"], c"getpid"), None);
    }

    #[test]
    fn the_hash_is_that_of_the_gnu_linker() {
        assert_eq!([hash(b""), hash(b"printf"), hash(b"flapenguin.me")], [0x1505, 0x156b_2bb8, 0x8ae9_f18e]);
    }
}
