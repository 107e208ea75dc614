//! The coordinator with a server that was started by hand. The coordinator cannot start another
//! one, so it waits after a failed point, and a lost server ends the run.

use std::net::{IpAddr, Ipv4Addr};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bench::Error;
use bench::axis;
use bench::plan::{Options, Plan, Settings, resolve};
use bench::point::{Pattern, PointSpec};
use bench::process::agent::{PointError, Worker};
use bench::process::coordinator::{self, Launch, Summary};
use bench::process::dial::Peer;
use bench::process::key::Key;
use bench::process::message::{
    Calibrated, CalibrationStep, Description, Limits, Neighbour, Outcome, Prepared,
};
use bench::process::server::Server;
use measure::record::{Environment, Overhead};

use super::{SLACK, Seen, fake, without_pids};

/// Time limit of a point here. The coordinator gives a server ten seconds more.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The behaviour of the server at point 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Deed {
    /// Measures.
    Good,
    /// Waits for the peer until the time limit of the point, and reports that.
    Wait,
    /// Fails at once.
    Fail,
    /// Never answers.
    Sleep,
}

struct Hand {
    deed: Deed,
    rank: u32,
    point: u64,
    others: u64,
}

impl Worker for Hand {
    fn describe(&mut self, rank: u32) -> Result<Description, PointError> {
        self.rank = rank;
        Ok(Description {
            device: None,
            limits: Limits::default(),
            environment: Environment { rank, hostname: "here".to_owned(), ..Environment::default() },
            overhead: Overhead { rank, ..Overhead::default() },
        })
    }

    fn prepare(&mut self, spec: &PointSpec) -> Result<Prepared, PointError> {
        self.point = spec.id;
        Ok(fake::told(self.rank, spec))
    }

    fn connect(&mut self, ranks: &[Neighbour]) -> Result<(), PointError> {
        self.others = fake::others(self.rank, ranks);
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, PointError> {
        match self.deed {
            _ if self.point != 1 => {}
            Deed::Good => {}
            Deed::Wait => {
                std::thread::sleep(TIMEOUT);
                return Err(PointError::Failed("the peer was not there".to_owned()));
            }
            Deed::Fail => return Err(PointError::Failed("told to fail".to_owned())),
            Deed::Sleep => std::thread::sleep(Duration::from_secs(1000)),
        }
        Ok(fake::outcome(self.rank, self.others))
    }

    /// Fails, as for memory of another user.
    fn calibrate(&mut self, _: &CalibrationStep) -> Result<Calibrated, PointError> {
        Err(PointError::Failed("Permission denied".to_owned()))
    }

    fn reset(&mut self) {}
}

/// Three points between an agent and a server with these behaviours.
fn run(mode: &str, deed: Deed) -> (Result<Summary, String>, Seen, JoinHandle<Result<u64, Error>>) {
    let server =
        Server::listen((IpAddr::V4(Ipv4Addr::LOCALHOST), 0).into(), Key::generate().unwrap()).unwrap();
    let peer = Peer {
        host: "localhost".to_owned(),
        port: server.address().port(),
        key: server.key().clone(),
        wait: SLACK,
    };
    let place = format!("localhost:{}", peer.port);
    let thread = std::thread::spawn(move || {
        let session = server.wait(SLACK, None, &mut |text| panic!("{text}"))?;
        let hand = Hand { deed, rank: 0, point: 0, others: 0 };
        // The process of a real server would end here, but this is the process of the test.
        session.serve(hand, None, |_| {
            loop {
                std::thread::park();
            }
        })
    });
    let settings =
        Settings { iterations: Some(10), timeout_s: Some(TIMEOUT.as_secs_f64()), ..Settings::default() }
            .axis(axis::SIZE_BYTES.values([4, 8, 16]));
    let plan = Plan::new("test", "Test").experiment("e", Pattern::PING_PONG, settings);
    let points = resolve(&plan, &Options::default()).unwrap().points;
    let token = fake::token();
    let launch = Launch { server: Some(peer), ..fake::launch(&token, &[mode, "not-started"]) };
    let mut seen = Seen::default();
    let result = coordinator::run(&points, &launch, None, &mut seen);
    assert_eq!(fake::left_behind(&token), Vec::<u32>::new(), "agents of {mode}");
    let result = result.map_err(|err| without_pids(&err.to_string()).replace(&place, "SERVER"));
    seen.points.iter().zip(0..).for_each(|(point, id)| assert_eq!(point.id, id));
    (result, seen, thread)
}

const fn summary(measured: u64, failed: u64) -> Summary {
    Summary { measured, not_measured: 0, failed }
}

#[test]
fn points_are_measured_between_an_agent_and_a_server() {
    let (result, seen, server) = run("good", Deed::Good);
    assert_eq!(result, Ok(summary(3, 0)));
    assert_eq!(server.join().unwrap().unwrap(), 3);
    let ranks: Vec<u32> = seen.started.iter().map(|hello| hello.description.environment.rank).collect();
    assert_eq!(ranks, [0, 1]);
    assert!(seen.points.iter().all(|point| point.counters["other_ranks"] == 1), "they knew of each other");
    // There is no warning, because the user cannot change that the server has another user.
    assert!(seen.points.iter().all(|point| point.calibration.is_none()));
    assert_eq!((seen.warnings.len(), seen.notices.len()), (0, 0), "{:?} {:?}", seen.warnings, seen.notices);
}

#[test]
fn a_point_that_fails_here_is_waited_out_there_and_the_run_goes_on() {
    let (result, seen, server) = run("fail-run-1", Deed::Wait);
    assert_eq!(result, Ok(summary(2, 1)));
    assert_eq!(seen.errors(), ["rank 0: told to fail"]);
    assert_eq!(seen.notices.len(), 1, "{:?}", seen.notices);
    let notice = &seen.notices[0];
    assert!(
        notice.starts_with("the other rank failed: waiting up to ")
            && notice.contains("the server localhost:"),
        "{notice}"
    );
    assert_eq!(server.join().unwrap().unwrap(), 2);
}

#[test]
fn a_point_that_fails_there_is_a_point() {
    let (result, seen, server) = run("good", Deed::Fail);
    assert_eq!(result, Ok(summary(2, 1)));
    assert_eq!(seen.errors(), ["rank 1: told to fail"]);
    assert_eq!(server.join().unwrap().unwrap(), 2);
}

#[test]
fn a_server_that_never_comes_back_ends_the_run_in_time() {
    let start = Instant::now();
    let (result, seen, _server) = run("good", Deed::Sleep);
    let error = "the server SERVER gave no answer within 12 s while measuring point 1: the run ends here, because the server \
                 SERVER can only be started again by hand; the points that had ended are kept";
    assert_eq!(result, Err(error.to_owned()));
    assert_eq!(seen.points.len(), 2, "the first point and the failed one");
    assert!(start.elapsed() < Duration::from_secs(12) + SLACK);
}

#[test]
fn an_agent_that_dies_beside_a_server_ends_the_run() {
    let (result, seen, _server) = run("die-run-1", Deed::Wait);
    let error = "the agent of rank 0 on die-run-1 (pid N) was killed by signal 9 while measuring point 1; it last said \"set \
                 up\": the run ends here, because the server SERVER can only be started again by hand; the points that had ended \
                 are kept";
    assert_eq!(result, Err(error.to_owned()));
    assert_eq!(seen.points.len(), 2);
}
