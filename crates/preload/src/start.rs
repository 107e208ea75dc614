//! The initialisation of the library, in the thread that loads it.

use crate::{asked, files, listing, lookup, manager, opening};

#[used]
#[unsafe(link_section = ".init_array")]
static GET_READY: extern "C" fn() = get_ready;

extern "C" fn get_ready() {
    if !find_next().is_empty() {
        // On a C library without the old names, the program must not find this lookup's error in
        // place of its own.
        // SAFETY: dlerror has no preconditions.
        unsafe { libc::dlerror() };
    }
    asked::set_ready();
}

/// Looks up all next functions now, because a later lookup would take the dynamic linker's lock.
/// Returns the names that were not found.
fn find_next() -> Vec<&'static str> {
    let all = [
        lookup::find_all(),
        files::find_next(),
        opening::find_next(),
        listing::find_next(),
        manager::find_next(),
    ];
    all.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_next_functions_are_found_when_the_library_is_loaded() {
        assert_eq!(find_next(), Vec::<&str>::new());
    }
}
