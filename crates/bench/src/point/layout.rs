//! Which ranks the points of each pattern have, and how endpoints are used.

use serde::{Deserialize, Serialize};

use super::{
    Filling, Flow as Direction, Memory, Mesh, MessageSpec, Operation, Pattern, PointSpec, QueuePoll, Service,
    Setup, Stamp, Traffic,
};
use crate::topology::{Flow, Form, Links, Part, PartSpec, Topology, Usage};

/// Where a load goes that meets messages from rank 0 to rank 1 and their answers. It floods over RC, whatever the messages are.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// From each loader to a rank of its own: RDMA Write. They share with the messages what is between hosts, and a device
    /// where they share a host.
    Beside,
    /// From all loaders to rank 1, which answers: RDMA Write into its memory.
    Incast,
    /// From rank 0, which asks, to all loaders: RDMA Read of its memory.
    Outcast,
}

impl Load {
    /// The operation that carries it.
    pub fn operation(self) -> Operation {
        match self {
            Self::Beside | Self::Incast => Operation::Write,
            Self::Outcast => Operation::Read,
        }
    }
}

/// What loads the device while messages are exchanged at a set rate.
pub(crate) const LOAD: Part = Part(1);
/// How those who load it are told when.
pub(crate) const CONTROL: Part = Part(2);

/// The first rank of an open loop that loads it, after the two that exchange its messages.
const FIRST_LOADER: u32 = 2;

impl PointSpec {
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.topology().ranks
    }

    /// Its ranks, and what they do beside each other.
    pub fn topology(&self) -> Topology {
        let main = |usage, links| Topology::of_one(PartSpec::main(&self.message, usage, links));
        match self.pattern {
            Pattern::FanOut => {
                let usage = Usage {
                    has_rounds: true,
                    has_place_each: !self.message.operation.is_fetch(),
                    ..Usage::ALTERNATING
                };
                main(usage, Links::star(self.peers).with_full_mesh(self.mesh == Mesh::Full))
            }
            Pattern::OneWay => {
                let form = Form::Numbered { is_stamped: self.stamp == Stamp::Sent };
                main(Usage { form, ..Usage::PACED }, Links::of_two())
            }
            Pattern::OpenLoop => self.open_loop(),
            Pattern::Overhead | Pattern::Prtt => main(Usage::PACED, Links::of_two()),
            Pattern::Pairs => self.paired(),
            Pattern::PingPong => main(Usage::ALTERNATING, Links::of_two()),
            Pattern::Pipeline => {
                let rx_filled = self.pipeline.as_ref().map(|pipeline| pipeline.rx_filled);
                let fills_late = rx_filled == Some(Filling::Reading);
                main(Usage { form: Form::Written, fills_late, ..Usage::PACED }, Links::of_two())
            }
            Pattern::Stream => {
                let usage = Usage {
                    flow: Flow::Flood,
                    is_timed: false,
                    is_one_sided_flood: self.direction == Direction::Uni,
                    pauses: false,
                    ..Usage::PACED
                };
                main(usage, Links::of_two())
            }
        }
    }

    /// Pairs are neighbours, so that ranks which take two hosts in turn have their partners on the other one (S15).
    fn paired(&self) -> Topology {
        let usage = match self.traffic {
            Traffic::PingPong => Usage::ALTERNATING,
            // How far a flood is is known by its completions.
            Traffic::Stream => Usage { flow: Flow::Flood, ..Usage::ALTERNATING },
        };
        let ranks = self.pairs.saturating_mul(2);
        let links = Links::new(ranks, |rank| vec![rank ^ 1], |rank| rank.is_multiple_of(2));
        let together = (0..ranks).filter(|rank| links.begins(*rank)).collect();
        let main = PartSpec::main(&self.message, usage, links);
        Topology { together, ..Topology::of_one(main) }
    }

    /// Two ranks that exchange messages, and others that load the device meanwhile.
    fn open_loop(&self) -> Topology {
        let load = if self.load == Load::Beside { 2 } else { 1 } * u64::from(self.loaders);
        let ranks = u32::try_from(u64::from(FIRST_LOADER) + load).unwrap_or(u32::MAX);
        let asked = |rank| if rank < FIRST_LOADER { vec![rank ^ 1] } else { Vec::new() };
        let links = Links::new(ranks, asked, |rank| rank == 0);
        let main = PartSpec::main(&self.message, Usage::PACED, links);
        let mut topology = Topology::of_one(main);
        if self.loaders > 0 {
            topology.parts.extend([self.load_part(ranks), self.control_part(ranks)]);
        }
        topology
    }

    /// Floods over a reliable connection, which tells the loader how far it is.
    fn load_part(&self, ranks: u32) -> PartSpec {
        let each = self.load_bytes.max(1);
        let message = MessageSpec {
            operation: self.load.operation(),
            size_bytes: self.load_bytes,
            // Often enough to know how far it is.
            signal_interval: (LOAD_SIGNALED_BYTES / each).clamp(1, LOAD_SIGNAL_INTERVAL) as u32,
            tx_depth: LOAD_DEPTH,
            outstanding_reads: None,
            ..self.beside()
        };
        let usage = Usage {
            flow: Flow::Flood,
            has_place_each: true,
            is_timed: false,
            is_drained: true,
            ..Usage::PACED
        };
        let links = Links::new(ranks, |rank| self.loads_with(rank, ranks), |rank| self.is_loader(rank));
        PartSpec { part: LOAD, message, usage, links }
    }

    /// A byte from rank 0 to each loader, and one back.
    fn control_part(&self, ranks: u32) -> PartSpec {
        let message = MessageSpec {
            operation: Operation::Send,
            size_bytes: 1,
            signal_interval: 1,
            tx_depth: CONTROL_DEPTH,
            rx_depth: CONTROL_DEPTH,
            rx_fill: CONTROL_DEPTH,
            ..self.beside()
        };
        let usage = Usage { pauses: true, has_rounds: true, has_place_each: true, ..Usage::ALTERNATING };
        let partners = |rank| match rank {
            0 => self.loaders(ranks).collect(),
            rank if self.is_loader(rank) => vec![0],
            _ => Vec::new(),
        };
        PartSpec { part: CONTROL, message, usage, links: Links::new(ranks, partners, |rank| rank == 0) }
    }

    /// What messages beside the main ones have in common: nothing that a plan varies of those.
    fn beside(&self) -> MessageSpec {
        MessageSpec {
            service: Service::Rc,
            poll: QueuePoll::Busy,
            send_poll: QueuePoll::Busy,
            inline: false,
            sge: 1,
            setup: Setup::Exchange,
            memory: Memory::Device,
            ..self.message.clone()
        }
    }

    /// The ranks between which and this one a load goes.
    fn loads_with(&self, rank: u32, ranks: u32) -> Vec<u32> {
        let end = match self.load {
            Load::Beside if rank >= FIRST_LOADER => return vec![rank ^ 1],
            Load::Beside => return Vec::new(),
            Load::Incast => 1,
            Load::Outcast => 0,
        };
        match rank {
            rank if rank == end => self.loaders(ranks).collect(),
            FIRST_LOADER.. => vec![end],
            _ => Vec::new(),
        }
    }

    /// The ranks that load the device.
    fn loaders(&self, ranks: u32) -> impl Iterator<Item = u32> {
        (FIRST_LOADER..ranks).filter(|rank| self.is_loader(*rank))
    }

    /// Whether a rank loads the device.
    pub(crate) fn is_loader(&self, rank: u32) -> bool {
        rank >= FIRST_LOADER && self.loaders > 0 && (self.load != Load::Beside || rank.is_multiple_of(2))
    }

    /// Whether a rank is the one of a 1:n.
    pub(crate) fn is_hub(&self, rank: u32) -> bool {
        self.pattern == Pattern::FanOut && rank == 0
    }
}

/// Messages that a loader has under way: perftest's.
const LOAD_DEPTH: u32 = 128;
/// Every how many messages of a load one asks for a completion, at most, and every how many bytes.
const LOAD_SIGNAL_INTERVAL: u64 = 16;
const LOAD_SIGNALED_BYTES: u64 = 256 << 10;
/// More than the messages that rank 0 and a loader have under way.
const CONTROL_DEPTH: u32 = 8;

#[cfg(test)]
mod tests;
