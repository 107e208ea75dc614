//! Posting of messages: on which lane, and whether completely.

use super::watch::Woken;
use super::{Lane, SocketEndpoint};
use crate::Error;
use crate::endpoint::{Mark, Posted};

/// How many messages are sent between checks of full lanes, while others have room.
const LOOKS_EVERY: u32 = 64;

impl SocketEndpoint {
    /// Posts a message on the lane whose turn it is.
    #[inline(always)]
    pub(super) fn try_send_next(&mut self, mark: Mark) -> Result<Posted, Error> {
        let lane = self.next_lane;
        let sent = self.lanes[lane].send(mark, self.sleeps_to_send);
        let is_sent = sent.map_err(|error| self.failed(lane, "send on", &error))?;
        if !is_sent && self.sleeps_to_send {
            // The alarm went off.
            self.awaits_room = true;
            self.is_interrupted()?;
        }
        Ok(self.posted(is_sent))
    }

    /// Posts a message of a stream on the next lane that has room: a connection that waits for its
    /// peer, as after a loss, does not stop the others. A full lane is used again when the kernel
    /// reports much room.
    #[inline]
    pub(super) fn try_send_any(&mut self) -> Result<Posted, Error> {
        self.posts = self.posts.wrapping_add(1);
        if self.posts.is_multiple_of(LOOKS_EVERY) {
            self.look_for_room(Some(0))?;
        }
        for _ in 0..self.lanes.len() {
            let lane = self.next_lane;
            if !self.full[lane] {
                let posted = self.try_send_next(Mark::More)?;
                self.full[lane] = self.lanes[lane].has_rest() || posted == Posted::Busy;
                if posted == Posted::Queued {
                    return Ok(Posted::Queued);
                }
            }
            self.next_lane = (lane + 1) % self.lanes.len();
        }
        self.awaits_room = true;
        if !self.sleeps {
            self.look_for_room(Some(0))?;
        }
        Ok(Posted::Busy)
    }

    /// Checks which lanes have room, for `limit_ms` or until one has; if a message is awaited, too,
    /// until one arrives.
    pub(super) fn look_for_room(&mut self, limit_ms: Option<u16>) -> Result<Woken, Error> {
        let Self { lanes, watch, awaits_room, awaits_message, next_lane, any_lane, full, .. } = self;
        let woken = watch.sleep(lanes, limit_ms, |index, lane| {
            let is_wanted = if *any_lane { full[index] } else { *awaits_room && index == *next_lane };
            (*awaits_message, is_wanted || lane.has_rest() || lane.awaits_lent())
        })?;
        if woken == Woken::Socket {
            full.iter_mut().enumerate().for_each(|(lane, full)| *full &= !watch.has_room(lane));
        }
        Ok(woken)
    }

    /// Notes whether a message was posted.
    #[inline(always)]
    pub(super) fn posted(&mut self, is_sent: bool) -> Posted {
        self.awaits_room = !is_sent;
        if !is_sent {
            return Posted::Busy;
        }
        self.has_rest |= self.lanes[self.next_lane].has_rest();
        self.next_lane += 1;
        if self.next_lane == self.lanes.len() {
            self.next_lane = 0;
        }
        self.limits.moved();
        Posted::Queued
    }

    /// Posts a greeting on the first lane; the counts of a stream start again after it.
    pub(super) fn greet_first(&mut self, number: Option<u32>) -> Result<Posted, Error> {
        if self.floods {
            self.lanes.iter_mut().for_each(Lane::recount);
        }
        let sent = self.lanes[0].greet(number, false);
        let is_sent = sent.map_err(|error| self.failed(0, "send on", &error))?;
        self.awaits_room = !is_sent;
        if !is_sent {
            return Ok(Posted::Busy);
        }
        self.has_rest |= self.lanes[0].has_rest();
        self.limits.moved();
        Ok(Posted::Queued)
    }

    /// Sends more of messages that were sent in part.
    #[cold]
    pub(super) fn send_rest(&mut self) -> Result<(), Error> {
        let mut has_rest = false;
        for lane in 0..self.lanes.len() {
            let before = self.lanes[lane].written();
            let finished = self.lanes[lane].finish(false);
            has_rest |= !finished.map_err(|error| self.failed(lane, "send on", &error))?;
            if self.lanes[lane].written() > before {
                self.limits.moved();
            }
        }
        self.has_rest = has_rest;
        Ok(())
    }
}
