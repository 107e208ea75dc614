//! The library that is put in front of a program's libibverbs, so that the program finds the
//! software device.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::failure::Usage;

/// The variable that names libraries to be put in front (ld.so(8)).
pub(crate) const VARIABLE: &str = "LD_PRELOAD";

/// The value of that variable: the library in front of what this process has there.
///
/// # Errors
/// If the library is not found, or its path cannot be preloaded.
pub(crate) fn value() -> anyhow::Result<OsString> {
    let library = find_library(env::var_os("RDMASCOPE_PRELOAD"), &env::current_exe()?)?;
    in_front(&library, env::var_os(VARIABLE))
}

/// File name of the library, `rdmascope_preload::LIBRARY`. That crate is built with this program
/// but must not be linked into it, hence not named: it defines functions of libc.
const LIBRARY: &str = "librdmascope_preload.so";

/// Finds the library: where it was said to be; where cargo puts it, which builds it with this
/// program; beside the program; or where a package puts it.
fn find_library(said: Option<OsString>, program: &Path) -> anyhow::Result<PathBuf> {
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        let path = PathBuf::from(said);
        if !path.is_file() {
            let sentence =
                format!("RDMASCOPE_PRELOAD: {} is no file: it must be a {LIBRARY}", path.display());
            return Err(Usage(sentence).into());
        }
        return Ok(fs::canonicalize(&path)?);
    }
    let directory = program.parent().unwrap_or(Path::new("/"));
    let places = [directory.join("deps"), directory.to_owned(), directory.join("../lib/rdmascope")];
    let found = places.iter().map(|place| place.join(LIBRARY)).find(|path| path.is_file());
    let found = found.with_context(|| {
        format!(
            "{LIBRARY} is neither beside {} nor in ../lib/rdmascope: copy it there from target/release/deps, where \
             `cargo build --release` puts it, or name it in RDMASCOPE_PRELOAD",
            program.display()
        )
    })?;
    Ok(fs::canonicalize(found)?)
}

/// The value of `LD_PRELOAD`: the library in front of what is there already (ld.so(8)).
fn in_front(library: &Path, existing: Option<OsString>) -> anyhow::Result<OsString> {
    let is_separator = |byte: &u8| b" :".contains(byte);
    if library.as_os_str().as_bytes().iter().any(is_separator) {
        bail!(
            "{}: a path with a space or a colon cannot be preloaded: move the library and name it in RDMASCOPE_PRELOAD",
            library.display()
        );
    }
    let mut value = library.as_os_str().to_owned();
    for other in existing.unwrap_or_default().as_bytes().split(is_separator) {
        if !other.is_empty() && other != library.as_os_str().as_bytes() {
            value.push(":");
            value.push(OsStr::from_bytes(other));
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once() {
        let library = Path::new("/lib/ours.so");
        let value = |existing: &str| in_front(library, Some(existing.into())).unwrap();
        assert_eq!(in_front(library, None).unwrap(), "/lib/ours.so");
        assert_eq!(value("a.so b.so"), "/lib/ours.so:a.so:b.so");
        assert_eq!(value("a.so:/lib/ours.so"), "/lib/ours.so:a.so");
        assert!(in_front(Path::new("/my lib/ours.so"), None).unwrap_err().to_string().contains("space"));
    }
}
