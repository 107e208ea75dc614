//! Failures that a real device (softdev) reports, as the endpoint describes them.

use std::sync::Arc;

use measure::clock::Clock;
use verbs::{
    Completion, Connection, Context, Initialisation, QueuePair, QueuePairOptions, ReadyToSend, Route,
    SendRequest,
};

use super::super::PortOptions;
use super::super::endpoint::VerbsEndpoint;
use super::super::tests::{ends, two};
use super::*;
use crate::Error;
use crate::axis;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::{Endpoint, Mark};
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::{Pattern, Poll};

fn context() -> (Context, Arc<LocalPort>) {
    let context = verbs::devices(&softdev::PROVIDER).unwrap()[0].open().unwrap();
    let port = LocalPort::find(&context, PortOptions::default()).unwrap();
    (context, Arc::new(port))
}

fn spec(service: Service, poll: Poll) -> PartSpec {
    let settings = Settings::default()
        .axis(axis::SERVICE.value(service))
        .axis(axis::POLL.value(poll))
        .axis(axis::SIZE_BYTES.value(64));
    let plan = Plan::new("failures", "Failures").experiment("one", Pattern::PING_PONG, settings);
    let mut spec = resolve(&plan, &Options::default()).unwrap().points.remove(0).topology().parts.remove(0);
    spec.message.rx_depth = 4;
    spec
}

/// Returns two connected endpoints, the second of which believes in another point.
fn pair(ours: &PartSpec, theirs: &PartSpec) -> (VerbsEndpoint, VerbsEndpoint) {
    two(ends(&context().0, &[ours, theirs]))
}

/// Sends once, and waits for an answer that does not arrive.
fn fail(endpoint: &mut VerbsEndpoint, timeout_s: f64) -> String {
    endpoint.start(timeout_s).unwrap();
    let failed = endpoint.send(Mark::Last).and_then(|()| endpoint.receive());
    failed.expect_err("no rank answers").to_string()
}

#[track_caller]
fn assert_words(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[test]
fn a_peer_that_has_gone_is_status_12_and_not_what_was_flushed() {
    for poll in [Poll::Busy, Poll::Event] {
        let spec = spec(Service::Rc, poll);
        let (mut us, them) = pair(&spec, &spec);
        drop(them);
        let text = fail(&mut us, 20.0);
        assert_words(
            &text,
            &[
                "message 0 could not be sent: transport retry counter exceeded",
                "(status 12)",
                "nothing came back to 8 attempts of 67 ms each",
                "the peer has ended",
                "(try -m 2048)",
                "(RC from GID ",
                "path MTU 4096 B)",
            ],
        );
        assert!(!text.contains("4791"), "softdev sends no UDP: {text}");
    }
}

#[test]
fn a_message_longer_than_its_receive_is_status_9_here_and_1_there() {
    let ours = spec(Service::Rc, Poll::Busy);
    let mut theirs = ours.clone();
    theirs.message.size_bytes = 8;
    let (mut us, mut them) = pair(&ours, &theirs);
    let text = fail(&mut us, 20.0);
    assert_words(&text, &["(status 9)", "longer than the posted receive", "same settings"]);
    them.start(1.0).unwrap();
    let text = them.receive().expect_err("it did not fit").to_string();
    assert_words(&text, &["a message could not be received", "(status 1)", "same version on both hosts"]);
}

#[test]
fn a_peer_that_takes_nothing_is_told_from_one_that_has_gone() {
    // The peer has four posted receives, and posts no more.
    let spec = spec(Service::Rc, Poll::Busy);
    let (mut us, _them) = pair(&spec, &spec);
    us.start(1.0).unwrap();
    let sent = (0..8).try_for_each(|_| us.send(Mark::Last)).and_then(|()| us.flush());
    let text = sent.expect_err("only four fit").to_string();
    assert_words(
        &text,
        &["nothing was acknowledged for 1.", "posts no receives (RNR, which is retried for ever); or, "],
    );
}

#[test]
fn what_an_unreliable_service_loses_is_told_as_lost() {
    for (service, name) in [(Service::Uc, "(UC from"), (Service::Ud, "(UD from")] {
        let spec = spec(service, Poll::Busy);
        let (mut us, them) = pair(&spec, &spec);
        drop(them);
        let text = fail(&mut us, 0.5);
        assert_words(
            &text,
            &[
                "nothing arrived for ",
                " s, which is the point's time limit",
                "the peer has ended, its address is",
                "this service does not repeat: measure RC",
                name,
            ],
        );
    }
}

/// Returns a queue pair that is connected to itself, and gives up as soon as a receive is missing.
fn impatient(context: &Context, port: &LocalPort) -> (QueuePair<ReadyToSend>, verbs::CompletionQueue) {
    let domain = context.protection_domain().unwrap();
    let queue = context.completion_queue(8, None).unwrap();
    let options = QueuePairOptions {
        service: verbs::Service::Rc,
        max_send_wr: 4,
        max_recv_wr: 4,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let qp = domain.queue_pair(&options, &queue, &queue).unwrap();
    let qp = qp.init(&Initialisation { port: 1, pkey_index: 0, qkey: 0, access: 0 }).unwrap();
    let gid = port.gid.unwrap();
    let route = Route {
        port: 1,
        lid: port.is.lid,
        service_level: 0,
        global: Some(verbs::GlobalRoute { gid_index: gid.index, gid: gid.gid, traffic_class: 0 }),
    };
    let connection = Connection {
        qp_num: qp.number(),
        peer_psn: 1,
        own_psn: 1,
        mtu: port.is.active_mtu,
        route,
        timeout: TIMEOUT,
        retry_count: RETRY_COUNT,
        rnr_retry: 1,
        min_rnr_timer: 1,
        responder_reads: 1,
        initiator_reads: 1,
    };
    (qp.ready_to_receive(&connection).unwrap().ready_to_send(&connection).unwrap(), queue)
}

#[test]
fn a_missing_receive_is_status_13_where_it_is_not_waited_for() {
    let (context, port) = context();
    let (mut qp, queue) = impatient(&context, &port);
    qp.post_send(&mut SendRequest::send(7, Vec::new()).signaled(true)).unwrap();
    let mut completions = [Completion::default(); 1];
    let clock = Clock::monotonic();
    let begin = clock.now();
    let status = loop {
        if let [completion] = queue.poll(&mut completions).unwrap() {
            break completion.status();
        }
        assert!(clock.ns(clock.now().since(begin)) < 10_000_000_000, "no completion within 10 s");
    };
    assert_eq!(status.0, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_words(
        &told(status),
        &["RNR retry counter exceeded", "(status 13)", "post more receives (-r), or send less at once (-t)"],
    );
}

/// Returns the description of a status on a path over RoCE v2.
fn told(status: WcStatus) -> String {
    let end = |octet| format!("GID ::ffff:192.0.2.{octet} (index 3, RoCE v2, IPv4)");
    let path = Path { service: Service::Rc, mtu_bytes: 256, sends_udp: true, own: end(1), theirs: end(2) };
    Error::Completion { message: Some(3), what: "sent", status, advice: path.advice(status) }.to_string()
}

#[test]
fn every_status_has_a_cause_and_the_way() {
    for status in 1..=IBV_WC_GENERAL_ERR + 3 {
        let text = told(WcStatus(status));
        assert_words(&text, &["message 3 could not be sent: ", &format!("status {status}")]);
        let path = "(RC from GID ::ffff:192.0.2.1 (index 3, RoCE v2, IPv4) to GID ::ffff:192.0.2.2 (index 3, RoCE v2, IPv4), \
                   path MTU 256 B)";
        let cause = text.split_once(&format!("status {status}")).unwrap().1;
        assert!(cause.ends_with(path) && cause.len() > path.len() + 40, "{text}");
    }
    let text = told(WcStatus(IBV_WC_RETRY_EXC_ERR));
    assert_words(
        &text,
        &["a firewall drops UDP port 4791 (`nft list ruleset` on both hosts)", "(try -m 256)"],
    );
    assert_words(&told(WcStatus(IBV_WC_WR_FLUSH_ERR)), &["had failed before", "look for the failure there"]);
}
