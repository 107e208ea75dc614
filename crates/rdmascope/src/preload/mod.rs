//! The library that is preloaded in front of a program's libibverbs, so that the program finds the
//! software device.

mod embedded;
mod extract;
mod name;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use self::name::{LIBRARY, can_be_preloaded, is_separator};
use crate::failure::Usage;

/// The variable that names libraries to preload (ld.so(8)).
pub(crate) const VARIABLE: &str = "LD_PRELOAD";

/// Returns the value of that variable: the library in front of this process's value.
///
/// # Errors
/// If `RDMASCOPE_PRELOAD` names no file, or one whose path cannot be preloaded, or if there is no
/// place where the library can be extracted.
pub(crate) fn value() -> anyhow::Result<OsString> {
    let library = find_library(env::var_os("RDMASCOPE_PRELOAD"), &env::current_exe()?)?;
    in_front(&library, env::var_os(VARIABLE))
}

/// Finds the library: the file `said`; or a file where cargo or a package puts it, if its content
/// is that of the library inside this program; or that library, extracted.
fn find_library(said: Option<OsString>, program: &Path) -> anyhow::Result<PathBuf> {
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        let path = PathBuf::from(said);
        if !path.is_file() {
            let sentence = format!("RDMASCOPE_PRELOAD: {} is not a file: name a {LIBRARY}", path.display());
            return Err(Usage(sentence).into());
        }
        return Ok(fs::canonicalize(&path)?);
    }
    let library = embedded::library();
    let directory = program.parent().unwrap_or(Path::new("/"));
    let places = [directory.join("deps"), directory.to_owned(), directory.join("../lib/rdmascope")];
    for path in places.iter().filter_map(|place| fs::canonicalize(place.join(LIBRARY)).ok()) {
        if can_be_preloaded(&path) && fs::read(&path).is_ok_and(|found| found == library) {
            return Ok(path);
        }
    }
    extract::extracted(library).with_context(|| format!("cannot extract {LIBRARY}"))
}

/// Returns the value of `LD_PRELOAD`: the library in front of the existing value (ld.so(8)).
fn in_front(library: &Path, existing: Option<OsString>) -> anyhow::Result<OsString> {
    if !can_be_preloaded(library) {
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
        let library = Path::new("/lib/own.so");
        let value = |existing: &str| in_front(library, Some(existing.into())).unwrap();
        assert_eq!(in_front(library, None).unwrap(), "/lib/own.so");
        assert_eq!(value("a.so b.so"), "/lib/own.so:a.so:b.so");
        assert_eq!(value("a.so:/lib/own.so"), "/lib/own.so:a.so");
        assert!(in_front(Path::new("/my lib/own.so"), None).unwrap_err().to_string().contains("space"));
    }
}
