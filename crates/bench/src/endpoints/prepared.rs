//! The endpoints of a rank, one for each part of the point that the rank takes part in: set up,
//! connected and measured with, whatever their kind.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::endpoint::connecting::{DrivenEndpoint, PeerInfo, UnconnectedEndpoint};
use crate::endpoint::kind::{ConnectedEndpoints, EndpointKind, PreparedEndpoints, Site};
use crate::fault::{PointError, unreadable};
use crate::host_counters::Counted;
use crate::pattern::rank::{Endpoints, Rank};
use crate::patterns;
use crate::placement::{LocalPlacement, RankInfo};
use crate::point::PointSpec;
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::rank_clock::RankClock;
use crate::topology::{Part, PartSpec, Topology};

/// Endpoints that are not connected yet.
pub(super) struct PreparedParts<H> {
    topology: Topology,
    local: LocalPlacement,
    parts: BTreeMap<Part, H>,
}

/// What a rank tells all others.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Address<A> {
    info: RankInfo,
    parts: BTreeMap<Part, A>,
}

impl<K: EndpointKind> PreparedParts<K> {
    /// Sets up a rank's endpoints for a point.
    pub(super) fn new(site: &mut Site<'_>) -> Result<Self, Error> {
        let topology = site.topology;
        let rank = site.rank;
        let of = |part: &PartSpec| Ok((part.part, K::prepare(part, site)?));
        let parts = topology.parts_of(rank).map(of).collect::<Result<_, Error>>()?;
        let local = LocalPlacement::new(topology, rank, site.rank_clock)?;
        Ok(Self { topology: topology.clone(), local, parts })
    }
}

impl<H: UnconnectedEndpoint + 'static> PreparedEndpoints for PreparedParts<H> {
    fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        let parts = self.parts.iter().map(|(part, own)| (*part, &own.offer().address)).collect();
        let address = Address { info: self.local.info().clone(), parts };
        let ways = |rank: u32| {
            let of =
                |(part, own): (&Part, &H)| Some((*part, serde_json::to_value(own.offer().params(rank)?)));
            let ways = self.parts.iter().filter_map(of);
            let ways = ways.map(|(part, way)| Ok((part, way?))).collect::<Result<BTreeMap<_, _>, _>>()?;
            if ways.is_empty() { Ok(Value::Null) } else { serde_json::to_value(ways) }
        };
        let address = serde_json::to_value(address).map_err(unreadable)?;
        Ok(Prepared { address, ways: (0..ranks).map(ways).collect::<Result<_, _>>().map_err(unreadable)? })
    }

    fn connect(self: Box<Self>, ranks: &[Neighbour]) -> Result<Box<dyn ConnectedEndpoints>, PointError> {
        let mut told: Vec<Heard<H>> =
            ranks.iter().map(Heard::read).collect::<Result<_, _>>().map_err(unreadable)?;
        let infos: Vec<RankInfo> = told.iter().map(|rank| rank.info.clone()).collect();
        let placement = self.local.hear(&self.topology, &infos)?;
        let yields_cpu = placement.oversubscribed.is_some();
        let one = |(part, half): (Part, H)| {
            let others: Vec<_> = told.iter_mut().map(|rank| rank.of(part)).collect();
            Ok((part, half.connect(&others, yields_cpu)?))
        };
        let parts = self.parts.into_iter().map(one).collect::<Result<_, Error>>()?;
        Ok(Box::new(Endpoints { placement, parts }))
    }
}

impl<E: DrivenEndpoint> ConnectedEndpoints for Endpoints<E> {
    fn measure(
        &mut self,
        spec: &PointSpec,
        rank: u32,
        left: Duration,
        rank_clock: &RankClock,
    ) -> Result<Outcome, PointError> {
        let ways = self.ways();
        let before = Counted::now(&ways);
        self.start(left.as_secs_f64())?;
        let outcome = patterns::run(Rank { spec, rank, left, rank_clock, endpoints: self });
        self.stop();
        let oversubscribed = self.placement.oversubscribed;
        let library = self.library();
        let mut outcome = outcome?;
        let transport = self.transport()?;
        outcome = Outcome { oversubscribed, library, transport, ..outcome };
        for (name, count) in self.counters() {
            *outcome.counters.entry(name).or_default() += count;
        }
        outcome.host = Counted::now(&ways).since(&before);
        Ok(outcome)
    }
}

/// What a rank has told this one about all parts.
struct Heard<H: UnconnectedEndpoint> {
    info: RankInfo,
    addresses: BTreeMap<Part, H::Address>,
    ways: BTreeMap<Part, H::PeerParams>,
}

impl<H: UnconnectedEndpoint> Heard<H> {
    /// Reads what came over the control connection.
    fn read(told: &Neighbour) -> Result<Self, serde_json::Error> {
        let Address { info, parts } = Address::deserialize(&told.address)?;
        let ways = Option::deserialize(&told.way)?.unwrap_or_default();
        Ok(Self { info, addresses: parts, ways })
    }

    fn of(&mut self, part: Part) -> PeerInfo<H::Address, H::PeerParams> {
        let address = self.addresses.remove(&part);
        let params = self.ways.remove(&part);
        PeerInfo { info: self.info.clone(), address, params }
    }
}
