//! The link to a rank that a launcher has started.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::super::connection::Connection;
use super::super::link::{Link, Wants};
use super::introduction::Introduction;
use super::launched::Launched;

/// The link to a rank. Dropping the last link of a launcher ends the launcher.
#[derive(Debug)]
pub(super) struct RankLink {
    launched: Rc<RefCell<Launched>>,
    introduction: Introduction,
    connection: Connection,
    /// The outputs of the launcher. Only the link to rank 0 has them, and passes their lines on.
    ears: [Option<OwnedFd>; 2],
    /// Readable once the launcher has ended; absent once that is known.
    death: Option<OwnedFd>,
    /// Lines of the launcher that were not read yet.
    lines: VecDeque<u8>,
}

impl RankLink {
    pub(super) fn new(
        launched: Rc<RefCell<Launched>>,
        introduction: Introduction,
        connection: Connection,
        rank: u32,
    ) -> Self {
        let ears = if rank == 0 { launched.borrow().ears() } else { [None, None] };
        let death = launched.borrow().death();
        Self { launched, introduction, connection, ears, death, lines: VecDeque::new() }
    }

    /// Closes the connection if the launcher has ended. In a normal end, the rank ends first.
    fn mind_launcher(&mut self) {
        let has_ended = self.launched.borrow().has_ended();
        if has_ended && self.death.take().is_some() && !self.connection.has_ended() {
            self.connection.lose(format!("has lost its launcher {}", self.launched.borrow().name));
        }
    }

    /// Reads the lines of the launcher.
    fn hear(&mut self) {
        if self.ears.iter().all(Option::is_none) {
            return;
        }
        let mut launched = self.launched.borrow_mut();
        launched.take_in();
        self.lines.extend(launched.lines().into_iter().flat_map(|line| (line + "\n").into_bytes()));
        for (ear, speaks) in self.ears.iter_mut().zip(launched.speaks()) {
            ear.take_if(|_| !speaks);
        }
    }
}

impl Link for RankLink {
    fn name(&self, rank: u32) -> String {
        let Introduction { pid, host, .. } = &self.introduction;
        format!("rank {rank} (pid {pid} on {host})")
    }

    fn speaker(&self, rank: u32) -> String {
        if rank == 0 { self.launched.borrow().name.clone() } else { format!("rank {rank}") }
    }

    fn is_replaceable(&self) -> bool {
        true
    }

    fn ends_with_others(&self) -> bool {
        true
    }

    fn interest(&self, wants: Wants) -> Vec<PollFd<'_>> {
        let ears = self.ears.iter().flatten().filter(|_| wants.lines);
        let death = self.death.iter().filter(|_| wants.to_read);
        let both = ears.chain(death).map(|fd| PollFd::new(fd, PollFlags::IN));
        self.connection.interest(wants).into_iter().chain(both).collect()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.connection.flush()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.mind_launcher();
        self.connection.read(bytes)
    }

    fn read_lines(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.hear();
        if !self.lines.is_empty() {
            return self.lines.read(bytes);
        }
        match self.connection.read_lines(bytes) {
            Ok(0) if self.ears.iter().any(Option::is_some) => Err(io::ErrorKind::WouldBlock.into()),
            other => other,
        }
    }

    fn probe(&mut self) {
        self.connection.probe();
    }

    fn is_mute(&self) -> bool {
        self.connection.is_mute()
    }

    fn is_dead(&self) -> bool {
        self.connection.is_dead()
    }

    fn end(&self, deadline: Deadline) -> String {
        let mut launched = self.launched.borrow_mut();
        let has_ended = launched.has_ended();
        match launched.signal(Deadline::after(SIGNAL_TOLD)) {
            Some(signal) => format!("was killed by signal {signal}"),
            None if self.introduction.lacks_pmi => format!("{}{NO_PMI}", self.connection.end(deadline)),
            None if has_ended => self.connection.end(deadline),
            None => format!("{}{}", self.connection.end(deadline), launched.quoted()),
        }
    }

    fn finish(&mut self, deadline: Deadline) {
        self.connection.finish(deadline);
    }

    fn kill(&mut self) {
        self.connection.kill();
    }
}

/// Why a rank of Slurm ends when it initialises Open MPI. With MPICH, each rank would be a world of
/// its own.
const NO_PMI: &str = " (Slurm gave the rank no PMI, without which Open MPI does not start: add --mpi=pmix, or --mpi=pmi2 for \
                      MPICH, to srun)";
/// The wait for the launcher to report the signal. Open MPI does so a second after a rank was
/// killed.
const SIGNAL_TOLD: Duration = Duration::from_millis(2500);
