//! Another connection of the same ends, by way of the one that there is.

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

/// What it takes to make one.
pub(crate) struct Another {
    pub(crate) context: Context,
    pub(crate) port: Arc<LocalPort>,
    pub(crate) wanted: Wanted,
    pub(crate) clock: Clock,
    pub(crate) patience: Patience,
}

/// The blocks of a ring whose addresses go into one answer.
pub(crate) const RENEWED_SLOTS_MAX: u64 = 512;

impl Another {
    fn unconnected(&self) -> Result<(Unconnected, Vec<u8>), Error> {
        let link = Unconnected::new(&self.context, &self.port, self.wanted, self.clock)?;
        let said = serde_json::to_vec(&link.address()?).map_err(|error| unreadable(&error))?;
        Ok((link, said))
    }

    /// Makes those of a source.
    pub(crate) fn of_source(self) -> Makes<dyn Outlet + Send> {
        Box::new(move |stays| {
            let (link, said) = self.unconnected()?;
            stays.room()?.put(0, &said).map_err(Error::system("fill a block"))?;
            stays.post(Kind::Packed, said.len())?;
            let answer = stays.answers(true)?.unwrap_or_default();
            // A sink that takes no more has said so before.
            if let Ok((Answer::Stop { words }, _)) = Answer::read(&answer) {
                return Err(Error::Transfer { words });
            }
            let link = link.connect(&self.port, &read(&answer)?, self.patience)?;
            Ok(Box::new(VerbsOutlet::new(link)))
        })
    }

    /// Makes those of a sink.
    pub(crate) fn of_sink(self) -> Makes<dyn Inlet + Send> {
        Box::new(move |stays| {
            let (_, bytes) = stays.take()?;
            let mut said = vec![0; bytes];
            stays.block().get(0, &mut said).map_err(Error::system("look at a block"))?;
            stays.release()?;
            let address = read(&said)?;
            let (link, said) = self.unconnected()?;
            // It can receive before the source knows of it.
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
