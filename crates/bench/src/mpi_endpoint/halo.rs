//! Halo exchanges by MPI.

use mpi::{Communicator, Slots, Window};

use super::memory::Memory;
use crate::Error;
use crate::endpoint::collectives::HaloSpec;
use crate::endpoint::contents::{CLEARED, compare, side_expected, sides};
use crate::patterns::halo::choices::{SIDES, opposite};
use crate::point::HaloMethod;

/// A halo exchange, with the sides that a rank sends and receives.
pub(super) struct HaloCall {
    spec: HaloSpec,
    rank: u32,
    neighbours: [u32; SIDES],
    way: Way,
}

/// The method of the exchange, and its memory.
enum Way {
    /// One side after the other.
    Each { sent: Memory, received: Memory },
    /// Four receives, followed by four sends, in one array of requests.
    Slots(Slots),
    /// The same with persistent requests.
    Persistent(Slots),
    /// One neighbourhood collective on a torus.
    Neighbour { torus: Communicator, sent: Memory, received: Memory },
    /// Puts from the window's own memory into the windows of the neighbours.
    Put(Option<Window>),
}

impl HaloCall {
    pub(super) fn new(all: &Communicator, spec: HaloSpec) -> Result<Self, Error> {
        let rank = all.rank();
        let neighbours = spec.grid.neighbours(rank);
        let bytes = spec.side_bytes;
        let both = || Ok::<_, Error>([Memory::new(all, SIDES * bytes)?, Memory::new(all, SIDES * bytes)?]);
        let way = match spec.method {
            HaloMethod::Sendrecv => {
                let [sent, received] = both()?;
                Way::Each { sent, received }
            }
            HaloMethod::Neighbour if spec.grid.ranks() == 1 => {
                let reason = "on a grid of one rank, which is its own neighbour on all sides, MPI libraries disagree on the \
                              order in which a neighbourhood collective delivers the sides";
                return Err(Error::Impossible { reason: reason.to_owned() });
            }
            HaloMethod::Neighbour => {
                let [sent, received] = both()?;
                let torus = all.cart_create(&[spec.grid.rows, spec.grid.columns], &[true, true], false)?;
                Way::Neighbour { torus, sent, received }
            }
            HaloMethod::Nonblocking => Way::Slots(Slots::new(all, 2 * SIDES, bytes)?),
            HaloMethod::Persistent => {
                let mut slots = Slots::new(all, 2 * SIDES, bytes)?;
                for (side, neighbour) in neighbours.into_iter().enumerate() {
                    slots.recv_init(side, bytes, Some(neighbour), Some(opposite(side) as i32))?;
                    slots.send_init(SIDES + side, bytes, neighbour, side as i32)?;
                }
                Way::Persistent(slots)
            }
            HaloMethod::Put => {
                let mut window = Window::allocate(all, SIDES * bytes, SIDES * bytes)?;
                window.fence()?;
                Way::Put(Some(window))
            }
        };
        let mut call = Self { spec, rank, neighbours, way };
        call.fill();
        Ok(call)
    }

    fn fill(&mut self) {
        let bytes = self.spec.side_bytes;
        let given = sides(self.rank, bytes);
        match &mut self.way {
            Way::Each { sent, .. } | Way::Neighbour { sent, .. } => sent.bytes_mut().copy_from_slice(&given),
            Way::Slots(slots) | Way::Persistent(slots) => {
                for side in 0..SIDES {
                    let given = &given[side * bytes..(side + 1) * bytes];
                    slots.bytes_mut(SIDES + side)[..bytes].copy_from_slice(given);
                }
            }
            Way::Put(Some(window)) => window.origin_mut()[..given.len()].copy_from_slice(&given),
            Way::Put(None) => {}
        }
    }

    #[inline]
    pub(super) fn run(&mut self, all: &Communicator) -> Result<(), mpi::Error> {
        let Self { spec, neighbours, way, .. } = self;
        let bytes = spec.side_bytes;
        match way {
            Way::Each { sent, received } => {
                for side in 0..SIDES {
                    // A side that is sent to one neighbour is received from the opposite one.
                    let from = opposite(side);
                    let given = &sent.bytes()[side * bytes..(side + 1) * bytes];
                    let got = &mut received.bytes_mut()[from * bytes..(from + 1) * bytes];
                    let tag = side as i32;
                    all.sendrecv((given, neighbours[side], tag), (got, Some(neighbours[from]), Some(tag)))?;
                }
                Ok(())
            }
            Way::Slots(slots) => {
                for (side, neighbour) in neighbours.iter().copied().enumerate() {
                    slots.irecv(side, bytes, Some(neighbour), Some(opposite(side) as i32))?;
                }
                for (side, neighbour) in neighbours.iter().copied().enumerate() {
                    slots.isend(SIDES + side, bytes, neighbour, side as i32)?;
                }
                slots.wait_all(0..2 * SIDES)
            }
            Way::Persistent(slots) => {
                slots.start_all(0..2 * SIDES)?;
                slots.wait_all(0..2 * SIDES)
            }
            Way::Neighbour { torus, sent, received } => {
                torus.neighbor_alltoall(sent.bytes(), received.bytes_mut(), bytes)
            }
            Way::Put(Some(window)) => {
                for (side, neighbour) in neighbours.iter().copied().enumerate() {
                    window.put(side * bytes, bytes, neighbour, opposite(side) * bytes)?;
                }
                window.fence()
            }
            Way::Put(None) => Ok(()),
        }
    }

    /// Clears the result of the last exchange.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        let bytes = self.spec.side_bytes;
        match &mut self.way {
            Way::Each { received, .. } | Way::Neighbour { received, .. } => {
                received.bytes_mut().fill(CLEARED);
            }
            Way::Slots(slots) | Way::Persistent(slots) => {
                (0..SIDES).for_each(|side| slots.bytes_mut(side)[..bytes].fill(CLEARED));
            }
            Way::Put(Some(window)) => window.write(0, &vec![CLEARED; SIDES * bytes])?,
            Way::Put(None) => {}
        }
        Ok(())
    }

    /// Compares the received sides with those that the neighbours sent. If both neighbours of a
    /// dimension are the same rank, a neighbourhood collective may deliver its two sides in either
    /// order.
    pub(super) fn verify(&self) -> Result<(), Error> {
        let bytes = self.spec.side_bytes;
        let found = self.found()?;
        let any_order = self.spec.method == HaloMethod::Neighbour;
        for side in 0..SIDES {
            let of = |side: usize| side_expected(self.spec, self.rank, side);
            let got = &found[side * bytes..(side + 1) * bytes];
            if any_order && self.spec.grid.is_narrow(side) && of(opposite(side)) == got {
                continue;
            }
            compare("the halo exchange", self.rank, &of(side), got)?;
        }
        Ok(())
    }

    /// Returns the received sides, one after the other.
    fn found(&self) -> Result<Vec<u8>, Error> {
        let bytes = self.spec.side_bytes;
        Ok(match &self.way {
            Way::Each { received, .. } | Way::Neighbour { received, .. } => received.bytes().to_vec(),
            Way::Slots(slots) | Way::Persistent(slots) => {
                (0..SIDES).flat_map(|side| slots.bytes(side)[..bytes].to_vec()).collect()
            }
            Way::Put(Some(window)) => {
                let mut found = vec![0; SIDES * bytes];
                window.read(0, &mut found)?;
                found
            }
            Way::Put(None) => Vec::new(),
        })
    }
}

impl Drop for HaloCall {
    /// Frees the window together with all other ranks, as MPI requires.
    fn drop(&mut self) {
        if let Way::Put(window) = &mut self.way
            && let Some(window) = window.take()
        {
            // The point has its result; the rest ends with the process.
            let _ = window.free();
        }
    }
}
