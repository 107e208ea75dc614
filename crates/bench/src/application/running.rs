//! A program that runs: started with a supervisor, heard, and ended with all that it has started.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};

use super::kept::{Keeper, Kept};
use super::spec::Started;
use crate::Error;
use crate::process::child::{Process, Streams};
use crate::process::key::Key;
use crate::process::launcher::{Supervised, TOKEN_VARIABLE, Usage};

/// A program that runs. Dropping it ends it.
pub(super) struct Running {
    supervised: Supervised,
    output: ChildStdout,
    errors: ChildStderr,
    said: [Keeper; 2],
}

/// What a program has left behind.
pub(super) struct Finished {
    /// What it printed, and its errors.
    pub(super) said: [Kept; 2],
    /// How it ended and what it took; absent where it goes on or its supervisor was
    /// killed.
    pub(super) usage: Option<Usage>,
}

impl Running {
    /// Starts a program in a directory, which is removed with what is returned.
    pub(super) fn start(started: &Started, words: &[String], directory: &Path) -> Result<Self, Error> {
        Self::supervised(started, words, directory, Some("--remove"))
    }

    /// Starts a program in a directory that stays.
    pub(super) fn start_in(started: &Started, words: &[String], directory: &Path) -> Result<Self, Error> {
        Self::supervised(started, words, directory, None)
    }

    fn supervised(
        started: &Started,
        words: &[String],
        directory: &Path,
        option: Option<&str>,
    ) -> Result<Self, Error> {
        let mut all = started.supervisor.clone();
        all.extend(["--program-in".to_owned(), directory.to_string_lossy().into_owned()]);
        all.extend(option.into_iter().chain(["--"]).map(str::to_owned));
        all.extend(words.iter().cloned());
        let token = Key::generate()?.to_string();
        let variables = started.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let variables: Vec<_> = variables.chain([(TOKEN_VARIABLE, token.clone())]).collect();
        let (process, streams) = Process::start_guard(&all, &variables)
            .map_err(Error::system("start the supervisor of a program"))?;
        let Streams { input, output, errors } = streams;
        let supervised = Supervised::new(token, process, input);
        Ok(Self { supervised, output, errors, said: Default::default() })
    }

    /// Hears it until it has ended; whether it has, within so long.
    pub(super) fn has_ended_within(&mut self, patience: Duration) -> Result<bool, Error> {
        let deadline = Deadline::after(patience);
        loop {
            // Looked at first: what it printed before its end is then there to be read.
            let is_dead = self.supervised.is_dead();
            let open = self.take()?;
            if is_dead || Usage::is_at_end(self.said[0].end(), self.supervised.token()) {
                return Ok(true);
            }
            if deadline.is_over() {
                return Ok(false);
            }
            let streams = [self.output.as_fd(), self.errors.as_fd()];
            let open =
                streams.into_iter().zip(open).filter(|(_, is_open)| *is_open).map(|(stream, _)| stream);
            let wanted = open.chain(self.supervised.death());
            let mut wanted: Vec<_> =
                wanted.map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN)).collect();
            let sees_end = self.supervised.death().is_some();
            let patience = if sees_end { deadline } else { deadline.earlier(Deadline::after(LOOK_AGAIN)) };
            // A signal only makes it look again.
            let _ = poll(&mut wanted, Some(&patience.timespec()));
        }
    }

    /// What it has said so far, and what it took, once it has ended.
    pub(super) fn finished(&mut self) -> Finished {
        let [mut output, errors] = std::mem::take(&mut self.said).map(Keeper::kept);
        let bytes = output.text.len();
        // The supervisor prints into the same stream.
        self.supervised.take_announcement(&mut output.text);
        let usage = Usage::take(&mut output.text, self.supervised.token());
        output.bytes -= (bytes - output.text.len()) as u64;
        Finished { said: [output, errors], usage }
    }

    /// Takes in what it has printed; which of its two streams may bring more.
    fn take(&mut self) -> Result<[bool; 2], Error> {
        let streams: [&mut dyn Read; 2] = [&mut self.output, &mut self.errors];
        let mut open = [true; 2];
        let mut bytes = [0; 16 << 10];
        let mut heard: [Vec<u8>; 2] = Default::default();
        for ((stream, heard), is_open) in streams.into_iter().zip(&mut heard).zip(&mut open) {
            while heard.len() < HEARD_MAX {
                match stream.read(&mut bytes) {
                    Ok(0) => {
                        *is_open = false;
                        break;
                    }
                    Ok(count) => heard.extend_from_slice(&bytes[..count]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(cause) => {
                        return Err(Error::System { what: "hear a program".to_owned(), cause });
                    }
                }
            }
        }
        self.said.iter_mut().zip(&heard).for_each(|(said, heard)| said.take(heard));
        Ok(open)
    }
}

impl Drop for Running {
    /// Ends the program and what that has started.
    fn drop(&mut self) {
        if self.supervised.let_end() {
            // The line that names the program's process may not have been read yet.
            let _ = self.take();
            self.finished();
            self.supervised.clear_up();
        }
    }
}

/// Bytes of a stream that are taken in before the other one is looked at.
const HEARD_MAX: usize = 1 << 20;
/// How often its end is looked for, where the kernel does not tell of it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
