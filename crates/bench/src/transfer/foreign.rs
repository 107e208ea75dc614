//! A source that sends arbitrary bytes, for tests.

use std::collections::VecDeque;
use std::path::Path;

use measure::clock::{Clock, Deadline};

use super::block::Block;
use super::block::Owned;
use super::digest::Checksum;
use super::link::{Inlet, Kind, LinkEnd};
use super::record::Answer;
use super::sink::{Receipt, Target, receive};
use super::told::LinkTold;
use crate::Error;

/// Receives the bytes of a foreign source into a directory. Each block begins with its kind, an
/// even or odd byte, and its length: two bytes, little-endian. If fewer bytes are left, the block
/// has all of them. The same bytes are also read as answers of a sink.
///
/// # Errors
/// What is wrong with the bytes, in a sentence.
pub fn receive_foreign(said: &[u8], directory: &Path) -> Result<(), String> {
    let mut rest = said;
    while let Ok((_, length)) = Answer::read(rest) {
        rest = &rest[length..];
    }
    let target = Target::open(directory, SESSION).map_err(|error| error.to_string())?;
    // With `compares`, offered files are read, too.
    let mut receipt = Receipt { compares: true, ..Receipt::new(Some(target), Checksum::None) };
    let mut inlet = Said::new(said);
    receive(&mut inlet, &mut receipt, Clock::monotonic()).map(drop).map_err(|error| error.to_string())
}

/// The session of such a transfer, so that its unfinished files have known names.
const SESSION: u64 = 0xabcd;

/// The blocks of a foreign source.
struct Said {
    blocks: VecDeque<(Kind, usize, Owned)>,
    nothing: Owned,
}

impl Said {
    fn new(said: &[u8]) -> Self {
        let mut rest = said;
        let mut blocks = VecDeque::new();
        while let Some(([kind, low, high], behind)) = rest.split_first_chunk() {
            let bytes = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
            let (block, behind) = behind.split_at(bytes);
            let mut owned = Owned::new(bytes);
            owned.bytes_mut().copy_from_slice(block);
            blocks.push_back((if kind % 2 == 0 { Kind::Packed } else { Kind::Raw }, bytes, owned));
            rest = behind;
        }
        Self { blocks, nothing: Owned::new(0) }
    }
}

impl Inlet for Said {
    fn take(&mut self) -> Result<(Kind, usize), Error> {
        let ended = || Error::Transfer { words: "the source is gone: it sends nothing more".to_owned() };
        self.blocks.front().map(|(kind, bytes, _)| (*kind, *bytes)).ok_or_else(ended)
    }

    fn block(&self) -> &dyn Block {
        self.blocks.front().map_or(&self.nothing, |(.., block)| block)
    }

    fn release(&mut self) -> Result<(), Error> {
        self.blocks.pop_front();
        Ok(())
    }

    fn answer(&mut self, _answers: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

impl LinkEnd for Said {
    fn ends_at(&mut self, _deadline: Deadline) {}

    fn told(&self) -> LinkTold {
        LinkTold::default()
    }
}
