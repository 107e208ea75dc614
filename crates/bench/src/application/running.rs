//! A running application: starts it with a supervisor, reads its output, and ends it with all
//! processes that it has started.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};

use super::kept::{Keeper, Said};
use super::spec::Started;
use crate::Error;
use crate::process::child::{Process, Streams};
use crate::process::launcher::{Supervised, TOKEN_VARIABLE, Usage};

/// A running application. Dropping it ends the application.
pub(super) struct Running {
    supervised: Supervised,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    said: [Keeper; 2],
}

/// The output and the end of an application.
pub(super) struct Finished {
    /// Its standard output and standard error.
    pub(super) said: [Said; 2],
    /// How it ended, its time and its memory; absent if it still runs, could not be started, or its
    /// supervisor was killed.
    pub(super) usage: Option<Usage>,
    /// How its supervisor ended, for errors.
    pub(super) supervisor: String,
}

impl Running {
    /// Starts an application in a directory, with these environment variables.
    pub(super) fn start(
        started: &Started,
        words: &[String],
        variables: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<Self, Error> {
        let mut all = started.supervisor.clone();
        all.extend(["--program-in".to_owned(), directory.to_string_lossy().into_owned(), "--".to_owned()]);
        all.extend(words.iter().cloned());
        let variables = variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let variables: Vec<_> = variables.chain([(TOKEN_VARIABLE, started.token.clone())]).collect();
        let failed = Error::system("start the supervisor of a program");
        let (process, streams) = Process::start_guard(&all, &variables).map_err(failed)?;
        let Streams { input, output, errors } = streams;
        let supervised = Supervised::new(started.token.clone(), process, input);
        let said = Default::default();
        Ok(Self { supervised, output: Some(output), errors: Some(errors), said })
    }

    /// Reads its output until it ends, for at most `patience`. Returns whether it has ended.
    pub(super) fn has_ended_within(&mut self, patience: Duration) -> Result<bool, Error> {
        let deadline = Deadline::after(patience);
        loop {
            // Before the read, so that the read takes the whole output of a dead process.
            let is_dead = self.supervised.is_dead();
            self.take()?;
            if is_dead || deadline.is_over() {
                return Ok(is_dead);
            }
            let output = self.output.as_ref().map(AsFd::as_fd);
            let errors = self.errors.as_ref().map(AsFd::as_fd);
            let wanted = output.into_iter().chain(errors).chain(self.supervised.death());
            let mut wanted: Vec<_> =
                wanted.map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN)).collect();
            let sees_end = self.supervised.death().is_some();
            let patience = if sees_end { deadline } else { deadline.earlier(Deadline::after(LOOK_AGAIN)) };
            // After a signal, the loop looks again.
            let _ = poll(&mut wanted, Some(&patience.timespec()));
        }
    }

    /// Its output so far, whole or only its start and end, and its usage if it has ended.
    pub(super) fn finished(&mut self, all: bool) -> Finished {
        let said = std::mem::take(&mut self.said);
        let [mut output, errors] = said.map(|keeper| if all { keeper } else { keeper.ends() }.said());
        let bytes = output.text.len();
        // The supervisor prints to the same stream.
        self.supervised.take_announcement(&mut output.text);
        let usage = Usage::take(&mut output.text, self.supervised.token());
        output.bytes = output.bytes.saturating_sub((bytes - output.text.len()) as u64);
        Finished { said: [output, errors], usage, supervisor: self.supervised.end() }
    }

    /// Reads its output.
    fn take(&mut self) -> Result<(), Error> {
        let [output, errors] = &mut self.said;
        take(&mut self.output, output)?;
        take(&mut self.errors, errors)
    }
}

/// Reads what is available from a stream. The stream is absent after its end.
fn take(stream: &mut Option<impl Read>, said: &mut Keeper) -> Result<(), Error> {
    let mut bytes = [0; 16 << 10];
    for _ in 0..READS_MAX {
        let Some(open) = stream else { return Ok(()) };
        match open.read(&mut bytes) {
            Ok(0) => *stream = None,
            Ok(count) => said.take(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(cause) => {
                return Err(Error::System { what: "read the output of a program".to_owned(), cause });
            }
        }
    }
    Ok(())
}

impl Drop for Running {
    /// Ends the application and the processes that it has started.
    fn drop(&mut self) {
        // The line that names the application's process may not have been read yet.
        let _ = self.take();
        self.finished(false);
        // Closed, so that the supervisor does not wait until someone reads the rest.
        self.output = None;
        self.errors = None;
        if self.supervised.let_end() {
            self.supervised.clear_up();
        }
    }
}

/// The most reads of one stream before the other stream is read.
const READS_MAX: usize = 64;
/// How often to check whether it has ended, if the kernel does not report that.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
