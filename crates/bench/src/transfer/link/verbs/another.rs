//! Another connection of the same ranks, made with the help of the first one.

use std::sync::Arc;

use measure::clock::Clock;
use verbs::Context;

use super::ends::{VerbsInlet, VerbsOutlet};
use super::setup::{Unconnected, VerbsAddress, Wanted};
use crate::Error;
use crate::transfer::link::renewed::Makes;
use crate::transfer::link::{Inlet, Kind, Outlet, Patience};
use crate::transfer::record::Answer;
use crate::verbs_endpoint::LocalPort;

/// The data to make another connection.
pub(crate) struct Another {
    pub(crate) context: Context,
    pub(crate) port: Arc<LocalPort>,
    pub(crate) wanted: Wanted,
    pub(crate) clock: Clock,
    pub(crate) patience: Patience,
}

/// The most blocks of a ring whose addresses fit into one answer.
pub(crate) const RENEWED_SLOTS_MAX: u64 = 512;

impl Another {
    fn unconnected(&self) -> Result<(Unconnected, Vec<u8>), Error> {
        let link = Unconnected::new(&self.context, &self.port, self.wanted, self.clock)?;
        let said = serde_json::to_vec(&link.address()?).map_err(|error| unreadable(&error))?;
        Ok((link, said))
    }

    /// Returns the function that makes further links of a source.
    pub(crate) fn of_source(self) -> Makes<dyn Outlet + Send> {
        Box::new(move |stays| {
            let (link, said) = self.unconnected()?;
            stays.room()?.put(0, &said).map_err(Error::system("fill a block"))?;
            stays.post(Kind::Packed, said.len())?;
            let answer = stays.answers(true)?.unwrap_or_default();
            // The sink may have stopped the transfer before.
            if let Ok((Answer::Stop { words }, _)) = Answer::read(&answer) {
                return Err(Error::Transfer { words });
            }
            let link = link.connect(&self.port, &read(&answer)?, self.patience)?;
            Ok(Box::new(VerbsOutlet::new(link)))
        })
    }

    /// Returns the function that makes further links of a sink.
    pub(crate) fn of_sink(self) -> Makes<dyn Inlet + Send> {
        Box::new(move |stays| {
            let (_, bytes) = stays.take()?;
            let mut said = vec![0; bytes];
            stays.block().get(0, &mut said).map_err(Error::system("read a block"))?;
            stays.release()?;
            let address = read(&said)?;
            let (link, said) = self.unconnected()?;
            // The link can receive before the source gets its address.
            let link = link.connect(&self.port, &address, self.patience)?;
            stays.answer(&said)?;
            Ok(Box::new(VerbsInlet(link)))
        })
    }
}

fn read(said: &[u8]) -> Result<VerbsAddress, Error> {
    serde_json::from_slice(said).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::PeerAddress { reason: error.to_string() }
}
