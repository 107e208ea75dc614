//! The files that are made for a point, and the directory that they arrive in. Both are removed
//! when the point ends.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::Error;
use crate::scratch::ScratchDirectory;

/// Makes a directory for a point, in the directory that the plan names or else in that of temporary
/// files.
///
/// # Errors
/// If the directory cannot be made.
pub(super) fn directory(of_plan: Option<&str>) -> Result<ScratchDirectory, Error> {
    let place = of_plan.map_or_else(|| std::env::temp_dir().display().to_string(), str::to_owned);
    let what = format!("make a directory in {place}");
    let failed = Error::system(&what);
    let program = std::env::current_exe().map_err(failed)?;
    let supervisor = [program.to_string_lossy().into_owned(), "supervise".to_owned()];
    ScratchDirectory::new(of_plan.map(Path::new), &supervisor).map_err(failed)
}

/// Makes `files` files of `bytes` bytes each. All of them differ.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn fill(directory: &Path, files: u64, bytes: u64) -> Result<(), Error> {
    let failed = Error::system("make the files that are to be sent");
    let mut piece = vec![0; PIECE];
    // Pseudo-random bytes, which no file system and no link can compress.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for word in piece.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    for number in 0..files {
        piece[..8].copy_from_slice(&number.to_le_bytes());
        write(&directory.join(number.to_string()), &piece, bytes).map_err(failed)?;
    }
    Ok(())
}

fn write(path: &Path, piece: &[u8], bytes: u64) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        file.write_all(&piece[..part])?;
        left -= part as u64;
    }
    Ok(())
}

/// The bytes that are written at a time.
const PIECE: usize = 1 << 20;
