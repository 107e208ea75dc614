use proptest::prelude::*;

use super::*;

/// Returns both sides after a correct handshake whose bytes arrive in pieces of this size.
pub(in super::super) fn shake(piece: usize) -> (Channel, Channel) {
    let key = Key::generate().unwrap();
    let mut initiator = Initiator::new(&key);
    let mut responder = Responder::new(&key);
    let mut client = None;
    let mut server = None;
    for _ in 0..4 {
        for bytes in initiator.outgoing().chunks(piece) {
            server = server.or(responder.take(bytes).unwrap());
        }
        for bytes in responder.outgoing().chunks(piece) {
            client = client.or(initiator.take(bytes).unwrap());
        }
    }
    (client.expect("the client is through"), server.expect("the server is through"))
}

fn stream(bytes: &[u8]) -> Record {
    Record::Stream(bytes.to_vec())
}

/// Returns all records of a sealed stream, and the error that ended it.
fn opened(opener: &mut Opener, wire: &[u8], piece: usize) -> (Vec<Record>, Option<String>) {
    let mut records = Vec::new();
    for bytes in wire.chunks(piece) {
        opener.push(bytes);
        loop {
            match opener.next() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(error) => return (records, Some(error.to_string())),
            }
        }
    }
    (records, None)
}

#[test]
fn both_ends_meet_however_the_bytes_are_cut() {
    for piece in [1, 2, 7, 49, 50, 1000] {
        let (mut client, mut server) = shake(piece);
        let mut wire = Vec::new();
        client.sealer.seal(&stream(b"to the server"), &mut wire);
        client.sealer.seal(&Record::Words("an aside".to_owned()), &mut wire);
        let expected = vec![stream(b"to the server"), Record::Words("an aside".to_owned())];
        assert_eq!(opened(&mut server.opener, &wire, piece), (expected, None));
        let mut wire = Vec::new();
        server.sealer.seal(&stream(b"to the client"), &mut wire);
        assert_eq!(opened(&mut client.opener, &wire, piece), (vec![stream(b"to the client")], None));
    }
}

#[test]
fn a_long_stream_is_cut_into_records_that_noise_allows() {
    let (mut client, mut server) = shake(1000);
    let long: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
    let mut wire = Vec::new();
    client.sealer.seal(&stream(&long), &mut wire);
    let (records, error) = opened(&mut server.opener, &wire, 4096);
    let pieces: Vec<Vec<u8>> = records
        .into_iter()
        .map(|record| match record {
            Record::Stream(bytes) => bytes,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(error, None);
    assert_eq!(pieces.len(), long.len().div_ceil(65518));
    assert!(pieces.concat() == long);
}

#[test]
fn nothing_that_is_said_can_be_read_on_the_way() {
    let (mut client, _) = shake(1000);
    let mut wire = Vec::new();
    client.sealer.seal(&stream(b"secret secret secret"), &mut wire);
    assert!(!wire.windows(6).any(|window| window == b"secret"));
}

#[test]
fn a_wrong_key_is_told_and_known() {
    let mut initiator = Initiator::new(&Key::generate().unwrap());
    let mut responder = Responder::new(&Key::generate().unwrap());
    assert!(responder.take(&initiator.outgoing()).unwrap().is_none());
    assert!(initiator.take(&responder.outgoing()).unwrap().is_none());
    assert!(matches!(responder.take(&initiator.outgoing()), Err(Error::WrongKey)));
    assert!(matches!(initiator.take(&responder.outgoing()), Err(Error::WrongKey)));
}

#[test]
fn another_version_is_told_from_a_wrong_key_by_both_ends() {
    let key = Key::generate().unwrap();
    let newer = b"rdmascope 9.9.9 protocol 999\n";
    let mut responder = Responder::new(&key);
    let error = responder.take(newer).err().unwrap().to_string();
    assert!(error.contains("rdmascope 9.9.9 with protocol 999 cannot work with"), "{error}");
    assert_eq!(responder.outgoing(), Greeting::ours().to_line().as_bytes(), "the newer one can say so too");
    let error = Initiator::new(&key).take(newer).err().unwrap().to_string();
    assert!(error.contains("rdmascope 9.9.9 with protocol 999 cannot work with"), "{error}");
}

#[test]
fn the_greetings_cannot_be_changed_on_the_way() {
    let key = Key::generate().unwrap();
    let mut initiator = Initiator::new(&key);
    let mut responder = Responder::new(&key);
    // Another version of the program that speaks the same protocol, as far as the server sees.
    let greeting = String::from_utf8(initiator.outgoing()).unwrap().replacen("0.", "7.", 1);
    assert!(responder.take(greeting.as_bytes()).unwrap().is_none());
    assert!(initiator.take(&responder.outgoing()).unwrap().is_none());
    assert!(matches!(responder.take(&initiator.outgoing()), Err(Error::WrongKey)));
}

#[test]
fn a_server_says_nothing_to_those_who_do_not_greet() {
    for stranger in
        [&b""[..], b"\r\n", b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\n", &[0; 300], &[0xff; 64], b"rdmascope "]
    {
        let mut responder = Responder::new(&Key::generate().unwrap());
        let _ = responder.take(stranger);
        assert!(responder.outgoing().is_empty() && !responder.is_greeted(), "{stranger:?}");
    }
}

#[test]
fn a_copy_of_what_the_client_sent_is_no_client() {
    let key = Key::generate().unwrap();
    let mut initiator = Initiator::new(&key);
    let mut responder = Responder::new(&key);
    let mut said = initiator.outgoing();
    responder.take(&said).unwrap();
    initiator.take(&responder.outgoing()).unwrap();
    let message = initiator.outgoing();
    said.extend(&message);
    responder.take(&message).unwrap();
    initiator.take(&responder.outgoing()).unwrap().expect("the client is through");
    said.extend(initiator.outgoing());
    // The copy of message 1 is accepted and answered, but the proof belongs to another handshake.
    let mut again = Responder::new(&key);
    assert!(matches!(again.take(&said), Err(Error::BrokenChannel { .. })));
}

#[test]
fn a_server_without_the_key_is_no_server() {
    let key = Key::generate().unwrap();
    let mut initiator = Initiator::new(&key);
    initiator.take(Greeting::ours().to_line().as_bytes()).unwrap();
    let answer = [&48u16.to_be_bytes()[..], &[7; 48]].concat();
    assert!(matches!(initiator.take(&answer), Err(Error::BrokenChannel { .. })));
}

#[test]
fn records_cannot_be_left_out_or_said_twice() {
    let seal = |channel: &mut Channel, text: &[u8]| {
        let mut wire = Vec::new();
        channel.sealer.seal(&stream(text), &mut wire);
        wire
    };
    let (mut client, mut server) = shake(1000);
    let first = seal(&mut client, b"first");
    let second = seal(&mut client, b"second");
    let (records, error) = opened(&mut server.opener, &[first.as_slice(), &first, &second].concat(), 1000);
    assert!(records == [stream(b"first")] && error.is_some());
    let (mut client, mut server) = shake(1000);
    seal(&mut client, b"first");
    let second = seal(&mut client, b"second");
    assert!(opened(&mut server.opener, &second, 1000).1.is_some());
    // A side does not accept its own records.
    let (mut client, _) = shake(1000);
    let echo = seal(&mut client, b"echo");
    assert!(opened(&mut client.opener, &echo, 1000).1.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_changed_bit_is_noticed_and_nothing_wrong_is_let_through(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..5),
        at in 0.0..1.0,
        bit in 0u32..8,
        piece in 1usize..200,
    ) {
        let (mut client, mut server) = shake(1000);
        let mut wire = Vec::new();
        texts.iter().for_each(|text| client.sealer.seal(&stream(text), &mut wire));
        let at = (wire.len() as f64 * at) as usize;
        wire[at] ^= 1 << bit;
        let (records, error) = opened(&mut server.opener, &wire, piece);
        let sent: Vec<Record> = texts.iter().map(|text| stream(text)).collect();
        prop_assert!(sent.starts_with(&records) && records.len() < sent.len());
        // If a length grew, the opener waits for more bytes, and then rejects the record.
        prop_assert!(error.is_some() || opened(&mut server.opener, &[0; 70_000], piece).1.is_some());
    }

    #[test]
    fn foreign_bytes_never_panic_and_never_get_in(bytes: Vec<u8>, piece in 1usize..60) {
        let key = Key::generate().unwrap();
        for start in [&b""[..], b"rdmascope 0.2.0 protocol 3\n", b"rdmascope 0.1.0 protocol 1\n\0\x30"] {
            let all = [start, &bytes].concat();
            let mut responder = Responder::new(&key);
            let mut initiator = Initiator::new(&key);
            for bytes in all.chunks(piece) {
                if !matches!(responder.take(bytes), Ok(None)) {
                    break;
                }
            }
            prop_assert!(!matches!(responder.stage, Stage::Proof(_)));
            for bytes in all.chunks(piece) {
                match initiator.take(bytes) {
                    Ok(channel) => prop_assert!(channel.is_none()),
                    Err(_) => break,
                }
            }
        }
    }
}
