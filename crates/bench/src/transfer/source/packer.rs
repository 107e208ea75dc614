//! Fills blocks with records and with the bytes of files, which are read directly into their place.

use std::collections::VecDeque;
use std::io;

use super::file::{Contents, Opened, shrank};
use crate::Error;
use crate::transfer::block::ALIGNMENT;
use crate::transfer::digest::Digest;
use crate::transfer::link::{Kind, Outlet};
use crate::transfer::record::{Answer, DATA_BYTES, Record};
use crate::transfer::told::LinkTold;
use crate::transfer::watch::Watch;

/// The fewest blocks left of a file that are sent as raw blocks: with fewer, too many blocks would
/// be half empty.
const RAW_BLOCKS_MIN: u64 = 4;
/// The fewest bytes of a file that are put into the rest of a block.
const DATA_BYTES_MIN: usize = 512;

/// The block that is being filled.
pub(super) struct Packer<'a> {
    outlet: &'a mut dyn Outlet,
    pub(super) watch: Watch,
    /// The number of bytes in the block.
    at: usize,
    record: Vec<u8>,
    /// The answers that arrived while a long file was sent.
    heard: VecDeque<Vec<u8>>,
    /// Whether a file was read through the page cache in spite of O_DIRECT.
    has_fallen_back: bool,
}

/// Why no more of a file is sent after the sink has stopped the transfer. The reason that the sink
/// gave is reported instead.
const STOPPED: &str = "the sink takes no more";

/// How many bytes of a file were sent, or why no more can be.
type Sent = Result<u64, String>;

impl<'a> Packer<'a> {
    pub(super) fn new(outlet: &'a mut dyn Outlet, watch: Watch) -> Self {
        Self { outlet, watch, at: 0, record: Vec::new(), heard: VecDeque::new(), has_fallen_back: false }
    }

    pub(super) fn outlet(&mut self) -> &mut dyn Outlet {
        self.outlet
    }

    /// Returns answers that arrived while a file was sent.
    pub(super) fn heard(&mut self) -> Option<Vec<u8>> {
        self.heard.pop_front()
    }

    /// Whether a file was read through the page cache in spite of O_DIRECT.
    pub(super) fn has_fallen_back(&self) -> bool {
        self.has_fallen_back
    }

    /// Whether the sink has stopped the transfer. Keeps all answers for [`Packer::heard`].
    fn is_stopped(&mut self) -> Result<bool, Error> {
        let Some(bytes) = self.outlet.answers(false)? else { return Ok(false) };
        let mut at = 0;
        let mut stops = false;
        while let Ok((answer, length)) = Answer::read(&bytes[at..]) {
            stops |= matches!(answer, Answer::Stop { .. });
            at += length;
        }
        self.heard.push_back(bytes);
        Ok(stops)
    }

    pub(super) fn told(&self) -> LinkTold {
        self.outlet.told()
    }

    /// Adds a record. If the block has no room, sends it and takes another one.
    pub(super) fn put(&mut self, record: &Record) -> Result<(), Error> {
        self.record.clear();
        record.write(&mut self.record);
        if self.at + self.record.len() > self.outlet.block_bytes() {
            self.flush()?;
        }
        let at = self.at;
        self.outlet.room()?.put(at, &self.record).map_err(Error::system("fill a block"))?;
        self.at += self.record.len();
        Ok(())
    }

    /// Sends the block, unless it is empty.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let bytes = std::mem::take(&mut self.at);
        if bytes == 0 { Ok(()) } else { self.outlet.post(Kind::Packed, bytes) }
    }

    /// Sends the data and the holes of a file from an offset on.
    pub(super) fn send(
        &mut self,
        contents: &Contents<'_>,
        from: u64,
        digest: &mut Digest,
    ) -> Result<Sent, Error> {
        let file = match contents {
            Contents::Memory { bytes } => return self.send_memory(*bytes, digest).map(Ok),
            Contents::File(file) => *file,
        };
        let mut at = from;
        let mut sent = 0;
        while let Some((begin, end)) = file.data_from(at) {
            if begin > at {
                self.put(&Record::Hole { to: begin })?;
                digest.move_to(begin);
            }
            match self.send_range(file, begin, end, digest)? {
                Ok(bytes) => sent += bytes,
                Err(why) => return Ok(Err(why)),
            }
            at = end;
        }
        if at < file.size {
            self.put(&Record::Hole { to: file.size })?;
            digest.move_to(file.size);
        }
        Ok(Ok(sent))
    }

    fn send_range(
        &mut self,
        file: &Opened,
        begin: u64,
        end: u64,
        digest: &mut Digest,
    ) -> Result<Sent, Error> {
        let block = self.outlet.block_bytes() as u64;
        let mut at = begin;
        while at < end {
            let left = end - at;
            let is_long = left >= RAW_BLOCKS_MIN * block || (file.is_direct && left >= ALIGNMENT);
            let read = match is_long && (!file.is_direct || at.is_multiple_of(ALIGNMENT)) {
                true if self.is_stopped()? => return Ok(Err(STOPPED.to_owned())),
                true => self.raw(file, at, end, digest)?,
                false => self.data(file, at, end, digest)?,
            };
            match read {
                Ok(0) => return Ok(Err(shrank(file.size, at))),
                Ok(bytes) => at += bytes as u64,
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        Ok(Ok(at - begin))
    }

    /// Sends a raw block of the file.
    fn raw(
        &mut self,
        file: &Opened,
        at: u64,
        end: u64,
        digest: &mut Digest,
    ) -> Result<io::Result<usize>, Error> {
        self.flush()?;
        let block = self.outlet.block_bytes();
        let left = usize::try_from(end - at).unwrap_or(usize::MAX).min(block);
        // O_DIRECT reads whole pages. The rest of the last page is beyond the end of the file.
        let is_direct = file.is_direct && !self.has_fallen_back && file.read_directly(true).is_ok();
        self.has_fallen_back |= file.is_direct && !is_direct;
        if !is_direct
            && !digest.is_some()
            && let Some(sent) = self.outlet.post_file(file.fd(), at, left)?
        {
            self.watch.sent(left);
            // A file that has become shorter fails as a whole.
            return Ok(sent.map(|bytes| if bytes < left { 0 } else { bytes }));
        }
        let asked = if is_direct { left.next_multiple_of(ALIGNMENT as usize).min(block) } else { left };
        let room = self.outlet.room()?;
        let mut read = room.read_file(0, asked, file.fd(), at).map(|bytes| bytes.min(left));
        if is_direct && file.read_directly(false).is_ok() && read.is_err() {
            self.has_fallen_back = true;
            read = room.read_file(0, left, file.fd(), at);
        }
        if let Ok(bytes @ 1..) = read {
            room.digest(0, bytes, digest).map_err(Error::system("read a block"))?;
            self.outlet.post(Kind::Raw, bytes)?;
            self.watch.sent(bytes);
        }
        Ok(read)
    }

    /// Adds bytes of the file to the block, with a record before them.
    fn data(
        &mut self,
        file: &Opened,
        at: u64,
        end: u64,
        digest: &mut Digest,
    ) -> Result<io::Result<usize>, Error> {
        let block = self.outlet.block_bytes();
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        if block.saturating_sub(self.at + DATA_BYTES) < left.min(DATA_BYTES_MIN) {
            self.flush()?;
        }
        let begin = self.at + DATA_BYTES;
        let room = self.outlet.room()?;
        let read = room.read_file(begin, left.min(block - begin), file.fd(), at);
        if let Ok(bytes @ 1..) = read {
            room.digest(begin, bytes, digest).map_err(Error::system("read a block"))?;
            self.head(bytes)?;
        }
        Ok(read)
    }

    /// Writes the record before `bytes` bytes of a file that are already in the block, and advances
    /// beyond them.
    fn head(&mut self, bytes: usize) -> Result<(), Error> {
        self.record.clear();
        Record::Data { bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }.write(&mut self.record);
        let at = self.at;
        self.outlet.room()?.put(at, &self.record).map_err(Error::system("fill a block"))?;
        self.at += DATA_BYTES + bytes;
        self.watch.sent(bytes);
        Ok(())
    }

    fn send_memory(&mut self, bytes: u64, digest: &mut Digest) -> Result<u64, Error> {
        let block = self.outlet.block_bytes();
        let mut left = bytes;
        while left > 0 && !(left < bytes && self.is_stopped()?) {
            let is_long = left >= RAW_BLOCKS_MIN * block as u64;
            let begin = if is_long { 0 } else { self.at + DATA_BYTES };
            if is_long || block.saturating_sub(begin) < DATA_BYTES_MIN {
                self.flush()?;
            }
            let begin = if is_long { 0 } else { self.at + DATA_BYTES };
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(block - begin);
            let room = self.outlet.room()?;
            room.digest(begin, part, digest).map_err(Error::system("read a block"))?;
            match is_long {
                true => self.outlet.post(Kind::Raw, part)?,
                false => self.head(part)?,
            }
            left -= part as u64;
        }
        Ok(bytes - left)
    }
}
