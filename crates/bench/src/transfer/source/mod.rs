//! The source: walks trees and packs their files into blocks.

mod file;
mod packer;
mod walk;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use measure::clock::{Clock, Ticks};

use self::file::Contents;
pub(super) use self::file::Opened;
use self::packer::Packer;
use self::walk::{Found, Walker};
use super::digest::{CHUNK_BYTES, Checksum, DIGEST_BYTES, Digest};
use super::link::Outlet;
use super::name::Name;
use super::record::{Answer, Attributes, Record};
use super::told::{Counts, EndTold};
use super::watch::Watch;
use crate::Error;

/// What is sent, and how.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) what: What,
    pub(crate) checksum: Checksum,
    /// Whether files are read with O_DIRECT.
    pub(crate) is_direct: bool,
    /// Whether the source first asks the sink which files it already has.
    pub(crate) resumes: bool,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Files, links, and directories with their contents.
    Paths(Vec<PathBuf>),
    /// `files` files of `bytes` bytes each, which exist only in memory.
    Memory { files: u64, bytes: u64 },
}

/// The most offers without an answer.
const OFFERS_MAX: usize = 1024;

/// The state of a source.
pub(crate) struct Source<'a> {
    packer: Packer<'a>,
    sending: &'a Sending,
    clock: Clock,
    began: Ticks,
    counts: Counts,
    first_file: Option<Ticks>,
    /// Whether a file has begun.
    has_begun: bool,
    /// The offered files, in the order of their answers.
    offered: VecDeque<Offered>,
    /// The answers to the first of them that are not handled yet.
    answers: VecDeque<Answer>,
    is_done: bool,
}

/// An offered file.
struct Offered {
    directory: u32,
    name: Name,
}

/// Sends everything, and waits until the sink is done. The returned counts have the failures of
/// single files.
///
/// # Errors
/// If the link fails, or the sink breaks the protocol.
pub(crate) fn send(
    outlet: &mut dyn Outlet,
    sending: &Sending,
    watch: Watch,
    clock: Clock,
) -> Result<EndTold, Error> {
    let mut source = Source {
        packer: Packer::new(outlet, watch),
        sending,
        clock,
        began: clock.now(),
        counts: Counts::default(),
        first_file: None,
        has_begun: false,
        offered: VecDeque::new(),
        answers: VecDeque::new(),
        is_done: false,
    };
    match &sending.what {
        What::Paths(paths) => source.send_paths(paths)?,
        What::Memory { files, bytes } => source.send_memory(*files, *bytes)?,
    }
    source.packer.put(&Record::Bye)?;
    source.packer.flush()?;
    while !source.is_done {
        source.hear(true)?;
    }
    source.packer.watch.look(true);
    let ns = |ticks: Ticks| clock.ns_f64(ticks.since(source.began));
    let told = EndTold {
        wall_ns: ns(clock.now()),
        first_file_ns: source.first_file.map(ns),
        link: source.packer.told(),
        counts: source.counts,
        ..EndTold::default()
    };
    Ok(if source.packer.has_fallen_back() { told.not_direct("read") } else { told })
}

impl Source<'_> {
    fn send_paths(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        let mut walker = Walker::new(paths);
        while let Some(found) = walker.next(&mut self.counts) {
            match found {
                Found::Directory { parent, name, attributes } => {
                    self.packer.put(&Record::Directory { parent, name, attributes })?;
                    self.counts.directories += 1;
                }
                Found::Link { parent, name, attributes, target } => {
                    self.packer.put(&Record::Link { parent, name, attributes, target })?;
                    self.counts.links += 1;
                }
                Found::File { directory, name } if self.sending.resumes => {
                    self.offer(&mut walker, directory, name)?;
                }
                Found::File { directory, name } => self.send_found(&mut walker, directory, &name, None)?,
                Found::Elsewhere => self.settle_all(&mut walker)?,
            }
            self.hear(false)?;
            if self.counts.stopped.is_some() {
                return Ok(());
            }
        }
        self.settle_all(&mut walker)
    }

    /// Waits for the answers to all offered files, and handles them.
    fn settle_all(&mut self, walker: &mut Walker) -> Result<(), Error> {
        while !self.offered.is_empty() && self.counts.stopped.is_none() {
            self.settle(walker)?;
        }
        Ok(())
    }

    /// Offers a file to the sink.
    fn offer(&mut self, walker: &mut Walker, directory: u32, name: Name) -> Result<(), Error> {
        let Some(file) = self.open(walker, directory, &name) else { return Ok(()) };
        let Opened { attributes, size, .. } = file;
        let parent = walker.number(directory);
        self.packer.put(&Record::Offer { parent, name: name.clone(), attributes, size })?;
        self.offered.push_back(Offered { directory, name });
        while self.offered.len() >= OFFERS_MAX && self.counts.stopped.is_none() {
            self.settle(walker)?;
        }
        Ok(())
    }

    /// Waits for the answer to the first offered file, and handles it.
    fn settle(&mut self, walker: &mut Walker) -> Result<(), Error> {
        while self.answers.is_empty() && self.counts.stopped.is_none() {
            self.packer.flush()?;
            self.hear(true)?;
        }
        let (Some(answer), Some(Offered { directory, name })) =
            (self.answers.pop_front(), self.offered.pop_front())
        else {
            return Ok(());
        };
        match answer {
            Answer::Has => self.counts.present += 1,
            Answer::Part { digests } => self.send_found(walker, directory, &name, Some(&digests))?,
            Answer::Holds { digest } => self.compare(walker, directory, &name, &digest)?,
            _ => self.send_found(walker, directory, &name, None)?,
        }
        Ok(())
    }

    /// Sends a file, unless its contents have the checksum of the sink's file. In that case only
    /// the attributes are sent.
    fn compare(
        &mut self,
        walker: &mut Walker,
        directory: u32,
        name: &Name,
        digest: &[u8; DIGEST_BYTES],
    ) -> Result<(), Error> {
        let Some(file) = self.open(walker, directory, name) else { return Ok(()) };
        let is_same = file.contains(digest).unwrap_or(false) && file.is_as_it_was().is_ok();
        if !is_same {
            return self.send_found(walker, directory, name, None);
        }
        let parent = walker.number(directory);
        self.packer.put(&Record::Same { parent, name: name.clone(), attributes: file.attributes })?;
        self.counts.present += 1;
        Ok(())
    }

    /// Takes the answers that have arrived. Waits for some if `waits` is set.
    fn hear(&mut self, waits: bool) -> Result<(), Error> {
        while let Some(bytes) = self.packer.heard() {
            self.understand(&bytes)?;
        }
        match self.packer.outlet().answers(waits)? {
            Some(bytes) => self.understand(&bytes),
            None => Ok(()),
        }
    }

    /// Decodes answers.
    fn understand(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut at = 0;
        while at < bytes.len() {
            let (answer, length) = Answer::read(&bytes[at..]).map_err(|broken| Error::Transfer {
                words: format!(
                    "the sink sent an answer that {}: it is not rdmascope of this version",
                    broken.0
                ),
            })?;
            at += length;
            match answer {
                Answer::Done => self.is_done = true,
                Answer::Stop { words } => _ = self.counts.stopped.get_or_insert(words),
                answer if self.answers.len() < self.offered.len() => self.answers.push_back(answer),
                _ => {
                    let words =
                        "the sink sent an answer that was not asked for: it is not rdmascope of this version";
                    return Err(Error::Transfer { words: words.to_owned() });
                }
            }
        }
        Ok(())
    }

    /// Opens a file, or reports why it cannot be opened.
    fn open(&mut self, walker: &mut Walker, directory: u32, name: &Name) -> Option<Opened> {
        let opened =
            walker.open(directory).and_then(|directory| Opened::new(directory, name, self.sending.is_direct));
        match opened {
            Ok(opened) => Some(opened),
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::NotFound => "it was removed before it could be read".to_owned(),
                    _ => error.to_string(),
                };
                self.counts.fail(&format!("{}: not sent: {why}", walker.path(directory, name)));
                None
            }
        }
    }

    /// Sends a file. `has` are the checksums of the chunks that the sink has. Leading chunks that
    /// agree are not sent.
    fn send_found(
        &mut self,
        walker: &mut Walker,
        directory: u32,
        name: &Name,
        has: Option<&[[u8; DIGEST_BYTES]]>,
    ) -> Result<(), Error> {
        let Some(file) = self.open(walker, directory, name) else { return Ok(()) };
        let from = match has {
            Some(digests) => file.same_chunks(digests).unwrap_or(0) * CHUNK_BYTES,
            None => 0,
        };
        let parent = walker.number(directory);
        let Opened { attributes, size, .. } = file;
        self.begin(&Record::File { parent, name: name.clone(), attributes, size, from })?;
        let mut digest = Digest::new(self.sending.checksum);
        let sent = self.packer.send(&Contents::File(&file), from, &mut digest)?;
        let ended = sent.and_then(|bytes| {
            self.counts.bytes += bytes;
            file.is_as_it_was()
        });
        self.hear(false)?;
        // If the sink has stopped the transfer, its reason is reported instead.
        if let Err(why) = &ended
            && self.counts.stopped.is_none()
        {
            self.counts.fail(&format!("{}: not sent: {why}", walker.path(directory, name)));
        }
        self.counts.resumed_bytes += from;
        if ended.is_ok() {
            self.packer.watch.file(|| walker.path(directory, name));
        }
        self.end(ended.is_ok(), &digest)
    }

    fn send_memory(&mut self, files: u64, bytes: u64) -> Result<(), Error> {
        for number in 0..files {
            let name = Name::new(format!("{number}").as_bytes()).unwrap_or_else(|_| unreachable!("digits"));
            let attributes = Attributes { mode: 0o600, seconds: 0, nanoseconds: 0 };
            self.begin(&Record::File { parent: 0, name, attributes, size: bytes, from: 0 })?;
            let mut digest = Digest::new(self.sending.checksum);
            let sent = self.packer.send(&Contents::Memory { bytes }, 0, &mut digest)?;
            let sent = sent.unwrap_or(0);
            self.counts.bytes += sent;
            self.end(sent == bytes, &digest)?;
            if self.counts.stopped.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Begins a file, over a new connection if each file has its own.
    fn begin(&mut self, file: &Record) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_begun, true) && self.packer.outlet().renews() {
            self.packer.put(&Record::Renew)?;
            self.packer.flush()?;
            self.packer.outlet().renew()?;
        }
        self.packer.put(file)
    }

    fn end(&mut self, is_whole: bool, digest: &Digest) -> Result<(), Error> {
        self.packer.put(&Record::End { is_whole, digest: digest.finish() })?;
        self.counts.files += u64::from(is_whole);
        if self.first_file.is_none() {
            self.packer.flush()?;
            self.first_file = Some(self.clock.now());
        }
        self.hear(false)
    }
}
