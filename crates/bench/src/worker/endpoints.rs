//! The endpoints of a rank: one for each part of the point that it has to do with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::company::{Alone, Presence};
use crate::endpoint::connecting::{Half, Told};
use crate::fault::{PointError, unreadable};
use crate::pattern::rank::Endpoints;
use crate::process::message::{Neighbour, Prepared};
use crate::timepiece::Timepiece;
use crate::topology::{Part, PartSpec, Topology};

/// Halves that are not connected yet.
pub(crate) struct Waiting<H> {
    alone: Alone,
    parts: BTreeMap<Part, H>,
}

/// What a rank tells all others.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Address<A> {
    presence: Presence,
    parts: BTreeMap<Part, A>,
}

impl<H: Half> Waiting<H> {
    /// Sets up what a rank needs for a point: a half for each part, which `half` makes.
    pub(crate) fn new(
        topology: &Topology,
        rank: u32,
        timepiece: &Timepiece,
        half: impl Fn(&PartSpec) -> Result<H, Error>,
    ) -> Result<Self, Error> {
        let of = |part: &PartSpec| Ok((part.part, half(part)?));
        let parts = topology.parts_of(rank).map(of).collect::<Result<_, Error>>()?;
        Ok(Self { alone: Alone::new(topology, rank, timepiece)?, parts })
    }

    /// What the other ranks have to know.
    pub(crate) fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        let parts = self.parts.iter().map(|(part, own)| (*part, own.address())).collect();
        let address = Address { presence: self.alone.presence().clone(), parts };
        let ways = |rank: u32| {
            let of = |(part, own): (&Part, &H)| Some((*part, serde_json::to_value(own.way(rank)?)));
            let ways = self.parts.iter().filter_map(of);
            let ways = ways.map(|(part, way)| Ok((part, way?))).collect::<Result<BTreeMap<_, _>, _>>()?;
            if ways.is_empty() { Ok(Value::Null) } else { serde_json::to_value(ways) }
        };
        let address = serde_json::to_value(address).map_err(unreadable)?;
        Ok(Prepared { address, ways: (0..ranks).map(ways).collect::<Result<_, _>>().map_err(unreadable)? })
    }

    /// Connects each part with those of the other ranks.
    pub(crate) fn connect(
        self,
        topology: &Topology,
        ranks: &[Neighbour],
    ) -> Result<Endpoints<H::End>, PointError> {
        let mut told: Vec<Heard<H>> =
            ranks.iter().map(Heard::read).collect::<Result<_, _>>().map_err(unreadable)?;
        let presences: Vec<Presence> = told.iter().map(|rank| rank.presence.clone()).collect();
        let company = self.alone.hear(topology, &presences)?;
        let gives_way = company.oversubscribed.is_some();
        let one = |(part, half): (Part, H)| {
            let others: Vec<_> = told.iter_mut().map(|rank| rank.of(part)).collect();
            Ok((part, half.connect(&others, gives_way)?))
        };
        let parts = self.parts.into_iter().map(one).collect::<Result<_, Error>>()?;
        Ok(Endpoints { company, parts })
    }
}

/// What a rank has told this one, of all parts.
struct Heard<H: Half> {
    presence: Presence,
    addresses: BTreeMap<Part, H::Address>,
    ways: BTreeMap<Part, H::Way>,
}

impl<H: Half> Heard<H> {
    /// Reads what came over the control plane.
    fn read(told: &Neighbour) -> Result<Self, serde_json::Error> {
        let Address { presence, parts } = Address::deserialize(&told.address)?;
        let ways = Option::deserialize(&told.way)?.unwrap_or_default();
        Ok(Self { presence, addresses: parts, ways })
    }

    fn of(&mut self, part: Part) -> Told<H::Address, H::Way> {
        let (address, way) = (self.addresses.remove(&part), self.ways.remove(&part));
        Told { presence: self.presence.clone(), address, way }
    }
}
