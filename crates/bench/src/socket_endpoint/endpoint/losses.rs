//! Handles lost messages where messages alternate.

use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};

use super::{Lane, SocketEndpoint};
use crate::Error;

/// How long the rank that answered last stays available.
const STAYS: Duration = Duration::from_millis(500);
/// The number of the greeting by which the asking rank confirms the last answer.
const DONE: u32 = (1 << 29) - 1;

impl SocketEndpoint {
    /// Returns whether the last message of a lossy lane has no answer yet.
    pub(super) fn is_unanswered(lane: &Lane) -> bool {
        matches!(lane, Lane::Datagram(datagram) if datagram.is_unanswered())
    }

    /// Repeats messages whose answer is overdue.
    pub(super) fn ask_again(&mut self) -> Result<(), Error> {
        for (lane, path) in self.lanes.iter_mut().zip(&self.paths) {
            if let Lane::Datagram(datagram) = lane
                && datagram.is_unanswered()
            {
                datagram.repeat().map_err(|error| path.failed("ask again on", &error))?;
                datagram.stop_and_wait.iter_mut().for_each(|stop_and_wait| stop_and_wait.again());
            }
        }
        Ok(())
    }

    /// On lossy lanes with alternating messages: confirms the last answer, or stays until the other
    /// rank confirms it.
    pub(super) fn part(&mut self) -> Result<(), Error> {
        match self.lanes.first().and_then(Lane::stop_and_wait).map(|stop_and_wait| stop_and_wait.asks) {
            None => Ok(()),
            Some(true) => {
                for lane in 0..self.lanes.len() {
                    // A peer that has already finished needs no confirmation.
                    let _ = self.lanes[lane].greet(Some(DONE), false);
                }
                Ok(())
            }
            Some(false) => {
                let stays = Deadline::after(STAYS);
                // An error now no longer matters.
                while let Ok(next) = self.next() {
                    if next.is_some_and(|(_, header)| header.is_greeting) || stays.is_over() {
                        break;
                    }
                    if next.is_none() {
                        let mut socket = [PollFd::from_borrowed_fd(self.lanes[0].borrowed(), PollFlags::IN)];
                        let _ = poll(&mut socket, Some(&stays.timespec()));
                    }
                }
                Ok(())
            }
        }
    }
}
