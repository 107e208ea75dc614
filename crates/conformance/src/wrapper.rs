//! The safe wrapper of verbs, which rdmascope uses.

use std::time::Instant;

use verbs::abi::*;
use verbs::{
    Affected, Completion, CompletionQueue, Connection, Context, Error, Gid, GlobalRoute, Initialisation,
    MemoryKind, Mtu, ProtectionDomain, QueuePairOptions, ReceiveRequest, Route, SendRequest, Service,
    devices,
};

use crate::rig::gid_words;
use crate::subject::Origin;
use crate::{Bench, PATIENCE, QKEY, Send, Shape, Tuning};

fn open(bench: &Bench) -> Context {
    let found = devices(bench.subject.provider).expect("devices");
    let device = found.iter().find(|d| d.name() == bench.subject.device).expect("the device is listed");
    device.open().expect("the device opens")
}

fn options(service: Service) -> QueuePairOptions {
    QueuePairOptions {
        service,
        max_send_wr: 8,
        max_recv_wr: 8,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 32,
    }
}

fn connection(context: &Context, origin: Origin, qp_num: u32, gid: Gid) -> Connection {
    let lid = context.port(origin.port).expect("the port").lid;
    let tuning = Tuning::default();
    let Origin { port, gid_index } = origin;
    Connection {
        qp_num,
        peer_psn: tuning.psn,
        own_psn: tuning.psn,
        mtu: Mtu::from_bytes(1024).expect("there is such an MTU"),
        route: Route {
            port,
            lid,
            service_level: 0,
            global: Some(GlobalRoute { gid_index, gid, traffic_class: 0 }),
        },
        timeout: tuning.timeout,
        retry_count: tuning.retries,
        rnr_retry: tuning.rnr_retries,
        min_rnr_timer: tuning.rnr_timer,
        responder_reads: 1,
        initiator_reads: 1,
    }
}

fn initialisation(port: u8) -> Initialisation {
    Initialisation { port, pkey_index: 0, qkey: QKEY, access: 0 }
}

fn wait(cq: &CompletionQueue) -> Completion {
    let start = Instant::now();
    let mut room = [Completion::default()];
    loop {
        if let [found] = cq.poll(&mut room).expect("poll") {
            return *found;
        }
        assert!(start.elapsed() < PATIENCE, "nothing completes");
    }
}

fn queues(context: &Context) -> (ProtectionDomain, CompletionQueue) {
    (context.protection_domain().expect("a domain"), context.completion_queue(16, None).expect("a queue"))
}

/// Exchanges messages between the wrapper and plain verbs, for every service and in both
/// directions.
pub(crate) fn services_carry_messages(bench: &mut Bench) {
    let context = open(bench);
    let origin = bench.subject.origin;
    let gid = context.gid(origin.port, u32::from(origin.gid_index)).expect("a GID");
    for (service, raw) in [(Service::Rc, IBV_QPT_RC), (Service::Uc, IBV_QPT_UC), (Service::Ud, IBV_QPT_UD)] {
        let (pd, cq) = queues(&context);
        let pair = pd.queue_pair(&options(service), &cq, &cq).expect("a queue pair");
        let b = bench.far.side(&Shape::of(raw));
        let to = connection(&context, origin, b.number, gid);
        let mut pair = pair.init(&initialisation(origin.port)).expect("INIT");
        let mut region = pd.memory_region(8192, IBV_ACCESS_LOCAL_WRITE).expect("a region");
        let mut receive = ReceiveRequest::new(4, vec![region.sge(4096, 4096).expect("in range")]);
        pair.post_receive(&mut receive).expect("INIT receives");
        let pair = pair.ready_to_receive(&to).expect("RTR");
        let own = gid_words(gid.0);
        bench.far.connect_to(&b, pair.number(), own, &Tuning::default());
        let mut pair = pair.ready_to_send(&to).expect("RTS");
        let handle = pd.address_handle(&to.route).expect("a handle");

        bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * 7) as u8).collect();
        region.write(10, &bytes).expect("in range");
        let mut send = SendRequest::send(9, vec![region.sge(10, 1000).expect("in range")]).signaled(true);
        if service == Service::Ud {
            send = send.to(&handle, b.number, QKEY);
        }
        pair.post_send(&mut send).expect("post");
        let wc = wait(&cq);
        assert!(wc.status().is_success() && !wc.opcode().is_receive() && wc.id() == 9, "{wc:?}");
        let header = if service == Service::Ud { 40 } else { 0 };
        assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 1000 + header);
        assert!(bench.far.read(b.region, header as usize, 1000) == bytes);

        bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
        let mut small = SendRequest::send(10, Vec::new()).inline(b"what was").signaled(true);
        if service == Service::Ud {
            small = small.to(&handle, b.number, QKEY);
        }
        small.payload_mut().copy_from_slice(b"what is!");
        pair.post_send(&mut small).expect("post inline");
        small.payload_mut().fill(0);
        assert!(wait(&cq).status().is_success());
        bench.far.wait_one(b.receive_cq);
        assert_eq!(bench.far.read(b.region, header as usize, 8), b"what is!");

        let back = bench.far.handle(b.pd, own);
        bench.far.fill(b.region, 0, 500, 3);
        let request = Send::new(2, &[b.at(0, 500)]).immediate(0xfeed).to(back, pair.number(), QKEY);
        bench.far.send(b.qp, request);
        let wc = wait(&cq);
        assert!(wc.status().is_success() && wc.opcode().is_receive(), "{wc:?}");
        assert_eq!((wc.id(), wc.byte_len(), wc.immediate()), (4, 500 + header, Some(0xfeed)));
        assert_eq!(wc.qp_num(), pair.number());
        assert!(wc.has_grh() || service != Service::Ud, "a datagram has a header");
        let mut got = vec![0; 500];
        region.read(4096 + header as usize, &mut got).expect("in range");
        assert!((0..500).all(|i| got[i] == crate::rig::pattern(3, i)));
        assert_eq!(pair.device_state().expect("a state"), IBV_QPS_RTS);
    }
}

pub(crate) fn a_refused_change_says_why(bench: &mut Bench) {
    let context = open(bench);
    let (pd, cq) = queues(&context);
    let pair = pd.queue_pair(&options(Service::Rc), &cq, &cq).expect("a queue pair");
    let error = pair.init(&initialisation(99)).expect_err("there is no port 99");
    assert!(matches!(error, Error::Transition { from: IBV_QPS_RESET, to: IBV_QPS_INIT, .. }), "{error}");
    assert!(pd.memory_region(4096, IBV_ACCESS_REMOTE_WRITE).is_err());
    let region = pd.memory_region(100, 0).expect("a region");
    assert!(region.sge(50, 51).is_err() && region.sge(50, 50).is_ok());
}

/// A buffer that is registered again is the same memory, with its contents.
pub(crate) fn a_buffer_outlives_its_registration(bench: &mut Bench) {
    let context = open(bench);
    let (pd, _) = queues(&context);
    let mut buffer = pd.buffer(MemoryKind::Process, 8192).expect("a buffer");
    buffer.touch();
    let mut region = pd.register(buffer, IBV_ACCESS_LOCAL_WRITE).expect("a region");
    region.write(4095, b"ab").expect("in range");
    let buffer = region.deregister().expect("the registration ends");
    let region = pd.register(buffer, IBV_ACCESS_LOCAL_WRITE).expect("a region again");
    let mut bytes = [0; 2];
    region.read(4095, &mut bytes).expect("in range");
    assert_eq!(&bytes, b"ab");
}

/// A datagram without address is refused, so the device does not read an unset pointer.
pub(crate) fn a_datagram_without_address_is_refused(bench: &mut Bench) {
    let context = open(bench);
    let (pd, cq) = queues(&context);
    let origin = bench.subject.origin;
    let gid = context.gid(origin.port, u32::from(origin.gid_index)).expect("a GID");
    let to = connection(&context, origin, 0, gid);
    let pair = pd.queue_pair(&options(Service::Ud), &cq, &cq).expect("a queue pair");
    let pair = pair.init(&initialisation(origin.port)).expect("INIT").ready_to_receive(&to).expect("RTR");
    let mut pair = pair.ready_to_send(&to).expect("RTS");
    let error = pair.post_send(&mut SendRequest::send(1, Vec::new())).expect_err("it has no address");
    assert!(matches!(error, Error::Verb { errno: libc::EINVAL, .. }), "{error}");
}

/// The first message arrives before the receiver is ready to send.
pub(crate) fn an_event_names_its_queue_pair(bench: &mut Bench) {
    let context = open(bench);
    let origin = bench.subject.origin;
    let gid = context.gid(origin.port, u32::from(origin.gid_index)).expect("a GID");
    let (pd, cq) = queues(&context);
    let pair = pd.queue_pair(&options(Service::Rc), &cq, &cq).expect("a queue pair");
    let b = bench.far.side(&Shape::of(IBV_QPT_RC));
    let to = connection(&context, origin, b.number, gid);
    let mut pair = pair.init(&initialisation(origin.port)).expect("INIT");
    let region = pd.memory_region(64, IBV_ACCESS_LOCAL_WRITE).expect("a region");
    let mut receive = ReceiveRequest::new(4, vec![region.sge(0, 64).expect("in range")]);
    pair.post_receive(&mut receive).expect("INIT receives");
    let pair = pair.ready_to_receive(&to).expect("RTR");
    bench.far.connect_to(&b, pair.number(), gid_words(gid.0), &Tuning::default());
    bench.far.send(b.qp, Send::new(1, &[b.at(0, 8)]));
    let fd = context.async_descriptor();
    let mut polled = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut polled, Some(&limit)), Ok(1), "no event comes");
    let found = context.async_event().expect("an event");
    assert_eq!(found.of, Affected::QueuePair(pair.number()));
    assert_eq!(found.event.to_string(), "communication established");
}
