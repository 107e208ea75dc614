//! Several devices of one host: each has its own addresses, and a route leads to one of them.

use std::collections::HashSet;
use std::os::unix::process::CommandExt;

use softdev::{DEVICES_VARIABLE, LINK_LAYER_VARIABLE, PROVIDER, set_port};
use verbs::abi::*;
use verbs::devices;

use conformance::node::{peer, serve};
use conformance::rig::{gid_of, op};
use conformance::runner::{Trial, again, run, this_program};
use conformance::{Node, QKEY, Send, Shape, Subject, Tuning};

const DEVICES: usize = 3;

/// The argument of a process that only lists its devices.
const LIST: &str = "--devices";

fn main() {
    if let Some(named) = peer() {
        return serve(&Subject::parse(&named, |_| Ok(&PROVIDER)).expect("the parent names a device"));
    }
    if std::env::args().any(|argument| argument == LIST) {
        return list();
    }
    if std::env::var(DEVICES_VARIABLE).is_err() {
        // The environment is read only once, so this process starts again with the right one.
        let mut again = again();
        panic!("{}", again.env(DEVICES_VARIABLE, DEVICES.to_string()).env_remove(LINK_LAYER_VARIABLE).exec());
    }
    let trial = |name: &str, run: fn()| Trial { name: name.to_owned(), skipped: None, run: Box::new(run) };
    run(&[
        trial("every_device_has_names_of_its_own", every_device_has_names_of_its_own),
        trial("devices_reach_each_other", devices_reach_each_other),
        trial("datagrams_name_both_devices", datagrams_name_both_devices),
        trial("another_devices_address_leads_to_nobody", another_devices_address_leads_to_nobody),
        trial("a_queue_pair_takes_queues_of_its_device_only", a_queue_pair_takes_queues_of_its_device_only),
        trial("every_route_of_ethernet_is_global", every_route_of_ethernet_is_global),
        trial("a_port_that_is_down_carries_nothing", a_port_that_is_down_carries_nothing),
        trial("a_connection_outlives_a_short_failure", a_connection_outlives_a_short_failure),
        trial("settings_that_mean_nothing_list_no_devices", settings_that_mean_nothing_list_no_devices),
    ]);
}

fn list() {
    match devices(&PROVIDER) {
        Ok(found) => found.iter().for_each(|device| println!("{}", device.name())),
        Err(error) => println!("{error}"),
    }
}

fn subject(device: usize) -> Subject {
    Subject::parse(&format!("softdev{device}"), |_| Ok(&PROVIDER)).expect("that is a device")
}

/// A request without an answer ends soon: after 4.2 ms for each attempt.
const TUNING: Tuning = Tuning { timeout: 10, retries: 1, ..Tuning::OPEN };

fn every_device_has_names_of_its_own() {
    let found = devices(&PROVIDER).expect("the devices");
    let names: Vec<_> = found.iter().map(verbs::Device::name).collect();
    assert_eq!(names, ["softdev0", "softdev1", "softdev2"]);
    let contexts: Vec<_> = found.iter().map(|device| device.open().expect("it opens")).collect();
    let guids: HashSet<_> = contexts.iter().map(|context| context.limits().unwrap().node_guid).collect();
    let gids: HashSet<_> = contexts.iter().map(|context| context.gids(1).unwrap()[0].gid).collect();
    assert_eq!((guids.len(), gids.len()), (DEVICES, DEVICES));
    for context in contexts {
        let entries = context.gids(1).unwrap();
        assert_eq!((entries[0].index, entries[0].reach()), (0, "link-local"));
        assert!(entries.iter().all(|entry| entry.kind == verbs::GidKind::RoceV2), "{entries:?}");
    }
}

/// Starts nodes on two devices, in two processes.
fn ends(near: usize, far: usize) -> (Node, Node) {
    (Node::local(&subject(near)), Node::remote(&subject(far)))
}

fn devices_reach_each_other() {
    for (i, j) in [(0, 1), (1, 0), (2, 1), (1, 1)] {
        for service in [IBV_QPT_RC, IBV_QPT_UC] {
            let (mut near, mut far) = ends(i, j);
            let shape = Shape::open(service);
            let a = near.side(&shape);
            let b = far.side(&shape);
            near.connect_to(&a, b.number, b.gid, &TUNING);
            far.connect_to(&b, a.number, a.gid, &TUNING);
            far.receive(b.qp, 1, &[b.at(0, 4096)]);
            near.fill(a.region, 0, 4000, 3);
            near.send(a.qp, Send::write(1, &[a.at(0, 4000)], b.spot(8192)));
            near.send(a.qp, Send::new(2, &[a.at(0, 4000)]));
            let done = near.wait(a.send_cq, 2);
            assert!(done.iter().all(|wc| wc.status == IBV_WC_SUCCESS), "{i} to {j}: {done:?}");
            assert_eq!(far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
            far.check(b.region, 0, 4000, 3);
            far.check(b.region, 8192, 4000, 3);
        }
    }
}

fn datagrams_name_both_devices() {
    for (i, j) in [(0, 1), (2, 0)] {
        let (mut near, mut far) = ends(i, j);
        let shape = Shape::of(IBV_QPT_UD);
        let a = near.side(&shape);
        let b = far.side(&shape);
        near.connect_to(&a, 0, a.gid, &TUNING);
        far.connect_to(&b, 0, b.gid, &TUNING);
        let handle = near.handle(a.pd, b.gid);
        for size in [8, 1000] {
            far.receive(b.qp, 1, &[b.at(0, 4096)]);
            near.send(a.qp, Send::new(1, &[a.at(0, size)]).to(handle, b.number, QKEY));
            assert_eq!(far.wait_one(b.receive_cq).flags, IBV_WC_GRH);
            let header = far.read(b.region, 0, 40);
            assert_eq!(header[8..24], gid_of(a.gid), "the sender is device {i}");
            assert_eq!(header[24..], gid_of(b.gid), "the receiver is device {j}");
        }
    }
}

fn another_devices_address_leads_to_nobody() {
    let (mut near, mut far) = ends(0, 1);
    let mut other = Node::local(&subject(2));
    let elsewhere = other.gid();
    let a = near.side(&Shape::of(IBV_QPT_RC));
    let b = far.side(&Shape::of(IBV_QPT_RC));
    near.connect_to(&a, b.number, elsewhere, &TUNING);
    far.connect_to(&b, a.number, a.gid, &TUNING);
    far.receive(b.qp, 1, &[b.at(0, 64)]);
    near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
    assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    let c = near.side(&Shape::of(IBV_QPT_UD));
    let d = far.side(&Shape::of(IBV_QPT_UD));
    near.connect_to(&c, 0, c.gid, &TUNING);
    far.connect_to(&d, 0, d.gid, &TUNING);
    far.receive(d.qp, 1, &[d.at(0, 4096)]);
    let [wrong, right] = [elsewhere, d.gid].map(|gid| near.handle(c.pd, gid));
    near.send(c.qp, Send::new(1, &[c.at(0, 8)]).immediate(1).to(wrong, d.number, QKEY));
    near.send(c.qp, Send::new(2, &[c.at(0, 8)]).immediate(2).to(right, d.number, QKEY));
    assert_eq!(far.wait_one(d.receive_cq).imm, 2, "the first has gone to another device");
}

/// Handles of one device's objects have no meaning for another.
fn a_queue_pair_takes_queues_of_its_device_only() {
    let found = devices(&PROVIDER).expect("the devices");
    let [one, other] = [0, 1].map(|i| found[i].open().unwrap());
    let pd = one.protection_domain().unwrap();
    let own = one.completion_queue(8, None).unwrap();
    let foreign = other.completion_queue(8, None).unwrap();
    let options = verbs::QueuePairOptions {
        service: verbs::Service::Rc,
        max_send_wr: 1,
        max_recv_wr: 1,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    assert!(pd.queue_pair(&options, &own, &own).is_ok());
    for (sends, receives) in [(&foreign, &own), (&own, &foreign)] {
        let refused = pd.queue_pair(&options, sends, receives).expect_err("a queue of another device");
        assert!(refused.to_string().contains("Invalid argument"), "{refused}");
    }
}

/// As in the kernel for RoCE (`rdma_check_ah_attr()`), and as pyverbs expects.
fn every_route_of_ethernet_is_global() {
    let mut near = Node::local(&subject(0));
    let pd: usize = near.pd();
    let gid: [u64; 2] = near.gid();
    let mut route = near.origin.route(gid);
    near.handle_by(pd, &route);
    (route.is_global, route.dlid) = (0, 2);
    assert_eq!(near.try_handle(pd, &route), Err(libc::EINVAL));
    let port = near.port();
    assert_eq!((port.lid, port.sm_lid, port.link_layer), (0, 0, IBV_LINK_LAYER_ETHERNET));
}

fn settings_that_mean_nothing_list_no_devices() {
    let listed = |variable: &str, value: &str| {
        let mut command = this_program();
        let output = command.arg(LIST).env(variable, value).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    };
    assert_eq!(listed(DEVICES_VARIABLE, "2"), ("softdev0\nsoftdev1\n".to_owned(), String::new()));
    for (variable, value) in [(DEVICES_VARIABLE, "17"), (LINK_LAYER_VARIABLE, "token-ring")] {
        let (stdout, stderr) = listed(variable, value);
        assert!(stdout.contains("Invalid argument"), "{stdout}");
        assert!(stderr.starts_with(&format!("softdev: {variable} is `{value}`, but ")), "{stderr}");
    }
}

/// Returns the state of the port as the device reports it, and the next asynchronous event, which
/// comes soon.
fn port_and_event(node: &mut Node) -> (u64, u64, u64) {
    assert!(node.is_alarmed(900), "no event comes");
    let event = node.call(op::ASYNC, &[]);
    assert_eq!(event[0], 0);
    node.errno(op::ASYNC_ACK, &[event[1]]);
    (node.call(op::PORT, &[])[5], event[2], event[3])
}

fn take_down(node: &mut Node) {
    set_port(0, false).expect("there is such a device");
    let state = u64::from(IBV_PORT_DOWN);
    let event = u64::from(IBV_EVENT_PORT_ERR);
    assert_eq!(port_and_event(node), (state, event, 1));
}

fn bring_up(node: &mut Node) {
    set_port(0, true).expect("there is such a device");
    let state = u64::from(IBV_PORT_ACTIVE);
    let event = u64::from(IBV_EVENT_PORT_ACTIVE);
    assert_eq!(port_and_event(node), (state, event, 1));
}

/// Nothing leaves the port or arrives at it, and the other device's port works.
fn a_port_that_is_down_carries_nothing() {
    let (mut near, mut far) = ends(0, 1);
    let [rc, ud] = [IBV_QPT_RC, IBV_QPT_UD].map(|service| {
        let shape = Shape::of(service);
        let a = near.side(&shape);
        let b = far.side(&shape);
        near.connect_to(&a, b.number, b.gid, &TUNING);
        far.connect_to(&b, a.number, a.gid, &TUNING);
        (a, b)
    });
    let handles = [near.handle(ud.0.pd, ud.1.gid), far.handle(ud.1.pd, ud.0.gid)];
    let datagrams = |near: &mut Node, far: &mut Node, arrive: usize| {
        near.receive(ud.0.qp, 1, &[ud.0.at(0, 100)]);
        far.receive(ud.1.qp, 1, &[ud.1.at(0, 100)]);
        near.send(ud.0.qp, Send::new(1, &[ud.0.at(0, 8)]).to(handles[0], ud.1.number, QKEY));
        far.send(ud.1.qp, Send::new(1, &[ud.1.at(0, 8)]).to(handles[1], ud.0.number, QKEY));
        assert_eq!(near.wait_one(ud.0.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(far.wait_one(ud.1.send_cq).status, IBV_WC_SUCCESS);
        let found = [near.poll(ud.0.receive_cq, 4).len(), far.poll(ud.1.receive_cq, 4).len()];
        assert_eq!(found, [arrive; 2]);
    };
    datagrams(&mut near, &mut far, 1);
    take_down(&mut near);
    datagrams(&mut near, &mut far, 0);
    far.receive(rc.1.qp, 1, &[rc.1.at(0, 64)]);
    near.receive(rc.0.qp, 1, &[rc.0.at(0, 64)]);
    far.send(rc.1.qp, Send::new(1, &[rc.1.at(0, 8)]));
    assert_eq!(far.wait_one(rc.1.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    near.send(rc.0.qp, Send::new(1, &[rc.0.at(0, 8)]));
    assert_eq!(near.wait_one(rc.0.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    bring_up(&mut near);
    datagrams(&mut near, &mut far, 1);
    set_port(0, true).expect("nothing changes");
    assert!(!near.is_alarmed(5) && !far.is_alarmed(5));
    let why = set_port(9, true).unwrap_err().to_string();
    assert_eq!(why, "softdev has no device 9: its 3 devices are numbered from 0");
    [near, far].into_iter().for_each(Node::close);
}

/// Messages sent meanwhile arrive if the port is up before the retries are over.
fn a_connection_outlives_a_short_failure() {
    let (mut near, mut far) = ends(0, 1);
    let a = near.side(&Shape::of(IBV_QPT_RC));
    let b = far.side(&Shape::of(IBV_QPT_RC));
    let patient = Tuning { timeout: 18, retries: 7, ..TUNING };
    near.connect_to(&a, b.number, b.gid, &patient);
    far.connect_to(&b, a.number, a.gid, &patient);
    for round in 0..3 {
        far.receive(b.qp, round, &[b.at(0, 64)]);
        near.receive(a.qp, round, &[a.at(0, 64)]);
        take_down(&mut near);
        near.send(a.qp, Send::new(round, &[a.at(0, 8)]));
        far.send(b.qp, Send::new(round, &[b.at(0, 8)]));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!((near.poll(a.send_cq, 1).len(), far.poll(b.send_cq, 1).len()), (0, 0));
        bring_up(&mut near);
        assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(far.wait_one(b.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(near.wait_one(a.receive_cq).status, IBV_WC_SUCCESS);
        assert_eq!(far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
    }
    [near, far].into_iter().for_each(Node::close);
}
