//! The sink: unpacks blocks and writes the files in them.

mod directory;
mod file;
mod receipt;
mod records;
mod unfinished;

use std::io;

use measure::clock::{Clock, Ticks};

pub(crate) use self::directory::Target;
use self::file::{Finished, Receiving};
pub(crate) use self::receipt::Receipt;
use self::records::Records;
use super::digest::{CHUNK_BYTES, DIGEST_BYTES};
use super::link::{ANSWER_BLOCK_BYTES, Inlet, Kind};
use super::name::Name;
use super::record::{ANSWER_BYTES_MAX, Answer, Attributes, Broken, Record};
use super::told::{Counts, EndTold};
use crate::Error;

/// The state of a sink.
struct Sink<'a> {
    inlet: &'a mut dyn Inlet,
    receipt: &'a mut Receipt,
    clock: Clock,
    counts: Counts,
    /// The current file.
    file: Option<Receiving>,
    first_file: Option<Ticks>,
    answers: Vec<u8>,
    /// Whether the next block comes over another connection.
    renews: bool,
    has_ended: bool,
    /// Whether a file was written through the page cache in spite of O_DIRECT.
    has_fallen_back: bool,
}

/// Receives until the source ends the transfer. The returned counts have the failures of single
/// files.
///
/// # Errors
/// If the link fails, or the source breaks the protocol.
pub(crate) fn receive(inlet: &mut dyn Inlet, receipt: &mut Receipt, clock: Clock) -> Result<EndTold, Error> {
    let began = clock.now();
    let mut sink = Sink {
        inlet,
        receipt,
        clock,
        counts: Counts::default(),
        file: None,
        first_file: None,
        answers: Vec::new(),
        renews: false,
        has_ended: false,
        has_fallen_back: false,
    };
    while !sink.has_ended {
        if let Err(error) = sink.block() {
            sink.abandon();
            return Err(error);
        }
    }
    let Sink { mut counts, first_file, mut answers, has_fallen_back, .. } = sink;
    if let Some(target) = &mut receipt.target {
        target.finish(&mut counts, receipt.syncs);
    }
    Answer::Done.write(&mut answers);
    inlet.answer(&answers)?;
    let ns = |ticks: Ticks| clock.ns_f64(ticks.since(began));
    let wall_ns = ns(clock.now());
    let first_file_ns = first_file.map(ns);
    let told = EndTold { counts, link: inlet.told(), wall_ns, first_file_ns, ..EndTold::default() };
    Ok(if has_fallen_back { told.not_direct("written") } else { told })
}

impl Sink<'_> {
    /// Ends a failed transfer. The received part of a long file is kept, so that the next transfer
    /// need not send it again.
    fn abandon(&mut self) {
        let is_long = self.file.as_ref().is_some_and(|file| file.written() >= CHUNK_BYTES);
        if !is_long {
            self.lose();
        }
        let Some(target) = &mut self.receipt.target else { return };
        // Complete files that wait for the disk get their names.
        target.settle(&mut self.counts, true);
    }

    /// Takes a block and handles its contents.
    fn block(&mut self) -> Result<(), Error> {
        let (kind, bytes) = self.inlet.take()?;
        match kind {
            Kind::Raw => self.data(0, bytes)?,
            Kind::Packed => {
                let mut records = Records::new(bytes);
                while let Some((record, at)) = records.next(self.inlet.block()).map_err(broken)? {
                    self.record(record, at, &mut records)?;
                }
            }
        }
        self.inlet.release()?;
        if !self.answers.is_empty() {
            self.inlet.answer(&self.answers)?;
            self.answers.clear();
        }
        if std::mem::take(&mut self.renews) { self.inlet.renew() } else { Ok(()) }
    }

    fn record(&mut self, record: Record, at: usize, records: &mut Records) -> Result<(), Error> {
        if self.file.is_some()
            != matches!(record, Record::Data { .. } | Record::Hole { .. } | Record::End { .. })
        {
            return Err(out_of_turn());
        }
        match record {
            Record::Data { bytes } => {
                let bytes = records.skip(bytes).map_err(broken)?;
                self.data(at, bytes)?;
            }
            Record::Hole { to } => {
                let Some(file) = &mut self.file else { return Err(out_of_turn()) };
                file.skip_to(to).map_err(broken)?;
            }
            Record::End { is_whole, digest } => self.end(is_whole, &digest)?,
            Record::Directory { parent, name, attributes } => self.directory(parent, name, attributes)?,
            Record::File { parent, name, attributes, size, from } => {
                if from > size {
                    return Err(broken(Broken("starts beyond the end of its file")));
                }
                self.counts.resumed_bytes = self.counts.resumed_bytes.saturating_add(from);
                self.begin(parent, name, attributes, (size, from))?;
            }
            Record::Offer { parent, name, attributes, size } => {
                self.offer(parent, &name, attributes, size)?;
            }
            Record::Same { parent, name, attributes } => self.same(parent, &name, attributes)?,
            Record::Link { parent, name, attributes, target } => {
                self.link(parent, &name, attributes, &target)?;
            }
            Record::Renew => self.renews = true,
            Record::Bye => self.has_ended = true,
        }
        Ok(())
    }

    fn directory(&mut self, parent: u32, name: Name, attributes: Attributes) -> Result<(), Error> {
        let Some(target) = &mut self.receipt.target else { return Ok(()) };
        match target.make(parent, name, attributes) {
            Ok(()) => self.counts.directories += 1,
            Err(directory::Refusal::Broken(why)) => return Err(broken(Broken(why))),
            Err(directory::Refusal::Failed(path, error)) => self.fail(&path, &error),
        }
        Ok(())
    }

    /// Begins a file.
    fn begin(
        &mut self,
        parent: u32,
        name: Name,
        attributes: Attributes,
        (size, from): (u64, u64),
    ) -> Result<(), Error> {
        let checksum = self.receipt.checksum;
        let Some(target) = &mut self.receipt.target else {
            self.file = Some(Receiving::nowhere(name, attributes, size, checksum));
            return Ok(());
        };
        if !target.has(parent) {
            return Err(broken(Broken("names a directory that was not sent")));
        }
        let opened =
            if self.counts.stopped.is_some() { None } else { Some(target.create(parent, &name, size, from)) };
        let mut file =
            Receiving::new(parent, name, attributes, (size, from), checksum, self.receipt.is_direct);
        match opened {
            Some(Ok(unfinished)) => file.goes_to(unfinished),
            Some(Err(error)) => {
                let path = target.path(parent, file.name());
                self.fail(&path, &error);
            }
            None => {}
        }
        self.file = Some(file);
        Ok(())
    }

    /// Takes bytes of the current file at this offset of the block.
    fn data(&mut self, at: usize, bytes: usize) -> Result<(), Error> {
        let Some(file) = &mut self.file else { return Err(out_of_turn()) };
        match file.take(self.inlet.block(), at, bytes).map_err(broken)? {
            Ok(()) => self.counts.bytes += bytes as u64,
            Err(error) => {
                self.lose();
                let path = self.file.as_ref().map(|file| self.path(file)).unwrap_or_default();
                self.fail(&path, &error);
            }
        }
        Ok(())
    }

    /// Discards the current file.
    fn lose(&mut self) {
        if let (Some(file), Some(target)) = (&mut self.file, &mut self.receipt.target)
            && let Some(lost) = file.lose()
        {
            target.discard(file.parent(), &lost);
        }
    }

    /// Returns the path of a file, for messages.
    fn path(&self, file: &Receiving) -> String {
        let target = self.receipt.target.as_ref();
        target.map_or_else(|| file.name().to_string(), |target| target.path(file.parent(), file.name()))
    }

    /// Ends the current file.
    fn end(&mut self, is_whole: bool, digest: &[u8; DIGEST_BYTES]) -> Result<(), Error> {
        let Some(mut file) = self.file.take() else { return Err(out_of_turn()) };
        self.has_fallen_back |= file.has_fallen_back();
        match file.finish(self.receipt, is_whole, digest) {
            Ok(Finished::Lost) => {}
            Ok(Finished::Named(dressed)) => {
                self.counts.files += 1;
                self.first_file.get_or_insert_with(|| self.clock.now());
                if let Err(error) = dressed {
                    let path = self.path(&file);
                    self.counts.remark(&format!("{path}: its permissions and time are not kept: {error}"));
                }
            }
            Err(error) => {
                let path = self.path(&file);
                self.fail(&path, &error);
            }
        }
        if let Some(target) = &mut self.receipt.target {
            target.settle(&mut self.counts, false);
        }
        Ok(())
    }

    /// Sets the attributes of a file that the sink already has.
    fn same(&mut self, parent: u32, name: &Name, attributes: Attributes) -> Result<(), Error> {
        let is_done = self.attempt(parent, name, |target| target.dress(parent, name, &attributes))?;
        self.counts.present += u64::from(is_done);
        Ok(())
    }

    /// Answers an offer.
    fn offer(&mut self, parent: u32, name: &Name, attributes: Attributes, size: u64) -> Result<(), Error> {
        let answer = match &mut self.receipt.target {
            Some(target) if !target.has(parent) => {
                return Err(broken(Broken("names a directory that was not sent")));
            }
            Some(target) => target.answer(parent, name, (attributes, size), self.receipt.compares),
            None => Answer::Wants,
        };
        self.counts.present += u64::from(answer == Answer::Has);
        if self.answers.len() + ANSWER_BYTES_MAX > ANSWER_BLOCK_BYTES {
            self.inlet.answer(&self.answers)?;
            self.answers.clear();
        }
        answer.write(&mut self.answers);
        Ok(())
    }

    fn link(&mut self, parent: u32, name: &Name, attributes: Attributes, text: &[u8]) -> Result<(), Error> {
        let is_done = self.attempt(parent, name, |target| target.link(parent, name, attributes, text))?;
        self.counts.links += u64::from(is_done);
        Ok(())
    }

    /// Does something with a name in a directory of the target, if there is a target. Returns
    /// whether it succeeded. A failure is reported.
    ///
    /// # Errors
    /// If the source did not send the directory.
    fn attempt(
        &mut self,
        parent: u32,
        name: &Name,
        what: impl FnOnce(&mut Target) -> io::Result<()>,
    ) -> Result<bool, Error> {
        let Some(target) = &mut self.receipt.target else { return Ok(false) };
        if !target.has(parent) {
            return Err(broken(Broken("names a directory that was not sent")));
        }
        let Err(error) = what(target) else { return Ok(true) };
        let path = target.path(parent, name);
        self.fail(&path, &error);
        Ok(false)
    }

    /// Reports a path that cannot be written. If nothing more can be written, tells the source to
    /// stop.
    fn fail(&mut self, path: &str, error: &io::Error) {
        if self.counts.stopped.is_some() {
            return;
        }
        let sentence = format!("{path}: not written: {error}");
        self.counts.fail(&sentence);
        if is_final(error) {
            self.counts.stopped = Some(sentence.clone());
            Answer::Stop { words: sentence }.write(&mut self.answers);
        }
    }
}

/// Whether an error ends the whole transfer: the disk is full, read-only or broken.
fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
        || error.raw_os_error() == Some(libc::EIO)
}

fn broken(broken: Broken) -> Error {
    Error::Transfer {
        words: format!("the source sent a record that {}: it is not rdmascope of this version", broken.0),
    }
}

fn out_of_turn() -> Error {
    broken(Broken("is out of order"))
}
