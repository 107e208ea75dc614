//! Ports with InfiniBand's link layer: all conformance cases, and routes by LID alone.

use std::os::unix::process::CommandExt;

use softdev::{DEVICES_VARIABLE, LINK_LAYER_VARIABLE, PROVIDER};
use verbs::abi::*;

use conformance::node::{peer, serve};
use conformance::runner::{Trial, again, run, this_program};
use conformance::{Bench, CASES, Node, QKEY, Send, Shape, Side, Subject, Tuning};

fn main() {
    if let Some(named) = peer() {
        return serve(&Subject::parse(&named, |_| Ok(&PROVIDER)).expect("the parent names a device"));
    }
    if std::env::var(LINK_LAYER_VARIABLE).as_deref() != Ok("infiniband") {
        // The environment is read only once, so this process starts again with the right one.
        panic!("{}", again().env(DEVICES_VARIABLE, "2").env(LINK_LAYER_VARIABLE, "infiniband").exec());
    }
    let own = |name: &str, run: fn()| Trial { name: name.to_owned(), skipped: None, run: Box::new(run) };
    let own = [
        own("a_port_has_what_a_subnet_manager_gives_it", a_port_has_what_a_subnet_manager_gives_it),
        own("connections_need_no_gid", connections_need_no_gid),
        own(
            "datagrams_without_a_global_route_have_no_header",
            datagrams_without_a_global_route_have_no_header,
        ),
        own("a_global_route_needs_the_lid_as_well", a_global_route_needs_the_lid_as_well),
        own("ethernet_is_another_network", ethernet_is_another_network),
    ];
    let listed = CASES.iter().map(|case| {
        let run = move || {
            let mut bench = Bench::new(&subject(0), false);
            (case.run)(&mut bench);
            bench.close();
        };
        Trial { name: format!("conformance::{}", case.name), skipped: None, run: Box::new(run) }
    });
    run(&own.into_iter().chain(listed).collect::<Vec<_>>());
}

fn subject(device: usize) -> Subject {
    Subject::parse(&format!("softdev{device}"), |_| Ok(&PROVIDER)).expect("that is a device")
}

/// Starts nodes on two devices, in two processes.
fn ends() -> (Node, Node) {
    (Node::local(&subject(0)), Node::remote(&subject(1)))
}

/// A request without an answer ends soon: after 4.2 ms for each attempt.
const TUNING: Tuning = Tuning { timeout: 10, retries: 1, ..Tuning::OPEN };

fn a_port_has_what_a_subnet_manager_gives_it() {
    let (mut near, mut far) = ends();
    let [one, other] = [near.port(), far.port()];
    for port in [one, other] {
        assert_eq!((port.link_layer, port.state), (IBV_LINK_LAYER_INFINIBAND, IBV_PORT_ACTIVE));
        assert!((1..0xc000).contains(&port.lid) && (1..0xc000).contains(&port.sm_lid), "{port:?}");
        assert_ne!(port.lid, port.sm_lid);
    }
    assert_ne!(one.lid, other.lid);
    let found = verbs::devices(&PROVIDER).unwrap();
    let entries = found[0].open().unwrap().gids(1).unwrap();
    assert!(entries.iter().all(|entry| entry.kind == verbs::GidKind::InfiniBand) && entries.len() == 1);
}

/// Returns a route by LID alone.
fn by_lid(dlid: u16) -> ibv_ah_attr {
    ibv_ah_attr { dlid, port_num: 1, ..ibv_ah_attr::default() }
}

/// Takes a queue pair of RC from INIT to RTS.
fn connect(node: &mut Node, side: &Side, number: u32, route: ibv_ah_attr) {
    node.init(side, &TUNING);
    node.ready_to_receive_by(side, number, route, &TUNING);
    node.ready_to_send(side, &TUNING);
}

fn connections_need_no_gid() {
    let (mut near, mut far) = ends();
    let [here, there] = [near.port().lid, far.port().lid];
    for (to, status) in [(there, IBV_WC_SUCCESS), (here, IBV_WC_RETRY_EXC_ERR), (900, IBV_WC_RETRY_EXC_ERR)] {
        let a = near.side(&Shape::open(IBV_QPT_RC));
        let b = far.side(&Shape::open(IBV_QPT_RC));
        connect(&mut near, &a, b.number, by_lid(to));
        connect(&mut far, &b, a.number, by_lid(here));
        near.send(a.qp, Send::write(1, &[a.at(0, 4000)], b.spot(0)));
        assert_eq!(near.wait_one(a.send_cq).status, status, "LID {to}");
    }
}

/// The header's forty bytes of the buffer stay reserved (man ibv_post_recv).
fn datagrams_without_a_global_route_have_no_header() {
    let (mut near, mut far) = ends();
    let shape = Shape::of(IBV_QPT_UD);
    let a = near.side(&shape);
    let b = far.side(&shape);
    near.connect_to(&a, 0, a.gid, &TUNING);
    far.connect_to(&b, 0, b.gid, &TUNING);
    let lid = far.port().lid;
    let local = near.handle_by(a.pd, &by_lid(lid));
    let mut route = near.origin.route(b.gid);
    route.dlid = lid;
    let global = near.handle_by(a.pd, &route);
    near.fill(a.region, 0, 1000, 5);
    for (handle, flags) in [(local, 0), (global, IBV_WC_GRH)] {
        for size in [8, 1000] {
            far.receive(b.qp, 1, &[b.at(0, 4096)]);
            near.send(a.qp, Send::new(1, &[a.at(0, size)]).to(handle, b.number, QKEY));
            let got = far.wait_one(b.receive_cq);
            assert_eq!((got.status, got.flags, got.byte_len as usize), (IBV_WC_SUCCESS, flags, size + 40));
            assert_eq!((got.src_qp, got.slid), (a.number, near.port().lid));
            far.check(b.region, 40, size, 5);
        }
    }
    assert_eq!(far.read(b.region, 0, 8)[6], 0x1b, "an InfiniBand header names its transport as the next");
}

fn a_global_route_needs_the_lid_as_well() {
    let (mut near, mut far) = ends();
    let shape = Shape::of(IBV_QPT_UD);
    let a = near.side(&shape);
    let b = far.side(&shape);
    near.connect_to(&a, 0, a.gid, &TUNING);
    far.connect_to(&b, 0, b.gid, &TUNING);
    far.receive(b.qp, 1, &[b.at(0, 4096)]);
    let [here, there] = [near.port().lid, far.port().lid];
    for (i, (gid, dlid)) in [(b.gid, here), (a.gid, there), (b.gid, there)].into_iter().enumerate() {
        let mut route = near.origin.route(gid);
        route.dlid = dlid;
        let to = near.handle_by(a.pd, &route);
        near.send(a.qp, Send::new(1, &[a.at(0, 8)]).immediate(i as u32).to(to, b.number, QKEY));
    }
    assert_eq!(far.wait_one(b.receive_cq).imm, 2, "only the last route leads there");
}

fn ethernet_is_another_network() {
    let mut command = this_program();
    command.env(LINK_LAYER_VARIABLE, "ethernet");
    let mut near = Node::local(&subject(0));
    let mut far = Node::spawn(command, &subject(0));
    assert_eq!(far.port().link_layer, IBV_LINK_LAYER_ETHERNET);
    let a = near.side(&Shape::of(IBV_QPT_RC));
    let b = far.side(&Shape::of(IBV_QPT_RC));
    near.connect_to(&a, b.number, b.gid, &TUNING);
    far.connect_to(&b, a.number, a.gid, &TUNING);
    far.receive(b.qp, 1, &[b.at(0, 64)]);
    near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
    assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
}
