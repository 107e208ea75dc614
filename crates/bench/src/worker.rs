//! The work of an agent for its coordinator: it sets up points on a device, runs their patterns and
//! computes the statistics.

mod description;

use std::ffi::OsString;
use std::time::Duration;

use conditions::{Arranger, Host, Leave, Place};
use measure::clock::{Clock, Skew, StampCost, Ticks};
use measure::conditions::{Condition, Wanted};
use measure::record::{Environment, Overhead};
use measure::samples::RawSamples;
use verbs::{LinkModel, Provider};

use crate::Error;
use crate::calibrate::Line;
use crate::endpoint::kind::{ConnectedEndpoints, PreparedEndpoints, Site};
use crate::endpoints;
use crate::fault::{PointError, out_of_order, unreadable};
use crate::mpi_endpoint::RankMpi;
pub use crate::mpi_endpoint::{MpiOptions, UcxLog};
use crate::point::{PointSpec, Telling, TransferSpec};
use crate::process::agent::Worker;
use crate::process::message::{
    Calibrated, CalibrationStep, Description, Limits, Neighbour, Outcome, Prepared,
};
use crate::rank_clock::RankClock;
pub use crate::socket_endpoint::{Net, SocketOptions};
use crate::transfer;
pub use crate::verbs_endpoint::{LocalPort, PortOptions, check, find};
use crate::verbs_endpoint::{Open, RankDevice};

/// A rank that measures on this host.
pub struct LocalWorker {
    device: RankDevice,
    mpi: RankMpi,
    sockets: SocketOptions,
    /// The link of the software device for points that name none.
    link: Option<LinkModel>,
    /// Whether a plan may name directories for files.
    may_write: bool,
    /// The directory into which it receives files, even if plans may not name directories.
    receives_into: Option<OsString>,
    tell: fn(&str),
    rank_clock: RankClock,
    pinned: Option<Vec<u32>>,
    rank: u32,
    arranger: Arranger,
    line: Option<Line>,
    point: Stage,
    /// The start of the point. The time limit is for the whole point.
    began: Ticks,
}

/// The state of a point.
enum Stage {
    Idle,
    Prepared(Box<PointSpec>, Box<dyn PreparedEndpoints>),
    Connected(Box<PointSpec>, Box<dyn ConnectedEndpoints>),
}

impl LocalWorker {
    /// A worker with this clock, on the named device, or on the device that
    /// [`choose`](crate::choice::choose) prefers; without providers, on no device. The device is
    /// opened when the coordinator asks for its description, so that an error reaches the
    /// coordinator. `skew` adds an error to its clock, for tests.
    pub fn new(
        clock: Clock,
        providers: &'static [&'static Provider],
        device: Option<String>,
        options: PortOptions,
        pinned: Option<Vec<u32>>,
        skew: Option<Skew>,
    ) -> Self {
        let rank_clock = RankClock::new(clock, skew);
        let line = None;
        let point = Stage::Idle;
        let arranger = Arranger::new(Host::here(), Leave::Own, |_| {});
        Self {
            device: RankDevice::new(providers, device, options),
            mpi: RankMpi::new(MpiOptions::default()),
            sockets: SocketOptions::default(),
            link: None,
            may_write: true,
            receives_into: None,
            tell: |_| {},
            rank_clock,
            pinned,
            rank: 0,
            arranger,
            line,
            point,
            began: clock.now(),
        }
    }

    /// Sets what applies the environments of its points.
    #[must_use]
    pub fn arranged_by(mut self, arranger: Arranger) -> Self {
        self.arranger = arranger;
        self
    }

    /// Sets the options of MPI, for a worker that a launcher of MPI has started.
    #[must_use]
    pub fn with_mpi(mut self, options: MpiOptions) -> Self {
        self.mpi = RankMpi::new(options);
        self
    }

    /// Sets the link of its software device, for points that name no link.
    #[must_use]
    pub fn over_link(mut self, link: Option<LinkModel>) -> Self {
        self.link = link;
        self
    }

    /// Sets how its sockets are bound.
    #[must_use]
    pub fn with_sockets(mut self, sockets: SocketOptions) -> Self {
        self.sockets = sockets;
        self
    }

    /// Forbids files at places that a plan names, and programs. A plan of a client may measure
    /// here, but nothing else.
    #[must_use]
    pub fn without_files(mut self) -> Self {
        self.may_write = false;
        self
    }

    /// Sets the function that prints a line while a point is measured.
    #[must_use]
    pub fn telling(mut self, tell: fn(&str)) -> Self {
        self.tell = tell;
        self
    }

    /// Sets the directory into which it receives files from any sender.
    #[must_use]
    pub fn receiving_into(mut self, directory: Option<OsString>) -> Self {
        self.receives_into = directory;
        self
    }

    /// Restricts a transfer of a client on this host: files may only arrive in the directory that
    /// the user of this host has named.
    fn allowed(&self, asked: &TransferSpec) -> Result<TransferSpec, PointError> {
        let refused = |why: &str| Err(PointError::NotMeasured(why.to_owned()));
        if self.rank == 0 {
            return refused("a server that was started by hand only receives files, it sends none");
        }
        match (&self.receives_into, &asked.to) {
            (Some(own), None) => {
                let telling = Telling { arrival: true, ..asked.telling };
                Ok(TransferSpec { to: Some(own.clone()), telling, ..asked.clone() })
            }
            (Some(_), Some(_)) => refused(OWN_DIRECTORY),
            (None, _) => refused(NO_TRANSFERS),
        }
    }

    fn take(&mut self) -> Stage {
        std::mem::replace(&mut self.point, Stage::Idle)
    }
}

impl Worker for LocalWorker {
    fn describe(&mut self, rank: u32) -> Result<Description, PointError> {
        self.rank = rank;
        let cost = StampCost::measure(&self.rank_clock.clock);
        let not_locked = RawSamples::new(1 << 17).map_err(Error::from)?.not_locked().map(str::to_owned);
        let overhead = Overhead {
            rank,
            clock: self.rank_clock.clock.name().to_owned(),
            tick_hz: self.rank_clock.clock.tick_hz(),
            tick_error_ppm: self.rank_clock.clock.tick_error_ppm(),
            stamp_ns: cost.stamp_ns,
            empty_loop_ns: cost.empty_loop_ns,
            one_way_ns: Some(cost.one_way_ns),
            not_locked,
        };
        let mut environment = Environment::capture(rank, self.pinned.clone());
        self.arranger.describe(&mut environment);
        if let Some((library, path)) = self.mpi.library() {
            let facts = environment.facts.entry("mpi".to_owned()).or_default();
            facts.insert("library".to_owned(), library);
            facts.insert("library_path".to_owned(), path);
        }
        if self.device.is_none() {
            // The points of this run need no device.
            return Ok(Description { device: None, limits: Limits::default(), environment, overhead });
        }
        let Open { context, port, reason } = self.device.open()?;
        Ok(Description {
            device: Some(description::device(context, port, rank, reason)?),
            limits: description::limits(context, port)?,
            environment,
            overhead,
        })
    }

    fn become_rank(&mut self, rank: u32, cpu: Option<u32>) -> Result<(), PointError> {
        self.rank = rank;
        if let Some(cpu) = cpu {
            conditions::pin(&[cpu]).map_err(|error| {
                PointError::Failed(format!("rank {rank} cannot be pinned to CPU {cpu}: {error}"))
            })?;
            self.pinned = Some(vec![cpu]);
        }
        Ok(())
    }

    fn arrange(&mut self, wanted: &Wanted, ranks: &[u32]) -> Vec<Condition> {
        let device = self.device.name().map(str::to_owned);
        let rank = self.rank;
        let pinned = self.pinned.clone();
        let ranks = ranks.to_vec();
        let interfaces = || self.sockets.net.ipoib_interfaces();
        let ipoib = wanted.ipoib_mode.map(|_| interfaces()).unwrap_or_default();
        self.arranger.arrange(wanted, &Place { rank, pinned, ranks, device, ipoib })
    }

    fn verify(&mut self) -> Vec<Condition> {
        self.arranger.verify(self.rank)
    }

    fn prepare(&mut self, spec: &PointSpec) -> Result<Prepared, PointError> {
        self.reset();
        if let Some(pinned) = &self.pinned {
            // The guard of another rank may have moved this rank to another control group since its
            // environment was applied.
            conditions::pin(pinned).map_err(|error| {
                PointError::Failed(format!("rank {} could not go back to its {error}", self.rank))
            })?;
        }
        if !self.may_write && (spec.sink_dir.is_some() || transfer::makes_files(spec)) {
            return Err(PointError::NotMeasured(NO_FILES.to_owned()));
        }
        if !self.may_write && (spec.application.is_some() || spec.tool.is_some()) {
            return Err(PointError::NotMeasured(NO_PROGRAMS.to_owned()));
        }
        let linked;
        let spec = match self.link.filter(|_| spec.link.is_none() && spec.message.endpoint.is_verbs()) {
            Some(link) => {
                linked = PointSpec { link: Some(link), ..spec.clone() };
                &linked
            }
            None => spec,
        };
        let own;
        let spec = match &spec.transfer {
            Some(asked) if !self.may_write => {
                own = PointSpec { transfer: Some(Box::new(self.allowed(asked)?)), ..spec.clone() };
                &own
            }
            _ => spec,
        };
        self.began = self.rank_clock.clock.now();
        let topology = spec.topology();
        let endpoints = endpoints::prepare(&mut Site {
            spec,
            topology: &topology,
            rank: self.rank,
            rank_clock: &self.rank_clock,
            sockets: &self.sockets,
            device: &mut self.device,
            mpi: &mut self.mpi,
            tell: self.tell,
        })?;
        let prepared = endpoints.prepared(topology.ranks)?;
        self.point = Stage::Prepared(Box::new(spec.clone()), endpoints);
        Ok(prepared)
    }

    fn connect(&mut self, ranks: &[Neighbour]) -> Result<(), PointError> {
        let Stage::Prepared(spec, prepared) = self.take() else { return Err(out_of_order("connect")) };
        let connected = prepared.connect(ranks)?;
        self.point = Stage::Connected(spec, connected);
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, PointError> {
        // The endpoints stay until the other ranks have finished too.
        let Stage::Connected(spec, endpoints) = &mut self.point else { return Err(out_of_order("run")) };
        let clock = self.rank_clock.clock;
        let spent_s = clock.ns_f64(clock.now().since(self.began)) / 1e9;
        let left = Duration::try_from_secs_f64((spec.timeout_s - spent_s).max(0.0)).unwrap_or(Duration::MAX);
        endpoints.measure(spec, self.rank, left, &self.rank_clock)
    }

    fn tend(&mut self) -> bool {
        let Stage::Connected(spec, _) = &self.point else { return false };
        let is_mpi = spec.message.endpoint.is_mpi();
        if is_mpi {
            self.mpi.progress();
        }
        is_mpi
    }

    fn calibrate(&mut self, step: &CalibrationStep) -> Result<Calibrated, PointError> {
        match step {
            CalibrationStep::Offer => {
                let (line, handle) = Line::offer()?;
                self.line = Some(line);
                Ok(Calibrated::Offered { handle: serde_json::to_value(handle).map_err(unreadable)? })
            }
            CalibrationStep::Open { handle } => {
                let handle = serde_json::from_value(handle.clone()).map_err(unreadable)?;
                self.line = Some(Line::open(&handle)?);
                Ok(Calibrated::Opened)
            }
            CalibrationStep::Run => {
                let Some(line) = &mut self.line else { return Err(out_of_order("calibrate")) };
                Ok(Calibrated::Measured { one_way_ns: line.run(self.rank_clock.clock)? })
            }
        }
    }

    fn reset(&mut self) {
        self.point = Stage::Idle;
    }
}

/// Why a server does not receive files into a directory that its client names.
const OWN_DIRECTORY: &str =
    "the server already names the directory for the files: leave --to out on the client";
/// Why a server receives no files.
const NO_TRANSFERS: &str = "the server was not started to receive files: start it with `rdmascope transfer --listen \
                            ADDRESS --to DIR`";
/// Why a server starts no programs.
const NO_PROGRAMS: &str = "a server that was started by hand starts no programs for its client: start both ranks with one \
                           command (--local, or --hosts and --via)";
/// Why a server keeps no files.
const NO_FILES: &str = "a server that was started by hand writes no files for its client: leave out sink_dir, and the files \
                        are measured and removed, or start both ranks with --hosts and --via";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, Plan, resolve};

    /// A client with the key of a server may measure, but nothing else.
    #[test]
    fn a_server_writes_no_files_and_starts_no_programs() {
        let program = "[[application]]\nname = \"a\"\ncommand = [\"true\"]\nlauncher = \"none\"\n\
                       [[application.metric]]\nname = \"t\"\npattern = '(?<value>1)'\n";
        for (experiment, what) in [
            ("pattern = \"application\"\naxes = { application = \"a\" }", "starts no programs"),
            (
                "pattern = \"stream\"\nduration = \"1s\"\naxes = { endpoint = \"tcp\", tool = \"qperf\" }",
                "starts no programs",
            ),
            ("pattern = \"pipeline\"\nsink_dir = \"/tmp\"\naxes = { endpoint = \"tcp\" }", "writes no files"),
        ] {
            let text =
                format!("name = \"x\"\ntitle = \"X\"\n{program}[[experiment]]\nname = \"e\"\n{experiment}\n");
            let plan = Plan::parse(&text, "x.toml", std::path::Path::new(".")).unwrap();
            let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
            let mut worker =
                LocalWorker::new(Clock::monotonic(), &[], None, PortOptions::default(), None, None)
                    .without_files();
            let refused = worker.prepare(&spec).unwrap_err();
            assert!(matches!(&refused, PointError::NotMeasured(why) if why.contains(what)), "{refused:?}");
        }
    }
}
