//! The same messages by RDMA Write of softdev, through verbs as in any program. The receiver waits
//! for the last word of a message in its memory. When it has finished with the message, it tells
//! the sender by an RDMA Write of eight bytes.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

use anyhow::{Context as _, Result, ensure};
use verbs::abi::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE};
use verbs::{
    Completion, CompletionQueue, Connection, Context, Gid, GlobalRoute, Initialisation, MemoryRegion,
    QueuePair, QueuePairOptions, ReadyToSend, Remote, Route, SendRequest, Service,
};

use crate::link::{CARD_WORDS, Link, MESSAGE_BYTES, Side, WINDOW};
use crate::stream::{self, Reader, Receiver, Sender};

/// The only port, and its only GID.
const PORT: u8 = 1;
const GID_INDEX: u8 = 0;
/// Requests that may be outstanding: each is waited for.
const DEPTH: u32 = 4;
const WORD: usize = size_of::<u64>();
/// Local ACK timeout, 4.096 us x 2^14 = 67 ms, and retries, as in perftest.
const TIMEOUT: u8 = 14;
const RETRY_COUNT: u8 = 7;

/// Runs the benchmark: the first process measures and receives, the second sends.
pub(crate) fn run(link: &Link, reader: Reader) -> Result<String> {
    let device = verbs::devices(&softdev::PROVIDER)?.into_iter().next().context("softdev has no device")?;
    let context = device.open()?;
    if link.side == Side::First {
        let here = WINDOW as usize * MESSAGE_BYTES;
        let there = WORD;
        let mut taker = Taker { link, end: End::new(link, &context, [here, there])? };
        return stream::receive(link, &mut taker, reader);
    }
    let here = WORD;
    let there = MESSAGE_BYTES;
    let mut writer = Writer { link, end: End::new(link, &context, [here, there])? };
    stream::send(link, &mut writer)?;
    Ok(String::new())
}

/// A connected queue pair and its memory.
struct End {
    pair: QueuePair<ReadyToSend>,
    queue: CompletionQueue,
    /// The memory that the peer writes to.
    target: MemoryRegion,
    /// The memory that this process writes from.
    source: MemoryRegion,
    peer: Remote,
}

impl End {
    /// Connects a queue pair, with memory for the peer's writes and for this process's, of these
    /// sizes in bytes.
    fn new(link: &Link, context: &Context, bytes: [usize; 2]) -> Result<Self> {
        let domain = context.protection_domain()?;
        let queue = context.completion_queue(2 * DEPTH, None)?;
        let target = domain.memory_region(bytes[0], IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)?;
        let source = domain.memory_region(bytes[1], IBV_ACCESS_LOCAL_WRITE)?;
        let options = QueuePairOptions {
            service: Service::Rc,
            max_send_wr: DEPTH,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let pkey_index = 0;
        let qkey = 0;
        let access = IBV_ACCESS_REMOTE_WRITE;
        let pair = domain.queue_pair(&options, &queue, &queue)?;
        let pair = pair.init(&Initialisation { port: PORT, pkey_index, qkey, access })?;
        let gid = u128::from_be_bytes(context.gid(PORT, GID_INDEX.into())?.0);
        let own = target.remote(0)?;
        let mut card = [0; CARD_WORDS];
        card[..5].copy_from_slice(&[
            pair.number().into(),
            (gid >> 64) as u64,
            gid as u64,
            own.addr,
            own.rkey.into(),
        ]);
        let [qp_num, high, low, addr, rkey, ..] = link.exchange(&card)?;
        let gid = Gid((u128::from(high) << 64 | u128::from(low)).to_be_bytes());
        let global = Some(GlobalRoute { gid_index: GID_INDEX, gid, traffic_class: 0 });
        let connection = Connection {
            qp_num: u32::try_from(qp_num)?,
            peer_psn: 0,
            own_psn: 0,
            mtu: context.port(PORT)?.active_mtu,
            route: Route { port: PORT, lid: 0, service_level: 0, global },
            timeout: TIMEOUT,
            retry_count: RETRY_COUNT,
            rnr_retry: RETRY_COUNT,
            min_rnr_timer: 1,
            responder_reads: 1,
            initiator_reads: 1,
        };
        let pair = pair.ready_to_receive(&connection)?.ready_to_send(&connection)?;
        Ok(Self { pair, queue, target, source, peer: Remote { addr, rkey: u32::try_from(rkey)? } })
    }

    /// Writes the whole memory `source` to the peer at `offset`, and waits for the completion.
    fn write(&mut self, link: &Link, offset: usize) -> Result<()> {
        let to = Remote { addr: self.peer.addr + offset as u64, ..self.peer };
        let elements = vec![self.source.sge(0, self.source.len())?];
        let mut request = SendRequest::write(0, elements, to).signaled(true);
        self.pair.post_send(&mut request)?;
        let mut completions = [Completion::default()];
        let mut found = Ok(0);
        link.wait(|| {
            found = self.queue.poll(&mut completions).map(<[_]>::len);
            !matches!(found, Ok(0))
        })?;
        found?;
        let status = completions[0].status();
        ensure!(status.is_success(), "an RDMA Write failed: {status}");
        Ok(())
    }

    /// Reads a word of the memory that the peer writes to.
    fn word(&self, offset: usize) -> u64 {
        let at = address(&self.target).wrapping_add(offset);
        // SAFETY: the word lies in the region, which is page-aligned and alive; only devices and
        // copies write to it.
        unsafe { AtomicU64::from_ptr(at.cast()) }.load(Acquire)
    }
}

/// The address of a region in this process.
fn address(region: &MemoryRegion) -> *mut u8 {
    let start = region.remote(0).map_or(0, |start| start.addr);
    std::ptr::with_exposed_provenance_mut(start as usize)
}

struct Writer<'a> {
    link: &'a Link,
    end: End,
}

impl Sender for Writer<'_> {
    fn source(&mut self) -> *mut u8 {
        address(&self.end.source)
    }

    fn put(&mut self, n: u64) -> Result<()> {
        self.end.write(self.link, (n % WINDOW) as usize * MESSAGE_BYTES)
    }

    fn taken(&self) -> u64 {
        self.end.word(0)
    }
}

struct Taker<'a> {
    link: &'a Link,
    end: End,
}

impl Receiver for Taker<'_> {
    fn has(&self, n: u64) -> bool {
        let place = (n % WINDOW) as usize * MESSAGE_BYTES;
        self.end.word(place + MESSAGE_BYTES - WORD) == n
    }

    fn place(&self, n: u64) -> *const u8 {
        address(&self.end.target).wrapping_add((n % WINDOW) as usize * MESSAGE_BYTES)
    }

    fn take(&mut self, n: u64) -> Result<()> {
        self.end.source.write(0, &n.to_ne_bytes())?;
        self.end.write(self.link, 0)
    }
}
