//! Streams that are delayed: in the middle of a message, on one lane of several, or by a loss.

use super::*;
use crate::endpoint::Posted;

/// Sends messages that the other rank of a test takes.
fn post(end: &mut SocketEndpoint, messages: u64) -> Result<(), Error> {
    for _ in 0..messages {
        while end.try_send(Mark::More)? == Posted::Busy {
            end.idle()?;
        }
    }
    Ok(())
}

/// A rank that waits for its message to be sent sends the rest of it.
#[test]
fn a_message_longer_than_the_buffer_is_sent_whole() {
    for (carrier, poll) in [
        (Carrier::UnixStream, Poll::Event),
        (Carrier::UnixStream, Poll::Busy),
        (Carrier::Tcp, Poll::Event),
        (Carrier::Tcp, Poll::Busy),
    ] {
        let axes = [
            axis::ENDPOINT.value(carrier),
            axis::POLL.value(poll),
            axis::SIZE_BYTES.value(4 << 20),
            axis::SOCKET_BUFFER_BYTES.value(Some(64 << 10)),
        ];
        let spec = spec(Pattern::ONE_WAY, axes);
        let halves = halves(&spec);
        let told = told(&spec, &halves, |_, _, _| ());
        let ends = run(halves, &told, |rank, end| {
            end.start(10.0)?;
            if rank == 1 {
                return end.receive().map(|_| ());
            }
            post(end, 1)?;
            while end.try_sent()? < 1 {
                end.idle()?;
            }
            Ok(())
        });
        for end in ends {
            end.unwrap_or_else(|error| panic!("{carrier:?} {poll:?}: {error}"));
        }
    }
}

#[test]
fn a_stream_that_is_stuck_keeps_no_other_from_sending() {
    for poll in [Poll::Event, Poll::Busy] {
        let axes = [
            axis::ENDPOINT.value(Carrier::Tcp),
            axis::POLL.value(poll),
            axis::SIZE_BYTES.value(16 << 10),
            axis::STREAMS.value(2),
            axis::SOCKET_BUFFER_BYTES.value(Some(64 << 10)),
        ];
        let spec = spec(Pattern::STREAM, axes);
        let halves = halves(&spec);
        let told = told(&spec, &halves, |_, _, _| ());
        let ends = run(halves, &told, |rank, end| {
            end.start(10.0)?;
            let all = 300;
            if rank == 0 {
                post(end, all)?;
                end.flush()?;
                return Ok(0);
            }
            // The first stream is read only after nearly all messages have arrived on the second:
            // the buffers of the first hold the rest.
            let mut first = 0;
            let mut second = 0;
            while second < 250 {
                second += end.take_on(1)?;
                end.yield_cpu()?;
            }
            while first + second < all {
                (first, second) = (first + end.take_on(0)?, second + end.take_on(1)?);
                end.yield_cpu()?;
            }
            Ok(first)
        });
        let stuck = ends[1].as_ref().unwrap_or_else(|error| panic!("{poll:?}: {error}"));
        assert!(ends[0].is_ok() && (1..=50).contains(stuck), "{ends:?}");
    }
}

/// The last message of the previous stream is lost: the greeting belongs to the next stream, and
/// counts as no message.
#[test]
fn a_greeting_that_comes_in_a_flood_is_kept_for_the_next() {
    for poll in [Poll::Event, Poll::Busy] {
        let spec = spec(Pattern::STREAM, [axis::ENDPOINT.value(Carrier::Udp), axis::POLL.value(poll)]);
        let halves = halves(&spec);
        let told = told(&spec, &halves, |_, _, _| ());
        let ends = run(halves, &told, |rank, end| {
            if rank == 0 {
                post(end, 3)?;
                return end.send_sync().map(|()| 3);
            }
            let mut taken = 0;
            let begin = end.clock().now();
            while end.clock().now().since(begin) < end.clock().ticks(Duration::from_millis(50)) {
                taken += u64::from(end.try_receive()?.is_some());
            }
            end.start(2.0)?;
            end.await_sync()?;
            Ok(taken)
        });
        let taken: Vec<_> = ends.into_iter().map(|end| end.unwrap()).collect();
        assert_eq!(taken, [3, 3], "{poll:?}");
    }
}

/// All messages of a lane arrive together with the greeting, so that the kernel reports none of
/// them.
#[test]
fn messages_that_come_with_a_greeting_are_taken() {
    for carrier in [Carrier::Tcp, Carrier::UnixStream, Carrier::UnixDatagram] {
        for poll in [Poll::Event, Poll::Busy] {
            let axes = [axis::ENDPOINT.value(carrier), axis::POLL.value(poll), axis::STREAMS.value(3)];
            let spec = spec(Pattern::STREAM, axes);
            let halves = halves(&spec);
            let told = told(&spec, &halves, |_, _, _| ());
            let are_sent = Barrier::new(2);
            let ends = run(halves, &told, |rank, end| {
                end.start(5.0)?;
                if rank == 0 {
                    end.send_sync()?;
                    post(end, 6)?;
                    are_sent.wait();
                    return Ok(());
                }
                are_sent.wait();
                // Sent is not yet arrived, over TCP.
                thread::sleep(Duration::from_millis(20));
                end.await_sync()?;
                for _ in 0..6 {
                    end.receive()?;
                }
                Ok(())
            });
            for end in ends {
                end.unwrap_or_else(|error| panic!("{carrier:?} {poll:?}: {error}"));
            }
        }
    }
}

#[test]
fn both_ends_have_the_buffers_that_are_asked_for() {
    for carrier in [Carrier::Tcp, Carrier::UnixStream] {
        let buffers = axis::SOCKET_BUFFER_BYTES.value(Some(100_000));
        let spec = spec(Pattern::STREAM, [axis::ENDPOINT.value(carrier), buffers]);
        let halves = halves(&spec);
        let told = told(&spec, &halves, |_, _, _| ());
        let ends = run(halves, &told, |_, end| Ok(end.send_buffer_bytes()));
        let bytes: Vec<_> = ends.into_iter().map(|end| end.unwrap()).collect();
        assert_eq!(bytes, [200_000; 2], "{carrier:?}: the kernel counts its own, too");
    }
}
