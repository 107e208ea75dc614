//! Tests of a server and its client's connection, in one process over loopback.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use measure::record::{Environment, Overhead};

use super::super::channel::Agent;
use super::super::dial::Peer;
use super::super::frame::Greeting;
use super::super::key::Key;
use super::super::message::{Limits, Reply};
use super::super::secure::Initiator;
use super::super::server::Server;
use super::super::sink::{Sink, SinkError};
use super::*;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern;
use crate::point::PointSpec;
use crate::process::agent::PointError;
use crate::process::message::{Calibrated, CalibrationStep, Description, Neighbour, Outcome, Prepared};

/// A time limit that suffices on a busy machine.
const SLACK: Duration = Duration::from_secs(20);

/// A worker that answers everything. Its points have one sample for each message.
#[derive(Default)]
struct Able {
    samples: u64,
    /// The signal that ends a point, where points wait for one.
    end: Option<Receiver<()>>,
}

impl Worker for Able {
    fn describe(&mut self, rank: u32) -> Result<Description, PointError> {
        Ok(Description {
            device: None,
            limits: Limits::default(),
            environment: Environment { rank, ..Environment::default() },
            overhead: Overhead { rank, ..Overhead::default() },
        })
    }

    fn prepare(&mut self, spec: &PointSpec) -> Result<Prepared, PointError> {
        if let crate::point::Length::Iterations(iterations) = spec.length {
            self.samples = iterations;
        }
        Ok(Prepared::default())
    }

    fn connect(&mut self, _: &[Neighbour]) -> Result<(), PointError> {
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, PointError> {
        if let Some(end) = &self.end {
            end.recv_timeout(SLACK).unwrap();
        }
        Ok(Outcome { samples: (0..self.samples).collect(), ..Outcome::default() })
    }

    fn calibrate(&mut self, _: &CalibrationStep) -> Result<Calibrated, PointError> {
        Err(PointError::NotMeasured("not here".to_owned()))
    }

    fn reset(&mut self) {}
}

struct Deaf;

impl Sink for Deaf {
    fn started(&mut self, _: &[super::super::message::Hello]) -> Result<(), SinkError> {
        Ok(())
    }
    fn point_started(&mut self, _: &PointSpec) {}
    fn point(
        &mut self,
        _: measure::record::Point,
        _: &[super::super::sink::KeptSamples],
    ) -> Result<(), SinkError> {
        Ok(())
    }
    fn agent_line(&mut self, _: &str, _: &str) {}
    fn notice(&mut self, _: &str) {}
    fn warning(&mut self, _: &str) {}
}

/// Returns the client's side of a server on another thread that allows this much silence.
fn serve(idle: Duration) -> (Agent, JoinHandle<Result<u64, Error>>) {
    serve_with(idle, Able::default())
}

/// [`serve`] with this worker.
fn serve_with(idle: Duration, worker: Able) -> (Agent, JoinHandle<Result<u64, Error>>) {
    let server =
        Server::listen((IpAddr::V4(Ipv4Addr::LOCALHOST), 0).into(), Key::generate().unwrap()).unwrap();
    let peer = Peer {
        host: "127.0.0.1".to_owned(),
        port: server.address().port(),
        key: server.key().clone(),
        wait: SLACK,
    };
    let thread = std::thread::spawn(move || {
        let mut session = server.wait(SLACK, None, &mut |text| panic!("{text}"))?;
        session.idle = idle;
        session.serve(worker, None, |error| panic!("{error}"))
    });
    (Agent::new(1, Box::new(peer.dial(None, &mut Deaf).unwrap())), thread)
}

/// Sends a request to one agent and waits for the reply, as the coordinator does.
fn ask(agent: &mut Agent, request: &Request) -> Result<Reply, Error> {
    agent.send(request)?;
    let deadline = Deadline::after(SLACK);
    loop {
        if let Some(reply) = agent.reply("testing")? {
            return Ok(reply);
        }
        assert!(wait(agent.interest(), deadline, None)?, "no answer");
        agent.transfer(&mut Deaf);
    }
}

/// Returns the request to prepare a point of this many messages.
fn point(iterations: u64) -> Request {
    let settings = Settings { iterations: Some(iterations), timeout_s: Some(1.0), ..Settings::default() };
    let plan = Plan::new("test", "Test").experiment("e", Pattern::PING_PONG, settings);
    Request::Prepare(Box::new(resolve(&plan, &Options::default()).unwrap().points.remove(0)))
}

const HELLO: Request = Request::Hello { rank: 1, ranks: 2 };

fn lost(server: JoinHandle<Result<u64, Error>>) -> String {
    let error = server.join().unwrap().unwrap_err().to_string();
    let (client, rest) = error.split_once(" 127.0.0.1:").unwrap();
    format!("{client} {}", rest.split_once(' ').unwrap().1)
}

#[test]
fn a_client_is_served_to_its_end_and_its_points_are_counted() {
    let (mut agent, server) = serve(SLACK);
    let Reply::Hello(hello) = ask(&mut agent, &HELLO).unwrap() else { panic!("no hello") };
    assert_eq!(hello.description.environment.rank, 1);
    for _ in 0..3 {
        assert!(matches!(ask(&mut agent, &point(5)).unwrap(), Reply::Prepared(_)));
        assert_eq!(ask(&mut agent, &Request::Connect { ranks: Vec::new() }).unwrap(), Reply::Connected);
        assert!(matches!(ask(&mut agent, &Request::Run).unwrap(), Reply::Done(_)));
        assert_eq!(ask(&mut agent, &Request::Reset).unwrap(), Reply::Idle);
    }
    agent.send(&Request::Quit).unwrap();
    agent.transfer(&mut Deaf);
    agent.finish(Deadline::after(SLACK));
    assert_eq!(server.join().unwrap().unwrap(), 3);
    let error = agent.reply("testing").err().or(ask(&mut agent, &HELLO).err()).unwrap().to_string();
    assert!(error.starts_with("the server 127.0.0.1:") && error.contains("closed the connection"), "{error}");
}

#[test]
fn what_comes_right_behind_the_handshake_is_heard() {
    let server =
        Server::listen((IpAddr::V4(Ipv4Addr::LOCALHOST), 0).into(), Key::generate().unwrap()).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SLACK)).unwrap();
    let mut initiator = Initiator::new(server.key());
    let thread = std::thread::spawn(move || {
        let session = server.wait(SLACK, None, &mut |text| panic!("{text}"))?;
        session.serve(Able::default(), None, |error| panic!("{error}"))
    });
    let mut bytes = [0; 1000];
    let mut channel = loop {
        stream.write_all(&initiator.outgoing()).unwrap();
        let count = stream.read(&mut bytes).unwrap();
        if let Some(channel) = initiator.take(&bytes[..count]).unwrap() {
            break channel;
        }
    };
    let mut stream_bytes = Greeting::ours().to_line().into_bytes();
    HELLO.to_frame().write(&mut stream_bytes).unwrap();
    Request::Quit.to_frame().write(&mut stream_bytes).unwrap();
    let mut all = initiator.outgoing();
    channel.sealer.seal(&Record::Stream(stream_bytes), &mut all);
    stream.write_all(&all).unwrap();
    assert_eq!(thread.join().unwrap().unwrap(), 0);
}

#[test]
fn a_frame_of_many_records_arrives_whole() {
    let (mut agent, server) = serve(SLACK);
    let count = 2_000_000;
    ask(&mut agent, &point(count)).unwrap();
    let Reply::Done(outcome) = ask(&mut agent, &Request::Run).unwrap() else { panic!("no outcome") };
    assert!(outcome.samples.len() as u64 == count && outcome.samples.is_sorted());
    agent.send(&Request::Quit).unwrap();
    agent.transfer(&mut Deaf);
    assert_eq!(server.join().unwrap().unwrap(), 1);
}

#[test]
fn a_client_that_says_nothing_is_given_up() {
    let (mut agent, server) = serve(Duration::from_secs(1));
    ask(&mut agent, &HELLO).unwrap();
    assert_eq!(
        lost(server),
        "the client sent nothing for 1 s before it had finished: 0 points had been measured for it"
    );
    assert!(ask(&mut agent, &HELLO).is_err());
}

#[test]
fn silence_during_a_point_is_what_must_be() {
    let idle = Duration::from_millis(400);
    let (mut agent, server) = serve(idle);
    ask(&mut agent, &point(5)).unwrap();
    wait(Vec::new(), Deadline::after(3 * idle), None).unwrap();
    ask(&mut agent, &Request::Run).unwrap();
    wait(Vec::new(), Deadline::after(3 * idle), None).unwrap();
    // The point is over: from here on, silence counts again.
    assert_eq!(ask(&mut agent, &Request::Reset).unwrap(), Reply::Idle);
    let expected = "the client sent nothing for 0 s before it had finished: 1 point had been measured for it";
    assert_eq!(lost(server), expected);
}

#[test]
fn a_client_that_goes_away_is_noticed_at_once() {
    let (mut agent, server) = serve(Duration::from_secs(3600));
    ask(&mut agent, &HELLO).unwrap();
    agent.kill();
    assert_eq!(
        lost(server),
        "the client closed the connection before it had finished: 0 points had been measured for it"
    );
}

#[test]
fn a_server_gives_signs_of_life_while_it_measures() {
    let (finish, end) = channel();
    let (mut agent, server) = serve_with(SLACK, Able { end: Some(end), ..Able::default() });
    ask(&mut agent, &point(5)).unwrap();
    agent.send(&Request::Run).unwrap();
    for _ in 0..3 {
        agent.probe();
        assert!(agent.is_mute());
        let deadline = Deadline::after(SLACK);
        while agent.is_mute() {
            assert!(wait(agent.interest(), deadline, None).unwrap(), "no sign of life");
            agent.transfer(&mut Deaf);
        }
        assert_eq!(agent.reply("testing").unwrap(), None);
    }
    finish.send(()).unwrap();
    agent.probe();
    let Reply::Done(_) = ask(&mut agent, &Request::Reset).unwrap() else { panic!("no outcome") };
    agent.send(&Request::Quit).unwrap();
    agent.transfer(&mut Deaf);
    assert_eq!(server.join().unwrap().unwrap(), 1);
}
