//! The endpoints of a rank: one for each part of the point that it has to do with.

use std::collections::BTreeMap;
use std::sync::Arc;

use measure::record::Oversubscribed;
use serde_json::Value;
use verbs::Context;

use super::{out_of_order, unreadable};
use crate::Error;
use crate::point::{Part, PointSpec};
use crate::process::agent::PointError;
use crate::process::message::{Neighbour, Prepared};
use crate::timepiece::Timepiece;
use crate::verbs_endpoint::{LocalPort, Told, Unconnected, VerbsEndpoint};

/// Queue pairs and buffers that are not connected yet.
pub(super) struct Waiting(BTreeMap<Part, Unconnected>);

/// Those that are.
pub(super) struct Endpoints(BTreeMap<Part, VerbsEndpoint>);

impl Waiting {
    /// Sets up what a rank needs for a point.
    pub(super) fn new(
        context: &Context,
        port: &Arc<LocalPort>,
        spec: &PointSpec,
        rank: u32,
        timepiece: &Timepiece,
    ) -> Result<Self, Error> {
        let parts = spec.parts().into_iter().filter(|part| part.is_for(rank));
        let of = |part: PointSpec| Ok((part.part, Unconnected::new(context, port, &part, rank, timepiece)?));
        Ok(Self(parts.map(of).collect::<Result<_, Error>>()?))
    }

    /// What the other ranks have to know.
    pub(super) fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        let addresses: BTreeMap<_, _> = self.0.iter().map(|(part, own)| (part, own.address())).collect();
        let ways = |rank: u32| {
            let of = |own: &Unconnected| own.ways().get(rank as usize)?.as_ref().map(serde_json::to_value);
            let ways = self.0.iter().filter_map(|(part, own)| Some(of(own)?.map(|way| (part, way))));
            let ways = ways.collect::<Result<BTreeMap<_, _>, _>>()?;
            if ways.is_empty() { Ok(Value::Null) } else { serde_json::to_value(ways) }
        };
        let address = serde_json::to_value(addresses).map_err(unreadable)?;
        Ok(Prepared { address, ways: (0..ranks).map(ways).collect::<Result<_, _>>().map_err(unreadable)? })
    }

    /// Connects each part with those of the other ranks.
    pub(super) fn connect(self, ranks: &[Neighbour]) -> Result<Endpoints, PointError> {
        let one = |(part, unconnected): (Part, Unconnected)| {
            let told = ranks.iter().map(|rank| Told::read(rank, part)).collect::<Result<Vec<_>, _>>();
            let told = told.map_err(unreadable)?;
            match unconnected.refusal(&told) {
                Some(reason) => Err(PointError::NotMeasured(reason)),
                None => Ok((part, unconnected.connect(&told)?)),
            }
        };
        Ok(Endpoints(self.0.into_iter().map(one).collect::<Result<_, _>>()?))
    }
}

impl Endpoints {
    /// Starts the point's time limit.
    pub(super) fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        self.0.values_mut().try_for_each(|endpoint| endpoint.start(timeout_s))
    }

    /// Stops what ends this thread's sleeps.
    pub(super) fn stop(&mut self) {
        self.0.values_mut().for_each(VerbsEndpoint::stop);
    }

    /// Where more ranks run on this one's CPUs than those are.
    pub(super) fn oversubscribed(&self) -> Option<Oversubscribed> {
        self.0.values().find_map(VerbsEndpoint::oversubscribed)
    }

    /// The one of what the plan says, which most ranks have.
    pub(super) fn main(&mut self) -> Result<&mut VerbsEndpoint, PointError> {
        self.0.get_mut(&Part::Main).ok_or_else(|| out_of_order("run"))
    }

    /// The one of what the plan says, and the one of who tells others when, where there are some.
    pub(super) fn asking(&mut self) -> Option<(&mut VerbsEndpoint, Option<&mut VerbsEndpoint>)> {
        let mut control = None;
        let mut main = None;
        for (part, endpoint) in &mut self.0 {
            match part {
                Part::Main => main = Some(endpoint),
                Part::Load => {}
                Part::Control => control = Some(endpoint),
            }
        }
        main.map(|main| (main, control))
    }

    /// The one that loads, and the one that is told when.
    pub(super) fn loading(&mut self) -> Option<(&mut VerbsEndpoint, &mut VerbsEndpoint)> {
        let mut parts = self.0.range_mut(Part::Load..=Part::Control).map(|(_, endpoint)| endpoint);
        parts.next().zip(parts.next())
    }
}
