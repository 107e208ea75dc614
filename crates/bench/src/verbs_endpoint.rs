//! The adapter that makes an endpoint of a queue pair: the only place where verbs meet patterns.

use std::os::fd::AsFd;
use std::time::Duration;

use measure::clock::{Clock, Ticks};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};
use verbs::abi::IBV_ACCESS_LOCAL_WRITE;
use verbs::{
    Completion, CompletionChannel, CompletionQueue, Connection, Context, Gid, GlobalRoute, Init,
    Initialisation, MemoryRegion, Mtu, ProtectionDomain, QueuePair, QueuePairOptions, ReadyToSend,
    ReceiveRequest, Route, SendRequest,
};

use crate::Error;
use crate::calibrate::only_cpu;
use crate::endpoint::{Endpoint, Mark, Posted};
use crate::point::{Pattern, PointSpec, Poll, Service};

/// Port that is used; ports count from 1.
pub(crate) const PORT: u8 = 1;
/// Index of the GID that is used.
pub(crate) const GID_INDEX: u8 = 0;
/// Q_Key of datagrams: perftest's.
const QKEY: u32 = 0x1111_1111;
/// Local ACK timeout, 4.096 us x 2^14 = 67 ms, and retries: perftest's.
const TIMEOUT: u8 = 14;
const RETRY_COUNT: u8 = 7;
/// For ever, as perftest: a slow receiver makes a stream slow, not broken.
const RNR_RETRY: u8 = 7;
/// Code of 10 us, the shortest: a requester that finds the receiver not ready loses as little as possible.
const MIN_RNR_TIMER: u8 = 1;
/// First packet sequence number: any will do.
const PSN: u32 = 0x5c09e;
/// In front of every received datagram (IBTA vol. 1, section 11.4.1.2).
const GRH_BYTES: usize = 40;
/// Bytes of all receive buffers together, unless one message needs more: receives share buffers, as perftest's do (its
/// cycle buffer is a page). A larger pool would make the first lap through it part of the measurement.
const RECEIVE_BYTES: usize = 4096;
/// Buffers do not share cache lines.
const LINE: usize = 64;
/// What messages consist of: anything but zeroes, which a kernel may keep as no memory at all.
const FILL: u8 = 0x5a;
/// Completions taken at once.
const BATCH: usize = 16;
/// Fruitless looks between glances at the clock, the deadline and the scheduler.
const SPINS: u32 = 1024;
/// Immediate data of the last message; every other has none.
const LAST: u32 = u32::from_be_bytes(*b"last");

/// Where a peer's queue pair is: what the ranks tell each other.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    qp_num: u32,
    psn: u32,
    gid: [u8; 16],
    lid: u16,
    /// The CPU of the rank, where it may use only one.
    cpu: Option<usize>,
}

/// The completion queues, and the channel on which they announce completions in event mode.
struct Queues {
    send: CompletionQueue,
    receive: CompletionQueue,
    channel: Option<CompletionChannel>,
}

/// The memory of an endpoint.
struct Buffers {
    send: MemoryRegion,
    /// Held for the receives that name it.
    _receive: MemoryRegion,
    /// One request per buffer, posted in turn.
    receives: Vec<ReceiveRequest>,
}

/// A queue pair with its buffers and posted receives, not connected yet.
pub(crate) struct Unconnected {
    qp: QueuePair<Init>,
    queues: Queues,
    buffers: Buffers,
    domain: ProtectionDomain,
    address: Address,
    mtu: Mtu,
    spec: PointSpec,
    next_receive: usize,
}

impl Unconnected {
    /// Makes queues, buffers and queue pair for a point, and posts the receives.
    pub(crate) fn new(context: &Context, spec: &PointSpec) -> Result<Self, Error> {
        let domain = context.protection_domain()?;
        let channel = (spec.poll == Poll::Event).then(|| context.completion_channel()).transpose()?;
        let queues = Queues {
            send: context.completion_queue(spec.tx_depth + 1, channel.as_ref())?,
            receive: context.completion_queue(spec.rx_depth + 1, channel.as_ref())?,
            channel,
        };
        let options = QueuePairOptions {
            service: service(spec.service),
            max_send_wr: spec.tx_depth,
            max_recv_wr: spec.rx_depth,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: if spec.inline { u32::try_from(spec.size_bytes).unwrap_or(u32::MAX) } else { 0 },
        };
        let qp = domain.queue_pair(&options, &queues.send, &queues.receive)?;
        let mut buffers = Buffers::new(&domain, spec)?;
        let port = context.port(PORT)?;
        let gid = context.gid(PORT, u32::from(GID_INDEX))?.0;
        let address = Address { qp_num: qp.number(), psn: PSN, gid, lid: port.lid, cpu: only_cpu() };
        let mut qp = qp.init(&Initialisation { port: PORT, pkey_index: 0, qkey: QKEY, access: 0 })?;
        let mut next_receive = 0;
        for _ in 0..spec.rx_depth {
            qp.post_receive(&mut buffers.receives[next_receive])?;
            next_receive = (next_receive + 1) % buffers.receives.len();
        }
        let mtu = Mtu::from_bytes(spec.mtu_bytes).unwrap_or(port.active_mtu);
        Ok(Self { qp, queues, buffers, domain, address, mtu, spec: spec.clone(), next_receive })
    }

    /// What the peer has to know.
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Connects to the peer.
    pub(crate) fn connect(self, peer: &Address, clock: Clock) -> Result<VerbsEndpoint, Error> {
        let route = Route {
            port: PORT,
            lid: peer.lid,
            service_level: 0,
            global: Some(GlobalRoute { gid_index: GID_INDEX, gid: Gid(peer.gid), traffic_class: 0 }),
        };
        let connection = Connection {
            qp_num: peer.qp_num,
            peer_psn: peer.psn,
            own_psn: self.address.psn,
            mtu: self.mtu,
            route,
            timeout: TIMEOUT,
            retry_count: RETRY_COUNT,
            rnr_retry: RNR_RETRY,
            min_rnr_timer: MIN_RNR_TIMER,
            responder_reads: 1,
            initiator_reads: 1,
        };
        let qp = self.qp.ready_to_receive(&connection)?.ready_to_send(&connection)?;
        let spec = &self.spec;
        let element = self.buffers.send.sge(0, self.buffers.send.len())?;
        let request = || {
            if spec.inline {
                SendRequest::send(0, Vec::new()).inline(&vec![FILL; self.buffers.send.len()])
            } else {
                SendRequest::send(0, vec![element])
            }
        };
        let mut more = request();
        let mut last = request().immediate(LAST).signaled(true);
        if spec.service == Service::Ud {
            let handle = self.domain.address_handle(&route)?;
            more = more.to(&handle, peer.qp_num, QKEY);
            last = last.to(&handle, peer.qp_num, QKEY);
        }
        let now = clock.now();
        let own = &self.address;
        Ok(VerbsEndpoint {
            shares_cpu: own.cpu.is_some() && (own.cpu, own.gid) == (peer.cpu, peer.gid),
            qp,
            queues: self.queues,
            buffers: self.buffers,
            more,
            last,
            clock,
            began: now,
            deadline: u64::MAX,
            tx_depth: u64::from(spec.tx_depth),
            signal_interval: u64::from(spec.signal_interval),
            unsignaled: 0,
            posted: 0,
            completed: 0,
            // Of a ping-pong only one message can have arrived: a look for a second would only delay the answer.
            batch: if spec.pattern == Pattern::PingPong { 1 } else { BATCH },
            arrived: [Completion::default(); BATCH],
            arrived_next: 0,
            arrived_len: 0,
            owed: 0,
            rx_depth: spec.rx_depth,
            next_receive: self.next_receive,
            spins: 0,
            moved: false,
            quiet_since: now,
            armed: false,
            waits_for_sends: false,
        })
    }
}

impl Buffers {
    fn new(domain: &ProtectionDomain, spec: &PointSpec) -> Result<Self, Error> {
        let size = usize::try_from(spec.size_bytes).unwrap_or(usize::MAX);
        let header = if spec.service == Service::Ud { GRH_BYTES } else { 0 };
        let stride = (size + header).next_multiple_of(LINE);
        let slots = (RECEIVE_BYTES / stride).clamp(1, spec.rx_depth as usize);
        let mut receive = domain.memory_region(stride * slots, IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut receive)?;
        let receives = (0..slots)
            .map(|slot| {
                Ok(ReceiveRequest::new(slot as u64, vec![receive.sge(slot * stride, size + header)?]))
            })
            .collect::<Result<_, Error>>()?;
        let mut send = domain.memory_region(size, IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut send)?;
        Ok(Self { send, _receive: receive, receives })
    }
}

/// Writes to every page, so that none is missing when the clock runs.
fn touch(region: &mut MemoryRegion) -> Result<(), Error> {
    const PAGE: usize = 4096;
    for offset in (0..region.len()).step_by(PAGE) {
        region.write(offset, &[FILL])?;
    }
    Ok(())
}

/// The most bytes that the device takes inline: no verb tells, so queue pairs are tried, as other tools do.
pub(crate) fn inline_bytes_max(context: &Context) -> Result<u64, Error> {
    /// Beyond it no adapter goes.
    const CEILING: u32 = 4096;
    let domain = context.protection_domain()?;
    let queue = context.completion_queue(1, None)?;
    let takes = |max_inline_data| {
        let service = verbs::Service::Rc;
        let (max_send_wr, max_recv_wr, max_send_sge, max_recv_sge) = (1, 1, 1, 1);
        let options = QueuePairOptions {
            service,
            max_send_wr,
            max_recv_wr,
            max_send_sge,
            max_recv_sge,
            max_inline_data,
        };
        domain.queue_pair(&options, &queue, &queue).is_ok()
    };
    let (mut yes, mut no) = (0, CEILING + 1);
    while no - yes > 1 {
        let middle = yes.midpoint(no);
        if takes(middle) { yes = middle } else { no = middle }
    }
    Ok(u64::from(yes))
}

fn service(service: Service) -> verbs::Service {
    match service {
        Service::Rc => verbs::Service::Rc,
        Service::Uc => verbs::Service::Uc,
        Service::Ud => verbs::Service::Ud,
    }
}

/// A connected queue pair (or one that knows its peer) as an endpoint.
pub(crate) struct VerbsEndpoint {
    // Dropped first: what follows is used by it.
    qp: QueuePair<ReadyToSend>,
    queues: Queues,
    buffers: Buffers,
    more: SendRequest,
    last: SendRequest,
    clock: Clock,
    began: Ticks,
    deadline: u64,
    tx_depth: u64,
    signal_interval: u64,
    /// Sends since the last that asked for a completion.
    unsignaled: u64,
    posted: u64,
    completed: u64,
    /// Completions of receives that are asked for at once.
    batch: usize,
    arrived: [Completion; BATCH],
    arrived_next: usize,
    arrived_len: usize,
    /// Receives that were taken and not posted again.
    owed: u32,
    rx_depth: u32,
    next_receive: usize,
    spins: u32,
    /// Whether the peer runs on the same CPU: then one has to stop for the other to go on.
    shares_cpu: bool,
    /// Whether something happened since `quiet_since` was last looked at.
    moved: bool,
    quiet_since: Ticks,
    armed: bool,
    waits_for_sends: bool,
}

impl Endpoint for VerbsEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    #[inline]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        if self.posted - self.completed >= self.tx_depth {
            self.reap()?;
            if self.posted - self.completed >= self.tx_depth {
                self.waits_for_sends = true;
                return Ok(Posted::Busy);
            }
        }
        let request = match mark {
            Mark::Last => &mut self.last,
            Mark::More => {
                self.unsignaled += 1;
                let is_due = self.unsignaled >= self.signal_interval;
                self.unsignaled = if is_due { 0 } else { self.unsignaled };
                self.more.set_signaled(is_due);
                &mut self.more
            }
        };
        request.set_id(self.posted);
        self.qp.post_send(request)?;
        self.posted += 1;
        self.moved = true;
        Ok(Posted::Queued)
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Mark>, Error> {
        if self.arrived_next == self.arrived_len {
            self.arrived_len = self.queues.receive.poll(&mut self.arrived[..self.batch])?.len();
            self.arrived_next = 0;
            if self.arrived_len == 0 {
                return Ok(None);
            }
        }
        let completion = &self.arrived[self.arrived_next];
        self.arrived_next += 1;
        if !completion.status().is_success() {
            return Err(failed(completion, "received"));
        }
        let mark = if completion.immediate() == Some(LAST) { Mark::Last } else { Mark::More };
        self.owed += 1;
        self.moved = true;
        self.spins = 0;
        if self.owed == self.rx_depth {
            // None is left: an answer that provokes the next message must not find the queue empty.
            self.replenish()?;
        }
        Ok(Some(mark))
    }

    #[inline]
    fn replenish(&mut self) -> Result<(), Error> {
        while self.owed > 0 {
            self.qp.post_receive(&mut self.buffers.receives[self.next_receive])?;
            self.next_receive += 1;
            if self.next_receive == self.buffers.receives.len() {
                self.next_receive = 0;
            }
            self.owed -= 1;
        }
        if (self.posted - self.completed) * 2 >= self.tx_depth {
            self.reap()?;
        }
        Ok(())
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        self.reap()?;
        let outstanding = self.posted - self.completed;
        self.waits_for_sends = outstanding > 0;
        Ok(u32::try_from(outstanding).unwrap_or(u32::MAX))
    }

    #[inline]
    fn idle(&mut self) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < SPINS && self.queues.channel.is_none() {
            std::hint::spin_loop();
            return Ok(());
        }
        self.spins = 0;
        self.rest()
    }

    fn quiet(&self) -> Duration {
        if self.moved {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.clock.ns(self.clock.now().since(self.quiet_since)))
    }
}

impl VerbsEndpoint {
    /// Starts the point's time limit.
    pub(crate) fn start(&mut self, timeout_s: f64) {
        self.began = self.clock.now();
        self.quiet_since = self.began;
        self.deadline = self.began.0.saturating_add(self.clock.ticks(Duration::from_secs_f64(timeout_s)));
    }

    /// Takes completions of sends.
    #[inline]
    fn reap(&mut self) -> Result<(), Error> {
        let mut sent = [Completion::default(); BATCH];
        let sent = self.queues.send.poll(&mut sent)?;
        if let Some(bad) = sent.iter().find(|completion| !completion.status().is_success()) {
            return Err(failed(bad, "sent"));
        }
        if let Some(latest) = sent.last() {
            self.completed = latest.id() + 1;
            self.moved = true;
        }
        Ok(())
    }

    /// The long way to be idle: looks at the deadline, then sleeps in event mode, else lets a peer on the same CPU go on. (To
    /// give the CPU to anybody else would be to measure them.)
    #[cold]
    fn rest(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if self.moved {
            self.moved = false;
            self.quiet_since = now;
        }
        if now.0 >= self.deadline {
            let waited_s = self.clock.ns_f64(now.since(self.began)) / 1e9;
            let what = if self.waits_for_sends { "was acknowledged" } else { "arrived" };
            return Err(Error::Deadline { what, waited_s });
        }
        if self.queues.channel.is_some() {
            return self.sleep();
        }
        if self.shares_cpu {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Arms the queues; called again without anything having happened, sleeps until one announces a completion.
    fn sleep(&mut self) -> Result<(), Error> {
        /// Long enough to cost nothing, short enough to keep the deadline.
        const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let Some(channel) = &self.queues.channel else { return Ok(()) };
        if !self.armed {
            self.queues.receive.arm()?;
            if self.waits_for_sends {
                self.queues.send.arm()?;
            }
            self.armed = true;
            return Ok(());
        }
        let descriptor = channel.as_fd();
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        let ready = rustix::event::poll(&mut polled, Some(&PATIENCE)).unwrap_or(0);
        if ready != 0 {
            channel.event()?;
        }
        self.armed = false;
        self.reap()
    }
}

#[cold]
fn failed(completion: &Completion, what: &'static str) -> Error {
    Error::Completion { message: completion.id(), what, status: completion.status() }
}
