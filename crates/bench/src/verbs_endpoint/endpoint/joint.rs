//! Joint operations, as an endpoint calls them.

use verbs::SendRequest;

use super::VerbsEndpoint;
use crate::Error;
use crate::endpoint::Endpoint;
use crate::endpoint::collectives::{Collectives, Joint};
use crate::verbs_endpoint::joint::{Act, Exchange, Joined, reduce};

impl VerbsEndpoint {
    /// Lends the joint operation to a closure.
    #[inline]
    fn with_joined<T>(
        &mut self,
        done: impl FnOnce(&mut Self, &mut Joined) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(mut joined) = self.joined.take() else { return Err(nothing()) };
        let result = done(self, &mut joined);
        self.joined = Some(joined);
        result
    }

    /// Waits until a queue pair accepts another request. This is rare, because some of its requests
    /// request completions.
    #[cold]
    fn make_room(&mut self, lane: usize) -> Result<(), Error> {
        self.reap()?;
        while self.lanes[lane].outstanding() >= self.tx_depth {
            self.idle()?;
            self.reap()?;
        }
        Ok(())
    }

    /// Posts a write to the rank of a lane, once its queue has room for it.
    #[inline]
    fn post_to(&mut self, lane: usize, request: &mut SendRequest) -> Result<(), Error> {
        if self.lanes[lane].outstanding() >= self.tx_depth {
            self.make_room(lane)?;
        }
        self.lanes[lane].post_request(request, self.signal_interval)?;
        self.outstanding += 1;
        Ok(())
    }

    /// Makes a call.
    #[inline]
    fn exchange(&mut self, exchange: &mut Exchange) -> Result<(), Error> {
        exchange.number += 1;
        let set = exchange.set();
        let Exchange { region, acts, given, vector, scratch, reduced_by, number, written, .. } = exchange;
        for act in &mut acts[set] {
            match act {
                Act::Give { at } => vector[*at..*at + given.len()].copy_from_slice(given),
                Act::Pack { to, from, bytes } => region.write(*to, &vector[*from..*from + *bytes])?,
                Act::Write(write) => {
                    write.number(region, *number)?;
                    self.post_to(write.lane, &mut write.request)?;
                    *written += 1;
                }
                Act::Keep { from, to, bytes } => {
                    let kept = &mut scratch[..*bytes];
                    region.read(*from, kept)?;
                    region.write(*to, kept)?;
                    region.store(*to + *bytes, *number)?;
                }
                Act::Await { word } => {
                    while region.load(*word)? != *number {
                        self.idle()?;
                    }
                    self.limits.moved();
                    self.spins = 0;
                }
                Act::Unpack { from, to, bytes } => region.read(*from, &mut vector[*to..*to + *bytes])?,
                Act::Reduce { from, to, bytes } => {
                    let came = &mut scratch[..*bytes];
                    region.read(*from, came)?;
                    reduce(*reduced_by, &mut vector[*to..*to + *bytes], came);
                }
            }
        }
        Ok(())
    }
}

impl Collectives for VerbsEndpoint {
    /// Fills the memory, which was created for the point before the other ranks were told about it.
    fn prepare(&mut self, _: &Joint) -> Result<(), Error> {
        self.with_joined(|_, joined| joined.fill())
    }

    #[inline]
    fn call(&mut self) -> Result<(), Error> {
        self.with_joined(|endpoint, joined| endpoint.exchange(&mut joined.measured))
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.with_joined(|_, joined| joined.clear())
    }

    fn verify(&self) -> Result<(), Error> {
        self.joined.as_ref().ok_or_else(nothing)?.verify()
    }

    #[inline]
    fn meet(&mut self) -> Result<(), Error> {
        self.largest(0).map(drop)
    }

    fn hear(&mut self, number: u64) -> Result<u64, Error> {
        let is_first = self.joined.as_ref().is_some_and(|joined| joined.is_first());
        self.largest(if is_first { number } else { 0 })
    }

    #[inline]
    fn largest(&mut self, number: u64) -> Result<u64, Error> {
        self.with_joined(|endpoint, joined| {
            let control = &mut joined.control;
            control.given.clear();
            control.given.extend_from_slice(&number.to_ne_bytes());
            endpoint.exchange(control)?;
            let (words, _) = control.vector.as_chunks();
            Ok(words.first().map_or(0, |word| u64::from_ne_bytes(*word)))
        })
    }

    fn give(&mut self, to: u32, number: u64) -> Result<(), Error> {
        self.with_joined(|endpoint, joined| {
            let (lane, request) = joined.letter(to, number)?;
            endpoint.post_to(lane, request)
        })
    }

    fn take(&mut self, from: u32) -> Result<u64, Error> {
        self.with_joined(|endpoint, joined| {
            loop {
                if let Some(number) = joined.mailboxes.next(from)? {
                    endpoint.limits.moved();
                    endpoint.spins = 0;
                    return Ok(number);
                }
                endpoint.idle()?;
            }
        })
    }

    fn swap(&mut self, to: u32, from: u32) -> Result<(), Error> {
        self.give(to, 0)?;
        self.take(from).map(drop)
    }
}

/// Returns the error of a point without a joint operation.
#[cold]
fn nothing() -> Error {
    Error::Impossible { reason: "the point has no joint operation".to_owned() }
}

#[cfg(test)]
mod tests;
