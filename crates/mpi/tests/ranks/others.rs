//! Grids, windows, and requests that are dropped before they have completed.

use mpi::{Error, NonblockingCollective, Slots, Window, World};

use crate::Check;
use crate::messages::{next, pattern, previous};

pub(crate) const GRID: &[Check] = &[("torus", torus), ("line", line), ("not a grid", not_a_grid)];

pub(crate) const WINDOWS: &[Check] = &[
    ("fence", fence),
    ("lock", lock),
    ("lock_all", lock_all),
    ("refused", window_refused),
    ("unequal", unequal),
];

pub(crate) const UNFINISHED: &[Check] =
    &[("receives", unfinished_receives), ("collective", unfinished_collective), ("clones", clones)];

/// A torus of 2 x 2: each side comes from the opposite side of the neighbour.
fn torus(world: &World) {
    let grid = world.communicator().cart_create(&[2, 2], &[true, true], false).unwrap();
    assert_eq!(grid.rank(), world.rank());
    let side = |rank: u32, side: usize| pattern(rank, side, 24);
    let sent: Vec<u8> = (0..4).flat_map(|at| side(grid.rank(), at)).collect();
    let mut received = vec![0; 96];
    grid.neighbor_alltoall(&sent, &mut received, 24).unwrap();
    let neighbours = [grid.rank() ^ 2, grid.rank() ^ 2, grid.rank() ^ 1, grid.rank() ^ 1];
    // With two places in a dimension, both neighbours are the same rank: their sides must not be
    // swapped.
    let expected: Vec<u8> = (0..4).flat_map(|at| side(neighbours[at], at ^ 1)).collect();
    // MPI_Neighbor_alltoall does not define the order of two messages between the same ranks
    // (halobench's README warns of this), so both orders are correct here.
    let mixed: Vec<u8> = (0..4).flat_map(|at| side(neighbours[at], at)).collect();
    assert!(received == expected || received == mixed);
    let copy = grid.duplicate().unwrap();
    copy.neighbor_alltoall(&sent, &mut received, 24).unwrap();
}

/// A line of 4 ranks, not periodic: the outer parts are left unchanged.
fn line(world: &World) {
    let grid = world.communicator().cart_create(&[4], &[false], false).unwrap();
    let rank = grid.rank();
    let sent = [pattern(rank, 0, 10), pattern(rank, 1, 10)].concat();
    let mut received = vec![0xee; 20];
    grid.neighbor_alltoall(&sent, &mut received, 10).unwrap();
    let below = if rank > 0 { pattern(rank - 1, 1, 10) } else { vec![0xee; 10] };
    let above = if rank < 3 { pattern(rank + 1, 0, 10) } else { vec![0xee; 10] };
    assert_eq!(received, [below, above].concat());
    let error = grid.neighbor_alltoall(&sent, &mut received, 9).unwrap_err();
    assert!(matches!(error, Error::Length { needed: 18, given: 20, .. }), "{error:?}");
}

fn not_a_grid(world: &World) {
    let communicator = world.communicator();
    for (dims, periods) in [(&[3][..], &[true][..]), (&[2, 2], &[true]), (&[], &[]), (&[0, 4], &[true; 2])] {
        let error = communicator.cart_create(dims, periods, false).err().expect("it is no grid of 4");
        assert!(matches!(error, Error::State { call: "MPI_Cart_create", .. }), "{error:?}");
    }
    let error = communicator.neighbor_alltoall(&[], &mut [], 0).unwrap_err();
    assert_eq!(error.to_string(), "MPI_Neighbor_alltoall is not possible: the communicator has no grid");
}

fn fence(world: &World) {
    let communicator = world.communicator();
    let mut window = Window::allocate(&communicator, 256, 128).unwrap();
    let mut read = [0xee; 256];
    window.read(0, &mut read).unwrap();
    assert_eq!(read, [0; 256]);
    window.write(200, &pattern(world.rank(), 2, 50)).unwrap();
    window.fence().unwrap();
    for round in 0..20 {
        window.origin_mut()[..64].copy_from_slice(&pattern(world.rank(), round, 64));
        window.put(0, 64, next(world), 100).unwrap();
        window.get(64, 50, previous(world), 200).unwrap();
        window.fence().unwrap();
        assert_eq!(window.origin()[64..114], pattern(previous(world), 2, 50));
        let mut read = [0; 64];
        window.read(100, &mut read).unwrap();
        assert_eq!(read[..], pattern(previous(world), round, 64));
        window.fence().unwrap();
    }
    window.free().unwrap();
}

fn lock(world: &World) {
    let communicator = world.communicator();
    let mut window = Window::allocate(&communicator, 100, 200).unwrap();
    for round in 0..20 {
        window.lock(next(world)).unwrap();
        window.origin_mut()[..100].copy_from_slice(&pattern(world.rank(), round, 100));
        window.put(0, 100, next(world), 0).unwrap();
        window.flush_local(next(world)).unwrap();
        window.origin_mut()[..100].fill(0);
        window.unlock().unwrap();
        communicator.barrier().unwrap();
        window.lock(world.rank()).unwrap();
        let mut read = [0; 100];
        window.read(0, &mut read).unwrap();
        window.unlock().unwrap();
        assert_eq!(read[..], pattern(previous(world), round, 100));
        window.lock(next(world)).unwrap();
        window.get(100, 100, next(world), 0).unwrap();
        window.flush_local(next(world)).unwrap();
        assert_eq!(window.origin()[100..], pattern(world.rank(), round, 100));
        window.unlock().unwrap();
        communicator.barrier().unwrap();
    }
    assert!(matches!(window.unlock(), Err(Error::State { call: "MPI_Win_unlock", .. })));
    window.lock(0).unwrap();
    assert!(matches!(window.unlock_all(), Err(Error::State { .. })));
    assert!(matches!(window.lock_all(), Err(Error::State { .. })));
    if world.size() > 1 {
        // Unlocking the window of rank 0 would not complete operations on another window.
        for refused in
            [window.put(0, 1, 1, 0), window.get(0, 1, 1, 0), window.flush(1), window.flush_local(1)]
        {
            assert!(matches!(refused, Err(Error::State { reason: "another rank's window is locked", .. })));
        }
    }
    window.put(0, 1, 0, 0).unwrap();
    window.unlock().unwrap();
    assert_eq!(window.origin().len(), 200);
    window.free().unwrap();
}

fn lock_all(world: &World) {
    let communicator = world.communicator();
    let mut window = Window::allocate(&communicator, 100, 200).unwrap();
    window.lock_all().unwrap();
    for round in 0..20 {
        window.origin_mut()[..100].copy_from_slice(&pattern(world.rank(), round, 100));
        window.put(0, 100, next(world), 0).unwrap();
        window.flush(next(world)).unwrap();
        window.sync().unwrap();
        communicator.barrier().unwrap();
        window.sync().unwrap();
        let mut read = [0; 100];
        window.read(0, &mut read).unwrap();
        assert_eq!(read[..], pattern(previous(world), round, 100));
        window.get(100, 100, next(world), 0).unwrap();
        window.flush_all().unwrap();
        assert_eq!(window.origin()[100..], pattern(world.rank(), round, 100));
        communicator.barrier().unwrap();
    }
    window.put(0, 1, world.rank(), 0).unwrap();
    window.unlock_all().unwrap();
    assert_eq!(window.origin().len(), 200);
    window.free().unwrap();
}

fn window_refused(world: &World) {
    let communicator = world.communicator();
    let mut window = Window::allocate(&communicator, 64, 64).unwrap();
    let outside = |error| matches!(error, Err(Error::State { .. }));
    assert!(outside(window.put(0, 1, 0, 0)) && outside(window.flush(0)) && outside(window.unlock_all()));
    window.lock_all().unwrap();
    assert!(outside(window.fence()) && outside(window.lock_all()));
    let range = |error| matches!(error, Err(Error::Range { .. }));
    assert!(range(window.put(60, 5, 0, 0)) && range(window.put(0, 5, 0, 60)));
    assert!(range(window.get(0, 5, 0, usize::MAX)) && range(window.write(64, &[1])));
    assert!(matches!(window.put(0, 1, world.size(), 0), Err(Error::Rank { .. })));
    window.put(0, 8, next(world), 0).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| window.origin().len())).is_err());
    // Flushing another rank does not complete it.
    window.flush(world.rank()).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| window.origin_mut().len())).is_err());
    window.flush(next(world)).unwrap();
    assert_eq!(window.origin().len(), 64);
    window.unlock_all().unwrap();
    window.free().unwrap();
}

fn unequal(world: &World) {
    let communicator = world.communicator();
    let error = Window::allocate(&communicator, 8 + world.rank() as usize, 8).err().expect("it differs");
    assert!(error.to_string().contains("different sizes"), "{error}");
}

/// Receives that nothing will be sent to are cancelled; persistent ones are freed.
fn unfinished_receives(world: &World) {
    let communicator = world.communicator();
    let mut slots = Slots::new(&communicator, 3, 100).unwrap();
    slots.irecv(0, 100, Some(previous(world)), Some(99)).unwrap();
    slots.recv_init(1, 100, None, Some(98)).unwrap();
    slots.recv_init(2, 100, None, Some(97)).unwrap();
    slots.start(2).unwrap();
    drop(slots);
    // Another rank may still wait for a message that this one would send now.
    communicator.barrier().unwrap();
    // The cancelled receives take no messages of later calls.
    let mut received = [0; 1];
    for tag in 97..100 {
        communicator.sendrecv((&[tag as u8], next(world), tag), (&mut received, None, Some(tag))).unwrap();
        assert_eq!(received, [tag as u8]);
    }
    // A rendezvous that has begun completes, or its memory is leaked.
    let mut slots = Slots::new(&communicator, 2, 1 << 20).unwrap();
    slots.irecv(0, 1 << 20, Some(previous(world)), Some(1)).unwrap();
    slots.isend(1, 1 << 20, next(world), 1).unwrap();
    slots.wait_all(0..2).unwrap();
}

/// A collective that all ranks have started completes.
fn unfinished_collective(world: &World) {
    let communicator = world.communicator();
    let mut collective = NonblockingCollective::new(&communicator, 8, 8 * world.size() as usize).unwrap();
    collective.iallgather().unwrap();
    communicator.barrier().unwrap();
    drop(collective);
    communicator.barrier().unwrap();
}

/// A duplicate is freed with its last clone: the world can be finalised after this check.
fn clones(world: &World) {
    let communicator = world.communicator();
    let copy = communicator.duplicate().unwrap();
    let again = copy.clone();
    drop(copy);
    again.barrier().unwrap();
}
