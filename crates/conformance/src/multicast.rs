//! Multicast groups (IBTA vol. 1, section 10.5; man ibv_attach_mcast).

use std::time::Duration;

use verbs::abi::*;

use crate::rig::{gid_of, op};
use crate::{Bench, Node, QKEY, Send, Shape, Side, Tuning};

/// The queue pair number of datagrams to a group.
const MULTICAST_QP: u32 = 0xff_ffff;

/// A group of local scope (RFC 4291, section 2.7) that only this process uses.
fn group(number: u64) -> [u64; 2] {
    [0xff12_601b_0000_0000, 0x7264_6d61_0000_0000 | u64::from(std::process::id()) << 8 | number]
}

#[track_caller]
fn join(node: &mut Node, side: &Side, group: [u64; 2]) -> i32 {
    node.errno(op::ATTACH, &[side.qp as u64, group[0], group[1]])
}

#[track_caller]
fn leave(node: &mut Node, side: &Side, group: [u64; 2]) -> i32 {
    node.errno(op::DETACH, &[side.qp as u64, group[0], group[1]])
}

/// An address handle of a group. On InfiniBand it has the LID with which `join` attaches.
#[track_caller]
fn handle(node: &mut Node, side: &Side, group: [u64; 2]) -> usize {
    let mut route = node.origin.route(group);
    if node.port().lid != 0 {
        route.dlid = op::GROUP_LID;
    }
    node.handle_by(side.pd, &route)
}

fn datagram_side(node: &mut Node) -> Side {
    let side = node.side(&Shape::of(IBV_QPT_UD));
    node.connect_to(&side, 0, side.gid, &Tuning::default());
    side
}

#[track_caller]
fn member(node: &mut Node, group: [u64; 2]) -> Side {
    let side = datagram_side(node);
    assert_eq!(join(node, &side, group), 0, "attach_mcast");
    node.receive(side.qp, 1, &[side.at(0, 4096)]);
    side
}

/// A sender and the address handle of its group.
struct Sender {
    side: Side,
    handle: usize,
}

fn sender(node: &mut Node, group: [u64; 2]) -> Sender {
    let side = datagram_side(node);
    Sender { side, handle: handle(node, &side, group) }
}

impl Sender {
    #[track_caller]
    fn send(&self, node: &mut Node, imm: u32, bytes: usize, qkey: u32) {
        let request = Send::new(1, &[self.side.at(0, bytes)]).immediate(imm);
        node.send(self.side.qp, request.to(self.handle, MULTICAST_QP, qkey));
        assert_eq!(node.wait_one(self.side.send_cq).status, IBV_WC_SUCCESS, "a sender gets no error");
    }
}

/// Waits for a datagram, and posts the next receive.
#[track_caller]
fn arrives(node: &mut Node, side: &Side, imm: u32, bytes: usize, who: &str) {
    let got = node.wait_one(side.receive_cq);
    assert_eq!((got.status, got.imm, got.byte_len as usize), (IBV_WC_SUCCESS, imm, bytes + 40), "{who}");
    node.receive(side.qp, 1, &[side.at(0, 4096)]);
}

pub(crate) fn what_is_no_group_is_refused(bench: &mut Bench) {
    let side = datagram_side(&mut bench.near);
    let connected = bench.near.side(&Shape::of(IBV_QPT_RC));
    assert_ne!(join(&mut bench.near, &connected, group(1)), 0, "a connected pair");
    let own = side.gid;
    assert_ne!(join(&mut bench.near, &side, own), 0, "a port's own GID");
    assert_ne!(leave(&mut bench.near, &side, group(1)), 0, "the group has no members");
    assert_eq!(join(&mut bench.near, &side, group(1)), 0);
    assert_eq!(leave(&mut bench.near, &side, group(1)), 0);
    assert_ne!(leave(&mut bench.near, &side, group(1)), 0, "it has already left");
}

pub(crate) fn joining_twice_is_joining_once(bench: &mut Bench) {
    let side = datagram_side(&mut bench.near);
    assert_eq!(join(&mut bench.near, &side, group(1)), 0);
    assert_eq!(join(&mut bench.near, &side, group(1)), 0);
    assert_eq!(leave(&mut bench.near, &side, group(1)), 0);
    assert_ne!(leave(&mut bench.near, &side, group(1)), 0);
}

/// As in uverbs_free_qp() of drivers/infiniband/core/uverbs_std_types_qp.c.
pub(crate) fn a_member_is_not_destroyed(bench: &mut Bench) {
    let side = datagram_side(&mut bench.near);
    assert_eq!(join(&mut bench.near, &side, group(1)), 0);
    assert_eq!(join(&mut bench.near, &side, group(2)), 0);
    for number in [1, 2] {
        assert_eq!(bench.near.errno(op::DESTROY_QP, &[side.qp as u64]), libc::EBUSY);
        assert_eq!(leave(&mut bench.near, &side, group(number)), 0);
    }
    assert_eq!(bench.near.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
}

/// Each member gets one copy, and no other queue pair does. The members are in the sender's
/// process, in a second and in a third one.
pub(crate) fn a_group_reaches_its_members(bench: &mut Bench) {
    let [one, other] = [group(1), group(2)];
    let mut third = bench.another();
    let near = [member(&mut bench.near, one), member(&mut bench.near, one)];
    let far = member(&mut bench.far, one);
    let last = member(&mut third, one);
    let both = member(&mut third, one);
    assert_eq!(join(&mut third, &both, other), 0);
    let stranger = member(&mut bench.far, other);
    let from = sender(&mut bench.near, one);
    for (imm, bytes) in [(1, 8), (2, 1000), (3, 0)] {
        bench.near.fill(from.side.region, 0, 1000, u64::from(imm));
        from.send(&mut bench.near, imm, bytes, QKEY);
        for side in &near {
            arrives(&mut bench.near, side, imm, bytes, "the sender's process");
        }
        arrives(&mut bench.far, &far, imm, bytes, "another process");
        bench.far.check(far.region, 40, bytes, u64::from(imm));
        arrives(&mut third, &last, imm, bytes, "a third process");
        arrives(&mut third, &both, imm, bytes, "a member of two groups");
        third.check(both.region, 40, bytes, u64::from(imm));
    }
    bench.far.quiet(stranger.receive_cq, Duration::from_millis(3));
    bench.far.quiet(far.receive_cq, Duration::from_millis(1));
    part(&mut bench.near, &near, one);
    part(&mut bench.far, &[far], one);
    part(&mut bench.far, &[stranger], other);
    part(&mut third, &[last, both], one);
    part(&mut third, &[both], other);
    third.close();
}

/// Members leave before they are destroyed.
#[track_caller]
fn part(node: &mut Node, sides: &[Side], group: [u64; 2]) {
    for side in sides {
        assert_eq!(leave(node, side, group), 0, "detach_mcast");
    }
}

pub(crate) fn the_header_names_the_group(bench: &mut Bench) {
    let own = group(1);
    let side = member(&mut bench.far, own);
    let from = sender(&mut bench.near, own);
    for bytes in [8, 1000] {
        from.send(&mut bench.near, 1, bytes, QKEY);
        arrives(&mut bench.far, &side, 1, bytes, "a member");
        let header = bench.far.read(side.region, 0, 40);
        assert_eq!((&header[8..24], &header[24..]), (&gid_of(from.side.gid)[..], &gid_of(own)[..]));
    }
    part(&mut bench.far, &[side], own);
}

pub(crate) fn every_copy_needs_the_key_and_a_receive(bench: &mut Bench) {
    let own = group(1);
    let one = member(&mut bench.far, own);
    let other = member(&mut bench.far, own);
    let attr = ibv_qp_attr { qp_state: IBV_QPS_RTS, qkey: QKEY + 1, ..ibv_qp_attr::default() };
    assert_eq!(bench.far.modify(other.qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
    let from = sender(&mut bench.near, own);
    from.send(&mut bench.near, 1, 8, QKEY);
    from.send(&mut bench.near, 2, 8, QKEY + 1);
    // The first member has no posted receive for the next datagram yet.
    from.send(&mut bench.near, 3, 8, QKEY);
    arrives(&mut bench.far, &one, 1, 8, "of this key");
    arrives(&mut bench.far, &other, 2, 8, "of another key");
    bench.far.quiet(one.receive_cq, Duration::from_millis(3));
    from.send(&mut bench.near, 4, 8, QKEY);
    arrives(&mut bench.far, &one, 4, 8, "with a receive again");
    part(&mut bench.far, &[one, other], own);
}

/// Also for a process that starts after the first datagrams.
pub(crate) fn who_joins_later_is_reached_and_who_has_left_is_not(bench: &mut Bench) {
    let own = group(1);
    let first = member(&mut bench.far, own);
    let from = sender(&mut bench.near, own);
    from.send(&mut bench.near, 1, 100, QKEY);
    arrives(&mut bench.far, &first, 1, 100, "the first member");
    let mut late = if bench.processes { Node::remote(&bench.subject) } else { bench.another() };
    let second = member(&mut late, own);
    from.send(&mut bench.near, 2, 100, QKEY);
    arrives(&mut bench.far, &first, 2, 100, "the first member");
    arrives(&mut late, &second, 2, 100, "the second member");
    part(&mut bench.far, &[first], own);
    from.send(&mut bench.near, 3, 100, QKEY);
    arrives(&mut late, &second, 3, 100, "the second member");
    bench.far.quiet(first.receive_cq, Duration::from_millis(3));
    part(&mut late, &[second], own);
    from.send(&mut bench.near, 4, 100, QKEY);
    late.quiet(second.receive_cq, Duration::from_millis(3));
    late.close();
    // A queue pair that joins again is reached again.
    assert_eq!(join(&mut bench.far, &first, own), 0);
    from.send(&mut bench.near, 5, 100, QKEY);
    arrives(&mut bench.far, &first, 5, 100, "a member again");
    part(&mut bench.far, &[first], own);
}

/// The number of groups reaches no queue pair by unicast, and a queue pair's number reaches no
/// group.
pub(crate) fn numbers_of_groups_and_pairs_do_not_mix(bench: &mut Bench) {
    let own = group(1);
    let side = member(&mut bench.far, own);
    let from = sender(&mut bench.near, own);
    let unicast = bench.near.handle(from.side.pd, side.gid);
    for (handle, number) in [(unicast, MULTICAST_QP), (from.handle, side.number)] {
        let request = Send::new(1, &[from.side.at(0, 8)]).to(handle, number, QKEY);
        bench.near.send(from.side.qp, request);
        assert_eq!(bench.near.wait_one(from.side.send_cq).status, IBV_WC_SUCCESS);
    }
    bench.far.quiet(side.receive_cq, Duration::from_millis(3));
    from.send(&mut bench.near, 1, 8, QKEY);
    arrives(&mut bench.far, &side, 1, 8, "a member");
    part(&mut bench.far, &[side], own);
}
