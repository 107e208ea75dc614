//! Blocking and nonblocking collective calls.

use mpi::{Communicator, Datatype, Error, NonblockingCollective, Op, Parts, World};

use crate::Check;
use crate::messages::pattern;

pub(crate) const CHECKS: &[Check] = &[
    ("bcast", bcast),
    ("reductions", reductions),
    ("gather", gather),
    ("scatter", scatter),
    ("alltoall", alltoall),
    ("vectors", vectors),
    ("empty", empty),
    ("refused", refused),
    ("nonblocking data", nonblocking_data),
    ("nonblocking reductions", nonblocking_reductions),
];

/// Bytes that are aligned for any element.
#[repr(align(8))]
struct Aligned<const N: usize>([u8; N]);

fn bcast(world: &World) {
    let communicator = world.communicator();
    communicator.barrier().unwrap();
    for root in 0..world.size() {
        for bytes in [1, 1000, 100_000] {
            let mut buffer = pattern(world.rank(), 3, bytes);
            communicator.bcast(&mut buffer, root).unwrap();
            assert_eq!(buffer, pattern(root, 3, bytes));
        }
    }
}

/// Element `i` of rank `r` is `10 * r + i`: the first two elements, and the result of each
/// operation on them.
fn expected(op: Op, size: u32, index: u32) -> u32 {
    match op {
        Op::Sum => (0..size).map(|rank| 10 * rank + index).sum(),
        Op::Max => 10 * (size - 1) + index,
        Op::Min => index,
    }
}

/// Elements of a datatype.
fn elements(datatype: Datatype, values: [u32; 2]) -> Vec<u8> {
    let bytes = values.map(|value| match datatype {
        Datatype::Double => f64::from(value).to_ne_bytes().to_vec(),
        Datatype::Float => (value as f32).to_ne_bytes().to_vec(),
        Datatype::Int32 => (value as i32).to_ne_bytes().to_vec(),
        Datatype::Uint64 => u64::from(value).to_ne_bytes().to_vec(),
        Datatype::Byte => panic!("it has no arithmetic"),
    });
    bytes.concat()
}

const ARITHMETIC: [Datatype; 4] = [Datatype::Double, Datatype::Float, Datatype::Int32, Datatype::Uint64];

fn reductions(world: &World) {
    let communicator = world.communicator();
    let size = world.size();
    let rank = world.rank();
    for datatype in ARITHMETIC {
        for op in Op::ALL {
            let length = 2 * datatype.bytes();
            let mut sent = Aligned([0; 16]);
            sent.0[..length].copy_from_slice(&elements(datatype, [10 * rank, 10 * rank + 1]));
            let result = elements(datatype, [expected(op, size, 0), expected(op, size, 1)]);
            let mut received = Aligned([0; 16]);
            communicator.allreduce(&sent.0[..length], &mut received.0[..length], datatype, op).unwrap();
            assert_eq!(received.0[..length], result, "{datatype:?} {op:?}");
            for root in 0..size {
                received.0.fill(0);
                let room = if rank == root { length } else { 0 };
                communicator.reduce(&sent.0[..length], &mut received.0[..room], datatype, op, root).unwrap();
                assert_eq!(received.0[..room], result[..room], "{datatype:?} {op:?}");
            }
            block(&communicator, datatype, op);
        }
    }
}

/// Rank `i` gets element `i`.
fn block(communicator: &Communicator, datatype: Datatype, op: Op) {
    let size = communicator.size();
    let rank = communicator.rank();
    let one = datatype.bytes();
    let mut sent = Aligned([0; 64]);
    for index in 0..size {
        let value = elements(datatype, [10 * rank + index, 0]);
        sent.0[index as usize * one..][..one].copy_from_slice(&value[..one]);
    }
    let mut received = Aligned([0; 8]);
    let length = size as usize * one;
    communicator.reduce_scatter_block(&sent.0[..length], &mut received.0[..one], datatype, op).unwrap();
    let own = elements(datatype, [expected(op, size, rank), 0]);
    assert_eq!(received.0[..one], own[..one]);
    // The last rank gets one element more than the others.
    let is_last = rank + 1 == size;
    let counts: Vec<i32> = (1..=size).map(|count| if count == size { 2 } else { 1 }).collect();
    let value = elements(datatype, [10 * rank + size, 0]);
    sent.0[length..][..one].copy_from_slice(&value[..one]);
    let mut received = Aligned([0; 16]);
    let room = if is_last { 2 * one } else { one };
    let given = &sent.0[..length + one];
    communicator.reduce_scatter(given, &mut received.0[..room], &counts, datatype, op).unwrap();
    let own = elements(datatype, [expected(op, size, rank), expected(op, size, rank + 1)]);
    assert_eq!(received.0[..room], own[..room]);
    for wrong in [&counts[1..], &[-1, size as i32 + 2][..]] {
        let error =
            communicator.reduce_scatter(given, &mut received.0[..room], wrong, datatype, op).unwrap_err();
        assert!(error.to_string().contains("a count for each rank"), "{error}");
    }
}

/// The bytes of all ranks in their order.
fn all(size: u32, call: usize, bytes: usize) -> Vec<u8> {
    (0..size).flat_map(|rank| pattern(rank, call, bytes)).collect()
}

fn gather(world: &World) {
    let communicator = world.communicator();
    for bytes in [1, 500, 50_000] {
        let sent = pattern(world.rank(), 4, bytes);
        let mut received = vec![0; bytes * world.size() as usize];
        communicator.allgather(&sent, &mut received).unwrap();
        assert_eq!(received, all(world.size(), 4, bytes));
        for root in 0..world.size() {
            received.fill(0);
            let room = if world.rank() == root { received.len() } else { 0 };
            communicator.gather(&sent, &mut received[..room], root).unwrap();
            assert_eq!(received[..room], all(world.size(), 4, bytes)[..room]);
        }
    }
}

fn scatter(world: &World) {
    let communicator = world.communicator();
    for bytes in [1, 500, 50_000] {
        for root in 0..world.size() {
            let sent = if world.rank() == root { all(world.size(), 5, bytes) } else { Vec::new() };
            let mut received = vec![0; bytes];
            communicator.scatter(&sent, &mut received, root).unwrap();
            assert_eq!(received, pattern(world.rank(), 5, bytes));
        }
    }
}

/// The bytes that `from` sends to each rank: `call` is the receiver's rank.
fn parts(from: u32, size: u32, bytes: usize) -> Vec<u8> {
    (0..size).flat_map(|to| pattern(from, to as usize, bytes)).collect()
}

/// The bytes that all ranks send to `to`.
fn arrived(to: u32, size: u32, bytes: usize) -> Vec<u8> {
    (0..size).flat_map(|from| pattern(from, to as usize, bytes)).collect()
}

fn alltoall(world: &World) {
    let communicator = world.communicator();
    for bytes in [1, 500, 50_000] {
        let sent = parts(world.rank(), world.size(), bytes);
        let mut received = vec![0; sent.len()];
        communicator.alltoall(&sent, &mut received).unwrap();
        assert_eq!(received, arrived(world.rank(), world.size(), bytes));
    }
}

/// Rank `i` has `3 * i + 1` bytes, with a gap of 2 after each part.
fn vectors(world: &World) {
    let communicator = world.communicator();
    let length = |rank: u32| 3 * rank as usize + 1;
    let counts: Vec<_> = (0..world.size()).map(|rank| length(rank) as i32).collect();
    let displacements: Vec<_> =
        (0..world.size()).map(|rank| (0..rank).map(|before| length(before) as i32 + 2).sum()).collect();
    let layout = Parts { counts: &counts, displacements: &displacements };
    let gapped: Vec<u8> =
        (0..world.size()).flat_map(|rank| [pattern(rank, 6, length(rank)), vec![0; 2]].concat()).collect();
    let sent = pattern(world.rank(), 6, length(world.rank()));
    let mut received = vec![0; gapped.len()];
    communicator.allgatherv(&sent, &mut received, layout).unwrap();
    assert_eq!(received, gapped);
    for root in 0..world.size() {
        received.fill(0);
        communicator.gatherv(&sent, &mut received, layout, root).unwrap();
        assert_eq!(received, if world.rank() == root { gapped.clone() } else { vec![0; gapped.len()] });
        let mut own = vec![0; length(world.rank())];
        communicator.scatterv(&gapped, layout, &mut own, root).unwrap();
        assert_eq!(own, sent);
    }
    // Each rank sends its own number of bytes to all ranks.
    let mine = vec![length(world.rank()) as i32; world.size() as usize];
    let from = Parts { counts: &mine, displacements: &vec![0; world.size() as usize] };
    received.fill(0);
    communicator.alltoallv((&sent, from), (&mut received, layout)).unwrap();
    assert_eq!(received, gapped);
}

/// An empty slice has the address 1, which must not be confused with `MPI_IN_PLACE`.
fn empty(world: &World) {
    let communicator = world.communicator();
    communicator.bcast(&mut [], 0).unwrap();
    communicator.allgather(&[], &mut []).unwrap();
    communicator.alltoall(&[], &mut []).unwrap();
    communicator.gather(&[], &mut [], 0).unwrap();
    communicator.scatter(&[], &mut [], 0).unwrap();
    communicator.allreduce(&[], &mut [], Datatype::Double, Op::Sum).unwrap();
    communicator.reduce(&[], &mut [], Datatype::Double, Op::Sum, 0).unwrap();
}

fn refused(world: &World) {
    let communicator = world.communicator();
    let mut received = Aligned([0; 24]);
    let size = world.size() as usize;
    let error = communicator.allgather(&[0; 4], &mut received.0[..1]).unwrap_err();
    let call = "MPI_Allgather";
    assert_eq!(error, Error::Length { call, what: "the receive buffer", needed: 4 * size, given: 1 });
    let sent = Aligned([0; 24]);
    for range in [0..7, 1..9] {
        let error = communicator.allreduce(&sent.0[range], &mut received.0[..8], Datatype::Double, Op::Sum);
        assert!(matches!(error, Err(Error::Elements { element: 8, .. })), "{error:?}");
    }
    let error = communicator.bcast(&mut [0], world.size()).unwrap_err();
    assert_eq!(error.to_string(), format!("there is no rank {size}: the communicator has {size} ranks"));
}

fn nonblocking_data(world: &World) {
    let communicator = world.communicator();
    let size = world.size() as usize;
    let mut gather = NonblockingCollective::new(&communicator, 100, 100 * size).unwrap();
    let mut scatter = NonblockingCollective::new(&communicator, 100 * size, 100).unwrap();
    let mut exchange = NonblockingCollective::new(&communicator, 100 * size, 100 * size).unwrap();
    for root in 0..world.size() {
        gather.sent_mut().copy_from_slice(&pattern(world.rank(), 7, 100));
        gather.igather(root).unwrap();
        assert!(matches!(gather.iallgather(), Err(Error::State { .. })));
        scatter.sent_mut().copy_from_slice(&all(world.size(), 8, 100));
        scatter.iscatter(root).unwrap();
        exchange.sent_mut().copy_from_slice(&parts(world.rank(), world.size(), 100));
        exchange.ialltoall().unwrap();
        gather.wait().unwrap();
        if world.rank() == root {
            assert_eq!(gather.received(), all(world.size(), 7, 100));
        }
        scatter.wait().unwrap();
        assert_eq!(scatter.received(), pattern(world.rank(), 8, 100));
        while !exchange.test().unwrap() {}
        assert_eq!(exchange.received(), arrived(world.rank(), world.size(), 100));
        gather.received_mut().fill(0);
        gather.iallgather().unwrap();
        gather.wait().unwrap();
        assert_eq!(gather.received(), all(world.size(), 7, 100));
        scatter.received_mut().copy_from_slice(&pattern(world.rank(), 9, 100));
        scatter.ibcast(root).unwrap();
        scatter.wait().unwrap();
        assert_eq!(scatter.received(), pattern(root, 9, 100));
        scatter.ibarrier().unwrap();
        scatter.wait().unwrap();
    }
    assert!(matches!(scatter.wait(), Err(Error::State { call: "MPI_Wait", .. })));
    assert!(matches!(gather.ialltoall(), Err(Error::Length { .. })) || size == 1);
}

fn nonblocking_reductions(world: &World) {
    let communicator = world.communicator();
    let size = world.size();
    let rank = world.rank();
    for datatype in ARITHMETIC {
        let mut collective =
            NonblockingCollective::new(&communicator, 2 * datatype.bytes(), 2 * datatype.bytes()).unwrap();
        for op in Op::ALL {
            let result = elements(datatype, [expected(op, size, 0), expected(op, size, 1)]);
            collective.sent_mut().copy_from_slice(&elements(datatype, [10 * rank, 10 * rank + 1]));
            collective.iallreduce(datatype, op).unwrap();
            collective.wait().unwrap();
            assert_eq!(collective.received(), result);
            collective.received_mut().fill(0);
            collective.ireduce(datatype, op, size - 1).unwrap();
            collective.wait().unwrap();
            if rank == size - 1 {
                assert_eq!(collective.received(), result);
            }
        }
    }
    let parts = size as usize;
    let mut scattered = NonblockingCollective::new(&communicator, 8 * parts, 8).unwrap();
    for op in Op::ALL {
        let given: Vec<u8> = (0..size).flat_map(|to| u64::from(10 * rank + to % 2).to_ne_bytes()).collect();
        scattered.sent_mut().copy_from_slice(&given);
        scattered.ireduce_scatter_block(Datatype::Uint64, op).unwrap();
        scattered.wait().unwrap();
        assert_eq!(scattered.received(), u64::from(expected(op, size, rank % 2)).to_ne_bytes());
        scattered.received_mut().fill(0);
        scattered.ireduce_scatter(Datatype::Uint64, op).unwrap();
        scattered.wait().unwrap();
        assert_eq!(scattered.received(), u64::from(expected(op, size, rank % 2)).to_ne_bytes());
    }
}
