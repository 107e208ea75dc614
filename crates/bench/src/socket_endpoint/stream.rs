//! A connection whose bytes arrive in order: messages of the same length follow each other.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use super::zero_copy::ZeroCopyBuffers;
use crate::endpoint::header::Header;
use crate::endpoint::{FILL, Mark};

/// How many bytes of a stream one call receives: iperf3 reads 128 KiB. Many more would not fit into
/// a second-level cache.
const AT_ONCE: usize = 256 << 10;

/// A connection at one rank.
pub(super) struct Stream {
    pub(super) socket: OwnedFd,
    /// The size of a message in bytes.
    size: usize,
    /// The message being sent, which begins at `begin`, and how many bytes of it are not sent yet.
    out: Vec<u8>,
    begin: usize,
    unsent: usize,
    /// The number of the next message.
    next: u32,
    /// The messages that are lent to the kernel, if they are sent without a copy.
    pub(super) zero_copy: Option<Box<ZeroCopyBuffers>>,
    /// The bytes that were given to the kernel in all.
    pub(super) written: u64,
    /// Received messages, complete or partial: as many complete ones as fit.
    into: Vec<u8>,
    filled: usize,
    taken: usize,
    /// The position of the message that was taken last.
    last: Range<usize>,
    /// The bytes that were received in all.
    pub(super) received: u64,
    /// Whether a receive that waits wants a complete message.
    wants_whole: bool,
    /// Whether TCP holds small segments back until earlier data is acknowledged, and whether that
    /// is suspended.
    holds_back: bool,
    is_pushing: bool,
}

impl Stream {
    /// Creates one rank's side of a connection for messages of `size` bytes. The messages of a
    /// stream are received several at a time. Even if TCP `holds_back` small segments (Nagle's
    /// algorithm; RFC 1122, section 4.2.3.4), the last message of its kind is sent at once:
    /// otherwise it would wait about 40 ms for a delayed acknowledgement.
    pub(super) fn new(socket: OwnedFd, size: usize, is_flood: bool, holds_back: bool) -> Self {
        let messages = if is_flood { (AT_ONCE / size).max(1) } else { 1 };
        let out = vec![FILL; size];
        let into = vec![FILL; messages * size];
        Self {
            socket,
            size,
            out,
            begin: 0,
            unsent: 0,
            next: 0,
            zero_copy: None,
            written: 0,
            into,
            filled: 0,
            taken: 0,
            last: 0..0,
            received: 0,
            wants_whole: !is_flood,
            holds_back,
            is_pushing: false,
        }
    }

    /// Lends messages to the kernel instead of having them copied.
    pub(super) fn lending(mut self) -> Self {
        let (buffers, out) = ZeroCopyBuffers::new(self.size);
        (self.zero_copy, self.out) = (Some(Box::new(buffers)), out);
        self
    }

    /// Starts to send a message when the previous one is [finished](Self::finish); returns `false`
    /// if there is no room for any of it.
    #[inline(always)]
    pub(super) fn send(&mut self, mark: Mark, waits: bool) -> io::Result<bool> {
        let is_begun = self.finish(waits)? && self.begin(Header::of(mark, self.next), waits)?;
        self.next = self.next.wrapping_add(u32::from(is_begun));
        Ok(is_begun)
    }

    /// Sends a message that is not measured, in the same way.
    pub(super) fn greet(&mut self, number: Option<u32>, waits: bool) -> io::Result<bool> {
        Ok(self.finish(waits)? && self.begin(Header::greeting(number.unwrap_or_default()), waits)?)
    }

    #[inline(always)]
    fn begin(&mut self, header: Header, waits: bool) -> io::Result<bool> {
        let is_last = header.mark == Mark::Last;
        if self.holds_back && self.is_pushing != is_last {
            sockopt::set_tcp_nodelay(&self.socket, is_last)?;
            self.is_pushing = is_last;
        }
        if let Some(buffers) = &mut self.zero_copy {
            if !buffers.next(&self.socket, waits)? {
                return Ok(false);
            }
            self.begin = buffers.turn() * self.size;
        }
        header.write(&mut self.out[self.begin..self.begin + self.size]);
        self.unsent = self.size;
        if self.push(waits)? == 0 {
            self.unsent = 0;
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns the next message to send, or the message being sent.
    #[inline(always)]
    pub(super) fn next_message(&mut self) -> &mut [u8] {
        &mut self.out[self.begin..self.begin + self.size]
    }

    /// Returns the message that was taken last, until more is received; it is empty before the
    /// first.
    #[inline(always)]
    pub(super) fn taken_message(&self) -> &[u8] {
        &self.into[self.last.clone()]
    }

    /// Sends the rest of the last message; returns whether everything is sent.
    #[inline(always)]
    pub(super) fn finish(&mut self, waits: bool) -> io::Result<bool> {
        if self.unsent > 0 {
            self.push(waits)?;
        }
        Ok(self.unsent == 0)
    }

    /// Also waits until lent memory is returned.
    pub(super) fn flush(&mut self, waits: bool) -> io::Result<bool> {
        if !self.finish(waits)? {
            return Ok(false);
        }
        self.zero_copy.as_mut().map_or(Ok(true), |buffers| buffers.is_back(&self.socket))
    }

    /// Returns whether a part of the last message is left.
    #[inline(always)]
    pub(super) fn is_unfinished(&self) -> bool {
        self.unsent > 0
    }

    /// Returns how many messages the kernel has taken completely.
    pub(super) fn posted(&self) -> u64 {
        u64::from(self.next) - u64::from(self.is_unfinished())
    }

    #[inline(always)]
    fn push(&mut self, waits: bool) -> io::Result<usize> {
        let mut flags = if waits { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT };
        if self.zero_copy.is_some() {
            flags |= SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);
        }
        let end = self.begin + self.size;
        match send(&self.socket, &self.out[end - self.unsent..end], flags) {
            Ok(sent) => {
                self.unsent -= sent;
                self.written += sent as u64;
                if let Some(buffers) = &mut self.zero_copy {
                    buffers.took();
                }
                Ok(sent)
            }
            Err(Errno::NOBUFS) if let Some(buffers) = &mut self.zero_copy => {
                buffers.is_refused(&self.socket, waits)?;
                Ok(0)
            }
            Err(error) => nothing(error.into(), 0),
        }
    }

    /// Receives what has arrived; with `waits`, waits for something to arrive. Returns `false` if
    /// nothing was received. Called when no complete message is left, so there is room.
    #[inline(always)]
    pub(super) fn fill(&mut self, waits: bool) -> io::Result<bool> {
        let flags = match (waits, self.wants_whole) {
            (false, _) => RecvFlags::DONTWAIT,
            (true, false) => RecvFlags::empty(),
            (true, true) => RecvFlags::WAITALL,
        };
        match recv(&self.socket, &mut self.into[self.filled..], flags) {
            Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((received, _)) => {
                self.filled += received;
                self.received += received as u64;
                Ok(true)
            }
            Err(error) => nothing(error.into(), false),
        }
    }

    /// Takes the next complete message.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Header> {
        let next = self.taken + self.size;
        if next > self.filled {
            return None;
        }
        self.last = self.taken..next;
        let header = Header::read(&self.into[self.last.clone()]);
        self.taken = next;
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
        Some(header)
    }
}

/// Returns `nothing` for a call that did nothing without failing: it would have to wait, or a
/// signal came.
#[cold]
pub(super) fn nothing<T>(error: io::Error, nothing: T) -> io::Result<T> {
    match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(nothing),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair(size: usize, is_flood: bool) -> (Stream, Stream) {
        let (one, other) = UnixStream::pair().unwrap();
        let [one, other] = [one, other].map(|end| Stream::new(end.into(), size, is_flood, false));
        (one, other)
    }

    #[test]
    fn messages_arrive_whole_however_their_bytes_come() {
        for (size, is_flood) in [(1, false), (7, true), (4096, true), (1 << 20, false), (1 << 20, true)] {
            let (mut one, mut other) = pair(size, is_flood);
            let mut sent = 0;
            let mut seen = Vec::new();
            while seen.len() < 20 {
                if sent < 20 && one.finish(false).unwrap() {
                    let mark = if sent == 19 { Mark::Last } else { Mark::More };
                    sent += u32::from(one.send(mark, false).unwrap());
                } else {
                    one.finish(false).unwrap();
                }
                match other.take() {
                    Some(header) => seen.push(header),
                    None => drop(other.fill(false).unwrap()),
                }
            }
            let numbers =
                (0..20).map(|number| if number == 19 { (Mark::Last, 19) } else { (Mark::More, number) });
            assert!(seen.iter().map(|header| (header.mark, header.number)).eq(numbers), "{size} {is_flood}");
            assert_eq!(one.written, 20 * size as u64);
            assert!(!other.fill(false).unwrap() && other.take().is_none());
        }
    }

    /// Memory that is lent to the kernel is not written before the kernel returns it: each message
    /// keeps its own number.
    #[test]
    fn what_is_lent_arrives_as_it_was() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        let size = 100_000;
        let one = OwnedFd::from(one);
        crate::socket_endpoint::options::zero_copy(&one).unwrap();
        let mut one = Stream::new(one, size, true, false).lending();
        let mut other = Stream::new(other.into(), size, true, false);
        const MESSAGES: u32 = 1000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    let mark = if number + 1 == MESSAGES { Mark::Last } else { Mark::More };
                    while !one.send(mark, true).unwrap() {}
                }
                while !one.flush(false).unwrap() {
                    std::thread::yield_now();
                }
                let (calls, copied) = one.zero_copy.as_ref().unwrap().counts();
                assert!(calls >= MESSAGES.into() && copied <= calls, "{copied} of {calls}");
            });
            for number in 0..MESSAGES {
                let header = loop {
                    match other.take() {
                        Some(header) => break header,
                        None => assert!(other.fill(true).unwrap()),
                    }
                };
                assert_eq!(header.number, number);
            }
        });
    }

    #[test]
    fn the_last_message_is_not_held_back() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = Stream::new(socket.into(), 10, true, true);
        for (mark, is_pushed) in
            [(Mark::More, false), (Mark::Last, true), (Mark::More, false), (Mark::More, false)]
        {
            assert!(stream.send(mark, false).unwrap());
            assert_eq!(sockopt::tcp_nodelay(&stream.socket), Ok(is_pushed), "{mark:?}");
        }
    }

    #[test]
    fn a_full_connection_takes_nothing_and_one_that_is_closed_says_so() {
        let (mut one, mut other) = pair(1 << 16, false);
        let mut sent = 0;
        while one.send(Mark::More, false).unwrap() {
            sent += 1;
        }
        assert!(sent > 0 && sent < 1000);
        drop(other.socket);
        other = pair(1, false).0;
        let broken = one.send(Mark::Last, false);
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        drop(one);
        let (one, mut alone) = pair(8, false);
        drop(one);
        assert_eq!(alone.fill(true).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        drop(other);
    }
}
