//! Point-to-point calls. With one rank, each rank's neighbours are the rank itself.

use std::time::Duration;

use mpi::{Error, Slots, Status, World};

use crate::Check;

pub(crate) const CHECKS: &[Check] = &[
    ("world", world),
    ("blocking", blocking),
    ("any source", any_source),
    ("empty", empty),
    ("refused", refused),
    ("truncated", truncated),
    ("slots", slots),
    ("slots together", slots_together),
    ("slots of a range", slots_of_a_range),
    ("slots refused", slots_refused),
    ("persistent", persistent),
    ("communicators", communicators),
    ("waiting", waiting),
];

/// The rank that receives from this one.
pub(crate) fn next(world: &World) -> u32 {
    (world.rank() + 1) % world.size()
}

/// The rank that sends to this one.
pub(crate) fn previous(world: &World) -> u32 {
    (world.rank() + world.size() - 1) % world.size()
}

/// Bytes that differ by rank, call and position.
pub(crate) fn pattern(rank: u32, call: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (rank as usize * 101 + call * 17 + at * 7 + at / 251) as u8).collect()
}

fn world(world: &World) {
    assert!(world.rank() < world.size());
    assert!(world.thread_level() >= mpi::ThreadLevel::Funneled);
    assert!(!world.processor_name().unwrap().is_empty());
    assert!(world.communicator().library().version_full().contains("MPI"));
}

fn blocking(world: &World) {
    let communicator = world.communicator();
    for (call, bytes) in [1, 8, 64, 4096, 100_000, 3 << 20].into_iter().enumerate() {
        let sent = pattern(world.rank(), call, bytes);
        let mut received = vec![0; bytes + 5];
        let from = previous(world);
        let status =
            communicator.sendrecv((&sent, next(world), 5), (&mut received, Some(from), Some(5))).unwrap();
        assert_eq!(status, Status { source: from as i32, tag: 5, bytes });
        assert_eq!(received[..bytes], pattern(from, call, bytes));
        assert_eq!(received[bytes..], [0; 5]);
        if world.size() == 1 {
            continue;
        }
        received.fill(0);
        // Even ranks send first: a large message waits for its receive.
        for turn in 0..2 {
            if world.rank() % 2 == turn {
                communicator.send(&sent, next(world), 6).unwrap();
                communicator.ssend(&sent, next(world), 7).unwrap();
            } else {
                let status = communicator.receive(&mut received, Some(from), Some(6)).unwrap();
                assert_eq!(status, Status { source: from as i32, tag: 6, bytes });
                assert_eq!(received[..bytes], pattern(from, call, bytes));
                received.fill(0);
                communicator.receive_ignoring_status(&mut received, Some(from), Some(7)).unwrap();
                assert_eq!(received[..bytes], pattern(from, call, bytes));
            }
        }
    }
}

fn any_source(world: &World) {
    let communicator = world.communicator();
    let mut received = [0; 8];
    let sent = pattern(world.rank(), 1, 3);
    let status = communicator.sendrecv((&sent, next(world), 77), (&mut received, None, None)).unwrap();
    assert_eq!(status, Status { source: previous(world) as i32, tag: 77, bytes: 3 });
    assert_eq!(received[..3], pattern(previous(world), 1, 3));
}

fn empty(world: &World) {
    let communicator = world.communicator();
    let status = communicator.sendrecv((&[], next(world), 1), (&mut [], None, Some(1))).unwrap();
    assert_eq!(status.bytes, 0);
}

fn refused(world: &World) {
    let communicator = world.communicator();
    let size = world.size();
    let rank = Error::Rank { rank: size, size };
    assert_eq!(communicator.send(&[1], size, 0), Err(rank.clone()));
    assert_eq!(communicator.receive(&mut [1], Some(size), None), Err(rank));
    assert_eq!(communicator.send(&[1], 0, -3), Err(Error::Tag { tag: -3 }));
    assert_eq!(communicator.receive(&mut [1], None, Some(-1)), Err(Error::Tag { tag: -1 }));
}

/// An error of MPI itself: names the call and the peer, and the process goes on.
fn truncated(world: &World) {
    // Open MPI 4.1.4 truncates a message of a rank to itself, and reports the bytes that fit.
    if world.size() == 1 {
        return;
    }
    let communicator = world.communicator().duplicate().unwrap();
    let mut received = [0; 4];
    let sent = (&[1; 8][..], next(world), 0);
    let error = communicator.sendrecv(sent, (&mut received, Some(previous(world)), Some(0))).unwrap_err();
    let Error::Call { call: "MPI_Sendrecv", peer, reason } = &error else { panic!("{error:?}") };
    assert_eq!(*peer, Some(previous(world)));
    assert!(reason.to_lowercase().contains("trunc") && !reason.contains('\n'), "{reason}");
    // With several requests, the error is that of the failed request.
    let mut slots = Slots::new(&communicator, 3, 8).unwrap();
    for (slot, bytes) in [(0, 8), (1, 4)] {
        slots.irecv(slot, bytes, Some(previous(world)), Some(slot as i32)).unwrap();
    }
    for tag in [0, 1] {
        slots.isend(2, 8, next(world), tag).unwrap();
        slots.wait(2).unwrap();
    }
    let error = loop {
        match slots.test_all(0..2) {
            Ok(are_complete) => assert!(!are_complete),
            Err(error) => break error,
        }
    };
    let Error::Call { call: "MPI_Testall", peer, reason } = &error else { panic!("{error:?}") };
    assert_eq!(*peer, Some(previous(world)));
    assert!(reason.to_lowercase().contains("trunc"), "{reason}");
}

fn slots(world: &World) {
    let communicator = world.communicator();
    let mut slots = Slots::new(&communicator, 4, 1000).unwrap();
    assert_eq!(slots.count(), 4);
    assert_eq!(slots.bytes(0).as_ptr() as usize % 4096, 0);
    assert_eq!(slots.bytes(1).as_ptr() as usize - slots.bytes(0).as_ptr() as usize, 1024);
    for round in 0..200 {
        let bytes = round * 5;
        slots.bytes_mut(0)[..bytes].copy_from_slice(&pattern(world.rank(), round, bytes));
        slots.bytes_mut(1).fill(0xee);
        slots.irecv(1, 1000, (round % 2 == 0).then(|| previous(world)), Some(9)).unwrap();
        slots.isend(0, bytes, next(world), 9).unwrap();
        assert!(slots.is_pending(0) && slots.is_pending(1) && !slots.is_pending(2));
        // A pending send may be read.
        assert_eq!(slots.bytes(0)[..bytes], pattern(world.rank(), round, bytes));
        let sent = Status { source: next(world) as i32, tag: 9, bytes };
        assert_eq!(slots.wait(0), Ok(sent));
        let status = loop {
            if let Some(status) = slots.test(1).unwrap() {
                break status;
            }
        };
        assert_eq!(status, Status { source: previous(world) as i32, tag: 9, bytes });
        assert_eq!(slots.bytes(1)[..bytes], pattern(previous(world), round, bytes));
        assert!(slots.bytes(1)[bytes..].iter().all(|&byte| byte == 0xee));
    }
    slots.irecv(2, 10, None, None).unwrap();
    slots.isend(3, 10, next(world), 0).unwrap();
    // Slot 1 has no request.
    slots.wait_all(1..4).unwrap();
    assert!((0..4).all(|slot| !slots.is_pending(slot)));
}

fn slots_together(world: &World) {
    let mut slots = Slots::new(&world.communicator(), 4, 64).unwrap();
    for slot in 0..3 {
        slots.irecv(slot, 64, Some(previous(world)), None).unwrap();
    }
    assert!(matches!(slots.test_all(0..4), Err(Error::Slot { call: "MPI_Testall", slot: 3, .. })));
    for number in 0..3 {
        // Before the last message is sent, not all have arrived.
        if number == 2 && world.size() == 1 {
            assert!(!slots.test_all(0..3).unwrap() && slots.is_pending(0));
        }
        let bytes = 20 * number;
        slots.bytes_mut(3)[..bytes].copy_from_slice(&pattern(world.rank(), number, bytes));
        slots.isend(3, bytes, next(world), number as i32).unwrap();
        slots.wait(3).unwrap();
    }
    while !slots.test_all(0..3).unwrap() {}
    for number in 0..3 {
        let bytes = 20 * number;
        let expected = Status { source: previous(world) as i32, tag: number as i32, bytes };
        assert_eq!((slots.status(number), slots.is_pending(number)), (expected, false));
        assert_eq!(slots.bytes(number)[..bytes], pattern(previous(world), number, bytes));
    }
}

/// Messages that are started and waited for together.
fn slots_of_a_range(world: &World) {
    let communicator = world.communicator().duplicate().unwrap();
    let mut into = Slots::new(&communicator, 5, 64).unwrap();
    let mut out = Slots::new(&communicator, 4, 64).unwrap();
    assert!(matches!(into.wait_each(0..1), Err(Error::Slot { call: "MPI_Waitall", slot: 0, .. })));
    assert!(matches!(out.isend_each(0..4, 65, next(world), 1), Err(Error::Range { .. })));
    // Slot 1 has a persistent request, which the range replaces.
    into.recv_init(1, 64, Some(previous(world)), None).unwrap();
    for round in 0..3 {
        into.irecv_each(1..5, 64, Some(previous(world)), None).unwrap();
        (0..4).for_each(|slot| out.bytes_mut(slot)[..20].copy_from_slice(&pattern(world.rank(), slot, 20)));
        assert!(matches!(into.irecv_each(0..2, 64, None, None), Err(Error::Slot { slot: 1, .. })));
        into.wait_each(0..0).unwrap();
        out.isend_each(0..3, 20, next(world), 7).unwrap();
        out.isend_each(3..4, 20, next(world), 7 + round % 2).unwrap();
        into.wait_each(3..5).unwrap();
        into.wait_each(1..3).unwrap();
        out.wait_all(0..4).unwrap();
        assert!(into.are_tagged(1..4, 7) && into.are_tagged(2..2, 0));
        assert_eq!(into.are_tagged(1..5, 7), round % 2 == 0);
        for slot in 1..5 {
            let tag = if slot == 4 { 7 + round % 2 } else { 7 };
            assert_eq!(into.status(slot), Status { source: previous(world) as i32, tag, bytes: 20 });
            assert_eq!(into.bytes(slot)[..20], pattern(previous(world), slot - 1, 20));
        }
        // The receive that the refused range had started before it reached a pending one.
        if into.is_pending(0) {
            out.isend(0, 0, next(world), 0).unwrap();
            into.wait_each(0..1).unwrap();
            out.wait(0).unwrap();
        }
    }
    world.progress().unwrap();
}

fn slots_refused(world: &World) {
    let communicator = world.communicator();
    let mut slots = Slots::new(&communicator, 2, 8).unwrap();
    assert_eq!(slots.isend(0, 9, 0, 0), Err(Error::Range { offset: 0, bytes: 9, length: 8 }));
    assert!(matches!(slots.test(0), Err(Error::Slot { call: "MPI_Test", slot: 0, .. })));
    assert!(matches!(slots.start(0), Err(Error::Slot { call: "MPI_Start", .. })));
    assert!(matches!(slots.isend(0, 8, world.size(), 0), Err(Error::Rank { .. })));
    slots.irecv(0, 8, Some(previous(world)), Some(1)).unwrap();
    assert!(matches!(slots.irecv(0, 8, None, None), Err(Error::Slot { call: "MPI_Irecv", .. })));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slots.bytes(0).len())).is_err());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slots.bytes_mut(0).len())).is_err());
    slots.isend(1, 8, next(world), 1).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slots.bytes_mut(1).len())).is_err());
    slots.wait_all(0..2).unwrap();
    assert_eq!(slots.bytes(0).len(), 8);
}

fn persistent(world: &World) {
    let communicator = world.communicator();
    let mut slots = Slots::new(&communicator, 4, 64).unwrap();
    slots.send_init(0, 64, next(world), 3).unwrap();
    slots.recv_init(1, 64, Some(previous(world)), Some(3)).unwrap();
    slots.send_init(2, 64, next(world), 4).unwrap();
    slots.recv_init(3, 64, Some(previous(world)), Some(4)).unwrap();
    assert!(matches!(slots.wait(0), Err(Error::Slot { call: "MPI_Wait", .. })));
    for round in 0..50 {
        for slot in [0, 2] {
            slots.bytes_mut(slot).copy_from_slice(&pattern(world.rank(), round + slot, 64));
        }
        if round % 2 == 0 {
            slots.start_all(0..4).unwrap();
            slots.wait_all(0..4).unwrap();
        } else {
            for slot in [1, 3, 0, 2] {
                slots.start(slot).unwrap();
            }
            assert!(matches!(slots.start(1), Err(Error::Slot { .. })));
            assert_eq!(slots.wait(3).unwrap().tag, 4);
            assert_eq!(slots.wait(1).unwrap().bytes, 64);
            slots.wait_all(0..4).unwrap();
        }
        for slot in [0, 2] {
            assert_eq!(slots.bytes(slot + 1), pattern(previous(world), round + slot, 64));
        }
    }
    // Other requests replace persistent ones.
    slots.isend(0, 1, next(world), 8).unwrap();
    slots.recv_init(1, 64, None, Some(8)).unwrap();
    slots.start(1).unwrap();
    assert_eq!(slots.wait(1).unwrap().bytes, 1);
    slots.wait(0).unwrap();
}

fn communicators(world: &World) {
    let communicator = world.communicator();
    let copy = communicator.duplicate().unwrap();
    assert_eq!([copy.rank(), copy.size()], [world.rank(), world.size()]);
    // Messages of one communicator do not arrive in the other.
    let mut first = Slots::new(&communicator, 2, 1).unwrap();
    let mut second = Slots::new(&copy, 2, 1).unwrap();
    first.irecv(0, 1, None, None).unwrap();
    second.irecv(0, 1, None, None).unwrap();
    second.bytes_mut(1)[0] = 2;
    first.bytes_mut(1)[0] = 1;
    second.isend(1, 1, next(world), 0).unwrap();
    first.isend(1, 1, next(world), 0).unwrap();
    first.wait_all(0..2).unwrap();
    second.wait_all(0..2).unwrap();
    assert_eq!([first.bytes(0)[0], second.bytes(0)[0]], [1, 2]);
    let alone = communicator.split(world.rank(), 0).unwrap();
    assert_eq!([alone.rank(), alone.size()], [0, 1]);
    let reversed = communicator.split(0, -(world.rank() as i32)).unwrap();
    assert_eq!(reversed.rank(), world.size() - 1 - world.rank());
}

/// A watchdog thread sees which call a rank is waiting in.
fn waiting(world: &World) {
    if world.size() == 1 {
        return;
    }
    let communicator = world.communicator();
    if world.rank() != 0 {
        std::thread::sleep(Duration::from_millis(50));
        communicator.send(&[1], 0, 2).unwrap();
        return;
    }
    let watchdog = std::thread::spawn(|| {
        for _ in 0..1000 {
            if let Some(call) = mpi::current_call() {
                return Some(call);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    });
    communicator.receive(&mut [0], Some(1), Some(2)).unwrap();
    assert_eq!(watchdog.join().unwrap(), Some(("MPI_Recv", Some(1))));
    for _ in 2..world.size() {
        communicator.receive(&mut [0], None, Some(2)).unwrap();
    }
}
