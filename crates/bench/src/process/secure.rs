//! The encrypted and authenticated channel between a coordinator and an agent. It does no input or
//! output itself: each side takes the received bytes and returns the bytes to send.
//!
//! ```text
//! client                                      server
//! rdmascope 0.2.0 protocol 3\n            ──►
//!                                         ◄── rdmascope 0.2.0 protocol 3\n
//! 48, Noise message 1 (psk, e)            ──►
//!                                         ◄── 48, Noise message 2 (e, ee), or 0: not this key
//! n, sealed record; n, sealed record ...  ◄─► n, sealed record ...
//! ```
//!
//! The handshake is `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` (noiseprotocol.org, revision 34) with
//! the one-time key as pre-shared key and both greetings, byte for byte, as prologue. The greetings
//! come first and unencrypted, so that another version can be distinguished from a wrong key. Each
//! message and record follows its length: 2 bytes, big-endian.
//!
//! A server sends nothing before it has been greeted, and trusts no client before the first sealed
//! record: message 1 may be a copy of one that the real client sent. A record is a byte for its
//! type, then a piece of the stream (the frames of [`super::frame`]) or words.

use std::collections::VecDeque;
use std::sync::Arc;

use snow::{Builder, HandshakeState, StatelessTransportState};

use super::frame::{Greeting, parse_greeting, quotable};
use super::key::Key;
use crate::Error;

/// One side of a channel whose handshake has proved that both sides have the key.
pub struct Channel {
    /// Seals the records to send.
    pub sealer: Sealer,
    /// Opens the received records.
    pub opener: Opener,
}

/// The client's side of the handshake.
pub struct Initiator {
    key: Key,
    /// Present once the server has greeted.
    handshake: Option<HandshakeState>,
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

/// The server's side of the handshake.
pub struct Responder {
    key: Key,
    stage: Stage,
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

/// The message that the server waits for.
enum Stage {
    Greeting,
    Key(Box<HandshakeState>),
    Proof(Channel),
    Over,
}

/// Seals the records to send.
pub struct Sealer {
    state: Arc<StatelessTransportState>,
    /// The number of the next record. Numbers never repeat, so that no record can be left out,
    /// repeated or moved.
    record: u64,
}

/// Opens the received records.
pub struct Opener {
    state: Arc<StatelessTransportState>,
    record: u64,
    incoming: VecDeque<u8>,
}

/// The contents of a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Record {
    /// A piece of the stream of greeting and frames.
    Stream(Vec<u8>),
    /// A text for the user, in the place of a child's standard error.
    Words(String),
    /// A request for a sign of life. The answer is the same record.
    Probe,
}

impl Initiator {
    /// Starts a handshake with the greeting.
    pub fn new(key: &Key) -> Self {
        let outgoing = Greeting::ours().to_line().into_bytes();
        Self { key: key.clone(), handshake: None, incoming: VecDeque::new(), outgoing }
    }

    /// Returns the bytes to send now.
    pub fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the first line of what came in the place of a greeting, quoted, if anything did.
    pub fn foreign(&mut self) -> Option<String> {
        let is_greeted = self.handshake.is_some();
        (!is_greeted && !self.incoming.is_empty()).then(|| quotable(self.incoming.make_contiguous()))
    }

    /// Takes received bytes. Returns the channel once the server has proved that it has the key.
    ///
    /// # Errors
    ///
    /// [`Error::NoGreeting`], [`Error::OtherProtocol`], [`Error::WrongKey`] or
    /// [`Error::BrokenChannel`].
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Channel>, Error> {
        self.incoming.extend(bytes);
        let mut handshake = match self.handshake.take() {
            Some(handshake) => handshake,
            None => {
                let incoming = self.incoming.make_contiguous();
                let Some((greeting, used)) = parse_greeting(incoming)? else { return Ok(None) };
                greeting.check()?;
                let prologue = [Greeting::ours().to_line().as_bytes(), &incoming[..used]].concat();
                self.incoming.drain(..used);
                let mut handshake = handshake(&self.key, &prologue, true);
                put_handshake(&mut handshake, &mut self.outgoing)?;
                handshake
            }
        };
        let Some(message) = handshake_message(&mut self.incoming)? else {
            self.handshake = Some(handshake);
            return Ok(None);
        };
        if message.is_empty() {
            return Err(Error::WrongKey);
        }
        handshake.read_message(&message, &mut [0; RECORD_BYTES_MAX]).map_err(|_| forged())?;
        let mut channel = Channel::new(handshake, std::mem::take(&mut self.incoming))?;
        channel.sealer.seal(&Record::Stream(Vec::new()), &mut self.outgoing);
        Ok(Some(channel))
    }
}

impl Responder {
    /// Starts to wait for a greeting.
    pub fn new(key: &Key) -> Self {
        Self { key: key.clone(), stage: Stage::Greeting, incoming: VecDeque::new(), outgoing: Vec::new() }
    }

    /// Returns the bytes to send now. After an error, they tell the client the reason.
    pub fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Whether the client has greeted. A port scanner does not.
    pub fn is_greeted(&self) -> bool {
        matches!(self.stage, Stage::Key(_) | Stage::Proof(_))
    }

    /// Takes received bytes. Returns the channel once the client has proved that it has the key.
    ///
    /// # Errors
    ///
    /// [`Error::NoGreeting`], [`Error::OtherProtocol`], [`Error::WrongKey`] or
    /// [`Error::BrokenChannel`]. After any of them, the connection must be closed.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Channel>, Error> {
        self.incoming.extend(bytes);
        loop {
            self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Greeting => {
                    let incoming = self.incoming.make_contiguous();
                    let Some((greeting, used)) = parse_greeting(incoming)? else {
                        self.stage = Stage::Greeting;
                        return Ok(None);
                    };
                    let ours = Greeting::ours().to_line();
                    let prologue = [&incoming[..used], ours.as_bytes()].concat();
                    self.incoming.drain(..used);
                    self.outgoing.extend(ours.as_bytes());
                    greeting.check()?;
                    Stage::Key(Box::new(handshake(&self.key, &prologue, false)))
                }
                Stage::Key(mut handshake) => {
                    let Some(message) = handshake_message(&mut self.incoming)? else {
                        self.stage = Stage::Key(handshake);
                        return Ok(None);
                    };
                    if handshake.read_message(&message, &mut [0; RECORD_BYTES_MAX]).is_err() {
                        self.outgoing.extend(NOT_THIS_KEY);
                        return Err(Error::WrongKey);
                    }
                    put_handshake(&mut handshake, &mut self.outgoing)?;
                    Stage::Proof(Channel::new(*handshake, std::mem::take(&mut self.incoming))?)
                }
                Stage::Proof(mut channel) => {
                    channel.opener.incoming.extend(self.incoming.drain(..));
                    match channel.opener.next()? {
                        Some(Record::Stream(bytes)) if bytes.is_empty() => return Ok(Some(channel)),
                        Some(_) => return Err(forged()),
                        None => self.stage = Stage::Proof(channel),
                    }
                    return Ok(None);
                }
                Stage::Over => return Err(forged()),
            };
        }
    }
}

impl Channel {
    /// Returns the channel of a finished handshake. `incoming` are the bytes that followed it.
    fn new(handshake: HandshakeState, incoming: VecDeque<u8>) -> Result<Self, Error> {
        let state = Arc::new(handshake.into_stateless_transport_mode().map_err(|_| forged())?);
        let sealer = Sealer { state: Arc::clone(&state), record: 0 };
        Ok(Self { sealer, opener: Opener { state, record: 0, incoming } })
    }
}

impl Sealer {
    /// Appends the sealed record to `out`, split into several if it is long.
    pub fn seal(&mut self, record: &Record, out: &mut Vec<u8>) {
        let (kind, bytes) = match record {
            Record::Stream(bytes) => (STREAM, bytes.as_slice()),
            Record::Words(words) => (WORDS, words.as_bytes()),
            Record::Probe => (PROBE, &[][..]),
        };
        let mut rest = bytes;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
            self.seal_piece(kind, piece, out);
            rest = behind;
            if rest.is_empty() {
                return;
            }
        }
    }

    fn seal_piece(&mut self, kind: u8, piece: &[u8], out: &mut Vec<u8>) {
        let plain = [&[kind], piece].concat();
        let length = plain.len() + TAG_BYTES;
        out.extend((length as u16).to_be_bytes());
        let at = out.len();
        out.resize(at + length, 0);
        // It fails only for a record that is too long, which PAYLOAD_BYTES_MAX excludes, or after
        // 2^64 - 1 records.
        self.state
            .write_message(self.record, &plain, &mut out[at..])
            .expect("a record of this length is sealed");
        self.record += 1;
    }
}

impl Opener {
    /// Takes received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.incoming.extend(bytes);
    }

    /// Returns the next record, once it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenChannel`] if it is not the next record that the peer sealed.
    #[expect(clippy::should_implement_trait, reason = "an iterator that can go on after None would mislead")]
    pub fn next(&mut self) -> Result<Option<Record>, Error> {
        let Some(sealed) = message(&mut self.incoming) else { return Ok(None) };
        let mut plain = vec![0; sealed.len()];
        let length = self.state.read_message(self.record, &sealed, &mut plain).map_err(|_| forged())?;
        self.record += 1;
        plain.truncate(length);
        match plain.split_first() {
            Some((&STREAM, _)) => {
                plain.remove(0);
                Ok(Some(Record::Stream(plain)))
            }
            Some((&WORDS, words)) => Ok(Some(Record::Words(String::from_utf8_lossy(words).into_owned()))),
            Some((&PROBE, [])) => Ok(Some(Record::Probe)),
            _ => Err(Error::BrokenChannel { reason: "a record has an unknown type".to_owned() }),
        }
    }
}

/// Builds a handshake. Both sides must agree on the key and the prologue.
fn handshake(key: &Key, prologue: &[u8], is_client: bool) -> HandshakeState {
    let params = NOISE.parse().expect("the name is one that snow knows");
    let secret = key.pre_shared();
    let builder = Builder::new(params).psk(0, &secret).and_then(|builder| builder.prologue(prologue));
    let built = builder.and_then(|builder| match is_client {
        true => builder.build_initiator(),
        false => builder.build_responder(),
    });
    built.expect("nothing that the pattern needs is missing")
}

/// Appends the length and the bytes of the next message of the handshake.
fn put_handshake(handshake: &mut HandshakeState, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut bytes = [0; HANDSHAKE_BYTES];
    // Only the system's random numbers can fail here.
    let length = handshake
        .write_message(&[], &mut bytes)
        .map_err(|error| Error::BrokenChannel { reason: format!("the handshake failed: {error}") })?;
    out.extend((length as u16).to_be_bytes());
    out.extend(&bytes[..length]);
    Ok(())
}

/// Returns the next message of the handshake, once it is complete. It has its fixed length, or is
/// empty.
fn handshake_message(incoming: &mut VecDeque<u8>) -> Result<Option<Vec<u8>>, Error> {
    if announced(incoming).is_some_and(|length| length != 0 && length != HANDSHAKE_BYTES) {
        return Err(forged());
    }
    Ok(message(incoming))
}

/// Returns the next message, once it is complete.
fn message(incoming: &mut VecDeque<u8>) -> Option<Vec<u8>> {
    let length = announced(incoming)?;
    if incoming.len() < LENGTH_BYTES + length {
        return None;
    }
    incoming.drain(..LENGTH_BYTES);
    Some(incoming.drain(..length).collect())
}

/// Returns the length that precedes the next message.
fn announced(incoming: &VecDeque<u8>) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*incoming.front()?, *incoming.get(1)?])))
}

fn forged() -> Error {
    Error::BrokenChannel {
        reason: "a message was not sealed with this key, or was changed on its way".to_owned(),
    }
}

const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// The longest Noise message, in bytes (noiseprotocol.org, section 3).
const RECORD_BYTES_MAX: usize = 65535;
/// The bytes that ChaChaPoly adds to a message.
const TAG_BYTES: usize = 16;
/// The most payload bytes of a record. One byte is for its type.
pub(super) const PAYLOAD_BYTES_MAX: usize = RECORD_BYTES_MAX - TAG_BYTES - 1;
/// The length of each message of the handshake: a public key, and the tag of an empty payload.
const HANDSHAKE_BYTES: usize = 32 + TAG_BYTES;
const LENGTH_BYTES: usize = 2;
/// The answer to a wrong key: an empty message in place of message 2.
const NOT_THIS_KEY: [u8; LENGTH_BYTES] = [0; LENGTH_BYTES];
const STREAM: u8 = 0;
const WORDS: u8 = 1;
const PROBE: u8 = 2;

#[cfg(test)]
pub(super) mod tests;
