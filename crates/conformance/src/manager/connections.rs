//! Connections (man rdma_connect, rdma_accept, rdma_establish, rdma_init_qp_attr).

use std::time::Duration;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::{Meeting, any_port, home, talk, unpaired};
use crate::Bench;
use crate::rig::cm;
use crate::shape::{Parameters, Shape};

pub(crate) fn pairs_of_the_manager_are_connected(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let [(_, near), (_, far)] = meeting.connect(bench);
    assert_eq!(bench.near.state(near.qp), IBV_QPS_RTS);
    assert_eq!(bench.far.state(far.qp), IBV_QPS_RTS);
    talk(bench, &near, &far);
    bench.near.is_quiet(meeting.near_channel, Duration::from_millis(20));
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(20));
}

pub(crate) fn pairs_of_the_program_are_connected(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let near = bench.near.side(&Shape::of(IBV_QPT_RC));
    bench.near.enter(meeting.near, near.qp, IBV_QPS_INIT);
    let request = meeting.ask(bench, &Parameters::of(near.number));
    assert_eq!(request.parameters.qp_num, near.number);
    let far = bench.far.side(&Shape::of(IBV_QPT_RC));
    for state in [IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS] {
        bench.far.enter(request.id, far.qp, state);
    }
    assert_eq!(bench.far.accept(request.id, &Parameters::of(far.number)), 0);
    let response =
        bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(response.parameters.qp_num, far.number);
    for state in [IBV_QPS_RTR, IBV_QPS_RTS] {
        bench.near.enter(meeting.near, near.qp, state);
    }
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(20));
    assert_eq!(bench.near.establish(meeting.near), 0);
    bench.far.expect_event(meeting.far_channel, request.id, RDMA_CM_EVENT_ESTABLISHED);
    talk(bench, &near, &far);
    bench.near.is_quiet(meeting.near_channel, Duration::from_millis(20));
    assert_eq!(bench.near.establish(meeting.near), libc::EINVAL, "it is already established");
}

pub(crate) fn what_each_end_may_do_is_told(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let asked = Parameters {
        data: Vec::new(),
        responder_resources: 4,
        initiator_depth: 3,
        flow_control: 1,
        retries: 9,
        rnr_retries: 5,
        srq: 1,
        qp_num: unpaired().qp_num,
    };
    let request = meeting.ask(bench, &asked).clone();
    let heard =
        Parameters { data: vec![0; 56], responder_resources: 3, initiator_depth: 4, retries: 7, ..asked };
    assert_eq!(request.parameters, heard, "responder and initiator are swapped; retries have three bits");
    let answer = Parameters {
        data: Vec::new(),
        responder_resources: 2,
        initiator_depth: 1,
        flow_control: 0,
        retries: 6,
        rnr_retries: 8,
        srq: 0,
        qp_num: unpaired().qp_num,
    };
    // The program connects the queue pair itself.
    assert_eq!(bench.far.accept(request.id, &answer), 0);
    let response =
        bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    let heard = Parameters {
        data: vec![0; 196],
        responder_resources: 1,
        initiator_depth: 2,
        retries: 0,
        rnr_retries: 7,
        ..answer
    };
    assert_eq!(response.parameters, heard);
}

/// The attributes for the queue pairs of both nodes match.
pub(crate) fn attributes_follow_the_connection(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let before = bench.near.attributes_for(meeting.near, IBV_QPS_INIT).expect("INIT, before anything");
    let first = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    assert_eq!((before.1, before.0.qp_access_flags), (first, 0));
    let asked =
        Parameters { responder_resources: 3, initiator_depth: 2, retries: 6, rnr_retries: 4, ..unpaired() };
    let request = meeting.ask(bench, &asked);
    let near_init = bench.near.attributes_for(meeting.near, IBV_QPS_INIT).expect("INIT");
    let all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    assert_eq!((near_init.1, near_init.0.qp_access_flags), (first, all), "the peer may read");
    assert_eq!(
        bench.near.attributes_for(meeting.near, IBV_QPS_RTR).err(),
        Some(libc::EINVAL),
        "no answer yet"
    );
    assert_eq!(
        bench.near.attributes_for(meeting.near, IBV_QPS_SQD).err(),
        Some(libc::EINVAL),
        "librdmacm has no attributes for this state"
    );
    let answer = Parameters { responder_resources: 2, initiator_depth: 0, rnr_retries: 3, ..unpaired() };
    assert_eq!(bench.far.accept(request.id, &answer), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    let [near_rtr, near_rts] = [IBV_QPS_RTR, IBV_QPS_RTS]
        .map(|state| bench.near.attributes_for(meeting.near, state).expect("attributes"));
    let [far_init, far_rtr, far_rts] = [IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS]
        .map(|state| bench.far.attributes_for(request.id, state).expect("attributes"));
    assert_eq!(far_init.0.qp_access_flags, all);
    let receive = IBV_QP_STATE
        | IBV_QP_AV
        | IBV_QP_PATH_MTU
        | IBV_QP_DEST_QPN
        | IBV_QP_RQ_PSN
        | IBV_QP_MAX_DEST_RD_ATOMIC
        | IBV_QP_MIN_RNR_TIMER;
    let send = IBV_QP_STATE
        | IBV_QP_SQ_PSN
        | IBV_QP_TIMEOUT
        | IBV_QP_RETRY_CNT
        | IBV_QP_RNR_RETRY
        | IBV_QP_MAX_QP_RD_ATOMIC;
    assert_eq!((near_rtr.1, near_rts.1, far_rtr.1, far_rts.1), (receive, send, receive, send));
    assert_eq!((near_rtr.0.dest_qp_num, far_rtr.0.dest_qp_num), (answer.qp_num, asked.qp_num));
    assert_eq!((near_rtr.0.rq_psn, far_rtr.0.rq_psn), (far_rts.0.sq_psn, near_rts.0.sq_psn), "first packets");
    assert_eq!(near_rtr.0.path_mtu, far_rtr.0.path_mtu);
    assert_eq!((near_rtr.0.min_rnr_timer, far_rtr.0.min_rnr_timer), (0, 0));
    let rights = |attr: &ibv_qp_attr| (attr.max_rd_atomic, attr.max_dest_rd_atomic);
    assert_eq!(
        (near_rts.0.max_rd_atomic, near_rtr.0.max_dest_rd_atomic),
        (2, 0),
        "as in the far node's answer"
    );
    assert_eq!((far_rts.0.max_rd_atomic, far_rtr.0.max_dest_rd_atomic), (0, 2), "{:?}", rights(&far_rtr.0));
    assert_eq!((near_rts.0.retry_cnt, far_rts.0.retry_cnt), (6, 6), "as in the near node's request");
    assert_eq!((near_rts.0.rnr_retry, far_rts.0.rnr_retry), (3, 4), "as the peer has set");
    assert_eq!(near_rts.0.timeout, far_rts.0.timeout);
    let gids = [near_rtr, far_rtr].map(|(attr, _)| attr.ah_attr.grh.dgid.raw);
    assert_eq!(gids[0], gids[1], "both nodes have one address");
}

/// The options of the requesting node apply to the packets of both nodes.
pub(crate) fn what_is_set_reaches_both_ends(bench: &mut Bench) {
    const SERVICE: u8 = 0x68;
    const TIMEOUT: u8 = 15;
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let near = bench.near.identifier(meeting.near_channel, RDMA_PS_TCP);
    assert_eq!(bench.near.set_option(near, RDMA_OPTION_ID_TOS, 1, SERVICE.into()), 0);
    assert_eq!(bench.near.set_option(near, RDMA_OPTION_ID_ACK_TIMEOUT, 1, TIMEOUT.into()), 0);
    assert_eq!(bench.near.resolve_address(near, None, meeting.at), 0);
    bench.near.expect_event(meeting.near_channel, near, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(bench.near.resolve_route(near), 0);
    bench.near.expect_event(meeting.near_channel, near, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_eq!(bench.near.request(near, &unpaired()), 0);
    let request = bench.far.expect_request(meeting.far_channel, meeting.listener);
    assert_eq!(bench.far.accept(request.id, &unpaired()), 0);
    bench.near.expect_event(meeting.near_channel, near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    let [near, far] = [(&mut bench.near, near), (&mut bench.far, request.id)].map(|(node, id)| {
        let (rtr, _) = node.attributes_for(id, IBV_QPS_RTR).expect("attributes");
        let (rts, _) = node.attributes_for(id, IBV_QPS_RTS).expect("attributes");
        (rtr.ah_attr.grh.traffic_class, rts.timeout)
    });
    assert_eq!(near, (SERVICE, TIMEOUT));
    assert_eq!(far.0, SERVICE);
    assert!((TIMEOUT..=TIMEOUT + 1).contains(&far.1), "{} with the delay of the device", far.1);
}

/// A queue pair has only one connection.
pub(crate) fn a_pair_has_one_connection(bench: &mut Bench) {
    /// `IB_CM_REJ_STALE_CONN`.
    const STALE: i32 = 10;
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let asked = unpaired();
    let request = meeting.ask(bench, &asked);
    let again = meeting.another(bench);
    assert_eq!(bench.near.request(again, &asked), 0);
    bench.near.expect_failure(meeting.near_channel, again, RDMA_CM_EVENT_REJECTED, STALE);
    let answer = unpaired();
    assert_eq!(bench.far.accept(request.id, &answer), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    let other = meeting.another(bench);
    assert_eq!(bench.near.request(other, &unpaired()), 0);
    let request = bench.far.expect_request(meeting.far_channel, meeting.listener);
    assert_eq!(bench.far.accept(request.id, &answer), 0);
    bench.far.expect_failure(meeting.far_channel, request.id, RDMA_CM_EVENT_REJECTED, STALE);
    bench.near.is_quiet(meeting.near_channel, Duration::from_millis(20));
}

/// Data may arrive before the message that establishes the connection.
pub(crate) fn a_first_message_establishes_as_well(bench: &mut Bench) {
    let notify =
        |bench: &mut Bench, id: usize| bench.far.errno(cm::NOTIFY, &[id as u64, IBV_EVENT_COMM_EST.into()]);
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    assert_eq!(notify(bench, request.id), libc::EINVAL, "the request is not accepted");
    assert_eq!(bench.far.accept(request.id, &unpaired()), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(notify(bench, request.id), 0);
    bench.far.expect_event(meeting.far_channel, request.id, RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!(notify(bench, request.id), libc::EISCONN);
    assert_eq!(bench.near.establish(meeting.near), 0);
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(50));
    assert_eq!(bench.near.disconnect(meeting.near), 0);
    bench.far.expect_event(meeting.far_channel, request.id, RDMA_CM_EVENT_DISCONNECTED);
}

pub(crate) fn fifty_share_a_listener(bench: &mut Bench) {
    const COUNT: usize = 50;
    let home = home(&mut bench.near);
    let far_channel = bench.far.event_channel();
    let (listener, port) = bench.far.listener(far_channel, RDMA_PS_TCP, any_port(home), COUNT as i32);
    let near_channel = bench.near.event_channel();
    let at = std::net::SocketAddr::new(home.into(), port);
    let near: Vec<usize> = (0..COUNT).map(|_| bench.near.routed(near_channel, RDMA_PS_TCP, at)).collect();
    for (n, id) in near.iter().enumerate() {
        let parameters = Parameters { data: vec![n as u8 + 1], ..unpaired() };
        assert_eq!(bench.near.request(*id, &parameters), 0);
    }
    let mut far = [usize::MAX; COUNT];
    for _ in 0..COUNT {
        let request = bench.far.expect_request(far_channel, listener);
        let n = usize::from(request.parameters.data[0]) - 1;
        assert_eq!(std::mem::replace(&mut far[n], request.id), usize::MAX, "request {n} came twice");
        let parameters = Parameters { data: vec![n as u8 + 1], ..Parameters::of(0x200 + n as u32) };
        assert_eq!(bench.far.accept(request.id, &parameters), 0);
    }
    for _ in 0..COUNT {
        let response = bench.near.next_event(near_channel);
        let n = usize::from(response.parameters.data[0]) - 1;
        assert_eq!((response.kind, response.id), (RDMA_CM_EVENT_CONNECT_RESPONSE, near[n]));
        assert_eq!(response.parameters.qp_num, 0x200 + n as u32);
        assert_eq!(bench.near.establish(response.id), 0);
    }
    let mut established: Vec<usize> = (0..COUNT)
        .map(|_| {
            let event = bench.far.next_event(far_channel);
            assert_eq!(event.kind, RDMA_CM_EVENT_ESTABLISHED);
            event.id
        })
        .collect();
    established.sort_unstable();
    far.sort_unstable();
    assert_eq!(established, far);
}

/// A request that is not answered is repeated after 4.3 s.
pub(crate) fn a_request_beyond_the_backlog_waits(bench: &mut Bench) {
    let home = home(&mut bench.near);
    let far_channel = bench.far.event_channel();
    let (listener, port) = bench.far.listener(far_channel, RDMA_PS_TCP, any_port(home), 2);
    let near_channel = bench.near.event_channel();
    let at = std::net::SocketAddr::new(home.into(), port);
    for n in 0..3 {
        let id = bench.near.routed(near_channel, RDMA_PS_TCP, at);
        assert_eq!(bench.near.request(id, &Parameters { data: vec![n], ..unpaired() }), 0);
    }
    let take = |bench: &mut Bench| bench.far.expect_request(far_channel, listener).parameters.data[0];
    assert!(bench.far.has_event(far_channel, 10_000));
    // Requests of one node arrive in order: the third waits.
    std::thread::sleep(Duration::from_millis(200));
    let mut got = [take(bench), take(bench)].to_vec();
    bench.far.is_quiet(far_channel, Duration::from_millis(500));
    got.push(take(bench));
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2]);
    bench.near.is_quiet(near_channel, Duration::ZERO);
}
