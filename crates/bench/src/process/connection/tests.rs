//! Tests of a connection whose peer can do anything.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use super::super::secure::tests::shake;
use super::*;

/// A time limit that suffices on a busy machine.
const SLACK: Duration = Duration::from_secs(20);
const ALL: Wants = Wants { to_send: false, to_read: true, to_end: true, lines: true };

/// Returns a connection and its peer: a blocking socket and the channel.
fn pair() -> (Connection, TcpStream, Channel) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    near.set_nonblocking(true).unwrap();
    let (far, _) = listener.accept().unwrap();
    let (client, server) = shake(1000);
    (Connection::new("node7:7362".to_owned(), near, client), far, server)
}

fn sealed(channel: &mut Channel, record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    channel.sealer.seal(record, &mut bytes);
    bytes
}

/// Reads until the stream or the deadline ends.
fn read_to_end(link: &mut Connection) -> Vec<u8> {
    let mut all = Vec::new();
    let mut bytes = [0; 1000];
    loop {
        match link.read(&mut bytes) {
            Ok(0) => return all,
            Ok(count) => all.extend(&bytes[..count]),
            Err(_) => {
                assert!(wait(link.interest(ALL), Deadline::after(SLACK), None).unwrap(), "it does not end");
            }
        }
    }
}

fn lines(link: &mut Connection) -> String {
    let mut all = Vec::new();
    let mut bytes = [0; 100];
    while let Ok(count @ 1..) = link.read_lines(&mut bytes) {
        all.extend(&bytes[..count]);
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn the_stream_and_the_words_come_apart_and_the_end_is_told() {
    let (mut link, mut far, mut channel) = pair();
    assert_eq!(link.read(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(link.read_lines(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    for record in [
        Record::Stream(b"one ".to_vec()),
        Record::Words("stopped by SIGINT".to_owned()),
        Record::Stream(b"two".to_vec()),
    ] {
        far.write_all(&sealed(&mut channel, &record)).unwrap();
    }
    drop(far);
    assert_eq!(read_to_end(&mut link), b"one two");
    assert_eq!(lines(&mut link), "stopped by SIGINT\n");
    assert_eq!(link.read_lines(&mut [0; 9]).unwrap(), 0);
    assert_eq!(link.end(Deadline::after(SLACK)), "closed the connection");
    assert_eq!(
        (link.name(1), link.speaker(1)),
        ("the server node7:7362".to_owned(), "rank 1 node7:7362".to_owned())
    );
}

#[test]
fn what_was_not_sealed_cuts_it_off() {
    let (mut link, mut far, mut channel) = pair();
    far.write_all(&sealed(&mut channel, &Record::Stream(b"good".to_vec()))).unwrap();
    far.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
    far.write_all(&[0; 70_000]).unwrap();
    assert_eq!(read_to_end(&mut link), b"good");
    let how = link.end(Deadline::after(SLACK));
    assert!(how.starts_with("was cut off because the channel is broken: a message was not sealed"), "{how}");
}

#[test]
fn a_reset_is_an_end_too() {
    let (mut link, far, _) = pair();
    link.write(b"never read").unwrap();
    wait(vec![PollFd::new(&far, PollFlags::IN)], Deadline::after(SLACK), None).unwrap();
    // The kernel resets a connection that is closed with unread bytes.
    drop(far);
    assert_eq!(read_to_end(&mut link), b"");
    let how = link.end(Deadline::after(SLACK));
    assert!(how.starts_with("was lost (") && how.contains("reset"), "{how}");
}

#[test]
fn an_end_that_reads_nothing_is_not_waited_for_and_loses_nothing() {
    let (mut link, mut far, mut channel) = pair();
    let piece = [7; 60_000];
    let mut taken = 0;
    while let Ok(count) = link.write(&piece) {
        taken += count;
        assert!(taken < 1 << 30, "a socket does not hold this much");
    }
    assert_eq!(link.write(&piece).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let wants = Wants { to_read: false, lines: false, ..ALL };
    assert!(!wait(link.interest(wants), Deadline::after(Duration::ZERO), None).unwrap(), "there is no room");
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 64 << 10];
        let mut read = 0;
        while read < taken {
            let count = far.read(&mut bytes).unwrap();
            channel.opener.push(&bytes[..count]);
            while let Some(Record::Stream(bytes)) = channel.opener.next().unwrap() {
                assert!(bytes.iter().all(|byte| *byte == 7));
                read += bytes.len();
            }
        }
        (far, read)
    });
    while link.flush().is_err() {
        assert!(wait(link.interest(wants), Deadline::after(SLACK), None).unwrap(), "there is room again");
    }
    let (_far, read) = reader.join().unwrap();
    assert_eq!(read, taken);
}

#[test]
fn the_end_is_waited_for_only_as_long_as_it_may_take() {
    let (mut link, far, _) = pair();
    link.finish(Deadline::after(Duration::from_millis(50)));
    assert!(link.ended.is_none());
    let closing = std::thread::spawn(move || drop(far));
    link.finish(Deadline::after(SLACK));
    assert_eq!(link.ended.as_deref(), Some("closed the connection"));
    closing.join().unwrap();
}

#[test]
fn an_end_that_says_nothing_is_mute_until_anything_comes() {
    let (mut link, mut far, mut channel) = pair();
    assert!(!link.is_mute());
    link.probe();
    assert!(link.is_mute() && link.read(&mut [0; 9]).is_err() && link.is_mute());
    let mut bytes = [0; 100];
    let count = far.read(&mut bytes).unwrap();
    channel.opener.push(&bytes[..count]);
    assert_eq!(channel.opener.next().unwrap(), Some(Record::Probe));
    far.write_all(&sealed(&mut channel, &Record::Probe)).unwrap();
    wait(link.interest(ALL), Deadline::after(SLACK), None).unwrap();
    assert_eq!(link.read(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(!link.is_mute());
}
