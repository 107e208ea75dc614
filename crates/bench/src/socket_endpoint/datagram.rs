//! Datagrams, one for each message, sent alone or in lists. They may be lost, duplicated or
//! reordered.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::lists::Datagrams;
use super::stop_and_wait::StopAndWait;
use super::stream::nothing;
use super::track::Track;
use crate::endpoint::header::{HEADER_BYTES, Header, numbers};
use crate::endpoint::{FILL, Mark};

/// How many datagrams of a stream one call receives.
const AT_ONCE: usize = 64;
/// The most bytes of datagrams that pass the stack as one.
const TOGETHER_BYTES: usize = 65_536;
/// How often a greeting is sent on a lossy lane. Copies after the first that arrives are dropped.
const COPIES: usize = 3;
/// The first number of greetings without a given number: above all numbers that are given.
const UNNUMBERED: u32 = 3 << 27;

/// How datagrams are sent and received.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramMode {
    /// The size of a message in bytes.
    pub(super) size: usize,
    /// How many messages one call sends.
    pub(super) list: usize,
    /// Whether messages form a stream.
    pub(super) is_flood: bool,
    /// Whether messages can get lost.
    pub(super) is_lossy: bool,
    /// Whether a list passes the stack as one datagram.
    pub(super) offload: bool,
}

/// A datagram socket of this rank.
pub(super) struct Datagram {
    pub(super) socket: OwnedFd,
    pub(super) mode: DatagramMode,
    /// The numbers that its messages can carry, as a mask.
    pub(super) numbers: u32,
    out: Datagrams,
    /// The messages that wait in the list, and how many of them are sent.
    gathered: usize,
    flushed: usize,
    /// The number of the next message, and of the next greeting.
    pub(super) next: u32,
    next_greeting: u32,
    into: Datagrams,
    /// The datagrams that were received, the index of the next to be taken, and the offset of the
    /// next message in it.
    came: usize,
    taken: usize,
    offset: usize,
    /// The number of datagrams that were received in all.
    pub(super) received: u64,
    /// The length of a datagram that was received alone.
    alone: usize,
    /// The greeting that was taken last.
    greeted: Option<u32>,
    pub(super) track: Track,
    /// The state of messages that are answered one by one, on a lossy lane.
    pub(super) stop_and_wait: Option<StopAndWait>,
}

impl Datagram {
    pub(super) fn new(socket: OwnedFd, mode: DatagramMode, stop_and_wait: Option<StopAndWait>) -> Self {
        let DatagramMode { size, list, is_flood, offload, .. } = mode;
        let (count, room) = match (is_flood, offload) {
            (true, true) => (AT_ONCE / 4, TOGETHER_BYTES),
            (true, false) => ((AT_ONCE * 1500 / size).clamp(4, AT_ONCE), size + 1),
            // A byte more, so that a datagram that is too long is noticed.
            (false, _) => (1, size + 1),
        };
        Self {
            socket,
            mode,
            numbers: numbers(size),
            out: Datagrams::new(list, size, FILL),
            gathered: 0,
            flushed: 0,
            next: 0,
            next_greeting: UNNUMBERED,
            into: Datagrams::new(count, room, 0),
            came: 0,
            taken: 0,
            offset: 0,
            received: 0,
            alone: 0,
            greeted: None,
            track: Track::default(),
            stop_and_wait,
        }
    }

    /// Posts a message; returns `false` if there is no room. It is sent at once, unless it goes
    /// into a list.
    #[inline(always)]
    pub(super) fn send(&mut self, mark: Mark, waits: bool) -> io::Result<bool> {
        let number =
            self.stop_and_wait.as_ref().map_or(self.next, |stop_and_wait| stop_and_wait.next(self.next));
        let header = Header::of(mark, number);
        let is_sent = match self.mode.list {
            1 => {
                header.write(self.out.room_of(0));
                self.send_first(waits)?
            }
            _ => self.gather(header, waits)?,
        };
        if is_sent {
            self.next = self.next.wrapping_add(1);
            self.stop_and_wait.iter_mut().for_each(|stop_and_wait| stop_and_wait.sent(number));
        }
        Ok(is_sent)
    }

    /// Puts a message into the list, which is sent when it is full; returns `false` if there is no
    /// room.
    fn gather(&mut self, header: Header, waits: bool) -> io::Result<bool> {
        if !self.finish(waits)? {
            return Ok(false);
        }
        header.write(self.out.room_of(self.gathered));
        self.gathered += 1;
        if self.gathered == self.mode.list || header.mark == Mark::Last {
            let before = self.flushed;
            self.flush(waits)?;
            if self.flushed == before && self.gathered == 1 {
                self.gathered = 0;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the next message to send, if messages are sent one by one.
    pub(super) fn next_message(&mut self) -> &mut [u8] {
        self.out.room_of(0)
    }

    /// Returns the message that was taken last, if messages arrive one by one; it is empty before
    /// the first.
    pub(super) fn taken_message(&self) -> &[u8] {
        if self.alone == self.mode.size { &self.into.room(0)[..self.alone] } else { &[] }
    }

    /// Posts a greeting with a given number, or with the next one.
    pub(super) fn greet(&mut self, number: Option<u32>, waits: bool) -> io::Result<bool> {
        if !self.flush(waits)? {
            return Ok(false);
        }
        let number = number.unwrap_or_else(|| {
            self.next_greeting += 1;
            self.next_greeting
        });
        Header::greeting(number).write(self.out.room_of(0));
        let copies = if self.mode.is_lossy { COPIES } else { 1 };
        let mut is_sent = false;
        for _ in 0..copies {
            is_sent |= self.send_first(waits)?;
        }
        Ok(is_sent)
    }

    /// Sends the last message again, because it seems to be lost.
    #[cold]
    pub(super) fn repeat(&mut self) -> io::Result<()> {
        let message = self.out.room_of(0);
        let header = Header { is_repeated: true, ..Header::read(message) };
        header.write(message);
        self.send_first(false).map(drop)
    }

    #[inline(always)]
    fn send_first(&mut self, waits: bool) -> io::Result<bool> {
        let flags = if waits { SendFlags::empty() } else { SendFlags::DONTWAIT };
        match send(&self.socket, self.out.bytes_of(0..1), flags | SendFlags::NOSIGNAL) {
            Ok(_) => Ok(true),
            Err(error) => nothing(error.into(), false),
        }
    }

    /// Sends the rest of a list that was started; returns whether everything is sent.
    #[inline]
    pub(super) fn finish(&mut self, waits: bool) -> io::Result<bool> {
        if self.is_unfinished() { self.flush(waits) } else { Ok(true) }
    }

    /// Returns whether a part of a started list is left, or a full list waits.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        self.flushed > 0 || self.gathered == self.mode.list
    }

    /// Sends the messages of the list; returns whether everything is sent.
    #[inline]
    pub(super) fn flush(&mut self, waits: bool) -> io::Result<bool> {
        let range = self.flushed..self.gathered;
        let sent = match (range.len(), self.mode.offload) {
            (0, _) => Ok(0),
            (1, _) | (_, true) => {
                let flags = if waits { SendFlags::empty() } else { SendFlags::DONTWAIT };
                let bytes = self.out.bytes_of(range.clone());
                send(&self.socket, bytes, flags | SendFlags::NOSIGNAL)
                    .map(|_| range.len())
                    .map_err(io::Error::from)
            }
            (_, false) => {
                let flags = if waits { 0 } else { libc::MSG_DONTWAIT };
                self.out.send(&self.socket, range, flags | libc::MSG_NOSIGNAL)
            }
        };
        match sent {
            Ok(sent) => self.flushed += sent,
            Err(error) => return nothing(error, self.gathered == 0),
        }
        if self.flushed == self.gathered {
            (self.flushed, self.gathered) = (0, 0);
        }
        Ok(self.gathered == 0)
    }

    /// Receives what has arrived; with `waits`, waits for something to arrive. Returns `false` if
    /// nothing was received. Called when all messages were taken.
    #[inline(always)]
    pub(super) fn fill(&mut self, waits: bool) -> io::Result<bool> {
        (self.came, self.taken, self.offset) = (0, 0, 0);
        let came = if self.into.count() == 1 {
            let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
            recv(&self.socket, self.into.room_of(0), flags).map_err(io::Error::from).map(|(_, bytes)| {
                self.alone = bytes;
                1
            })
        } else {
            self.into.receive(&self.socket, if waits { 0 } else { libc::MSG_DONTWAIT })
        };
        match came {
            Ok(came) => {
                self.came = came;
                self.received += came as u64;
            }
            Err(error) => return nothing(error, false),
        }
        Ok(true)
    }

    /// Takes the next received message.
    #[inline(always)]
    pub(super) fn take(&mut self) -> io::Result<Option<Header>> {
        while self.taken < self.came {
            let next = if self.into.count() == 1 { self.header_alone() } else { self.next_header() };
            let Some(header) = next else { continue };
            if header.is_greeting {
                if self.greeted.replace(header.number) != Some(header.number) {
                    return Ok(Some(header));
                }
                continue;
            }
            if self.is_wanted(header)? {
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    /// Returns the header of a message that was received alone; `None` if its size is wrong.
    #[inline(always)]
    fn header_alone(&mut self) -> Option<Header> {
        let size = self.mode.size;
        self.taken = 1;
        // The rest of its buffer may hold an earlier message that was too long.
        (self.alone == size).then(|| Header::read(&self.into.room_of(0)[..size]))
    }

    /// Returns the header of the next message of several; `None` if the datagram is no message of
    /// this size.
    #[inline]
    fn next_header(&mut self) -> Option<Header> {
        let size = self.mode.size;
        let offset = self.offset;
        let bytes = self.into.received(self.taken);
        let is_whole = if self.mode.offload { bytes.len().is_multiple_of(size) } else { bytes.len() == size };
        let message = bytes.get(offset..offset + size).filter(|_| is_whole).map(Header::read);
        self.offset += size;
        if message.is_none() || self.offset >= bytes.len() {
            (self.taken, self.offset) = (self.taken + 1, 0);
        }
        message
    }

    /// Returns whether a message is wanted. Where messages alternate, an unwanted one may cause the
    /// last message to be repeated.
    #[inline(always)]
    fn is_wanted(&mut self, header: Header) -> io::Result<bool> {
        match &mut self.stop_and_wait {
            None => {
                if self.mode.is_lossy && self.mode.size >= HEADER_BYTES {
                    self.track.see(header.number);
                }
                Ok(true)
            }
            Some(stop_and_wait) => {
                let (is_wanted, is_asked_again) = stop_and_wait.hears(header, self.numbers);
                if is_asked_again {
                    self.repeat()?;
                }
                Ok(is_wanted)
            }
        }
    }

    /// Returns how many messages were given to the kernel.
    pub(super) fn posted(&self) -> u64 {
        u64::from(self.next - (self.gathered - self.flushed) as u32)
    }

    /// Returns whether the last message on a lossy lane asked for an answer that has not arrived.
    pub(super) fn is_unanswered(&self) -> bool {
        self.stop_and_wait.as_ref().is_some_and(|stop_and_wait| stop_and_wait.is_waiting(self.numbers))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Neither the datagram that is too long nor its rest in the buffer counts as a message.
    #[test]
    fn a_datagram_that_is_too_long_is_no_message() {
        let (peer, own) = UnixDatagram::pair().unwrap();
        let mode = DatagramMode { size: 1, list: 1, is_flood: false, is_lossy: true, offload: false };
        let mut datagram = Datagram::new(own.into(), mode, None);
        let mut message = [0];
        Header::of(Mark::More, 7).write(&mut message);
        for sent in [&[0xff, 0xff][..], &message] {
            assert_eq!(peer.send(sent).unwrap(), sent.len());
        }
        assert!(datagram.fill(false).unwrap());
        assert_eq!(datagram.take().unwrap(), None);
        assert!(datagram.fill(false).unwrap());
        assert_eq!(datagram.take().unwrap(), Some(Header::of(Mark::More, 7)));
    }
}
