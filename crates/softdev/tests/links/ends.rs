//! Two sides of a connection, or of datagrams, in this process. The near one sends over a modelled
//! link.

use std::time::{Duration, Instant};

use softdev::PROVIDER;
use verbs::abi::*;
use verbs::{
    AddressHandle, Completion, CompletionQueue, Connection, Context, GlobalRoute, Initialisation,
    MemoryRegion, Mtu, ProtectionDomain, QueuePair, QueuePairOptions, ReadyToSend, ReceiveRequest, Route,
    SendRequest, Service, devices,
};

/// The limit of each wait.
const PATIENCE: Duration = Duration::from_secs(10);
const QKEY: u32 = 1;
/// The places in the far side's region for received messages and for RDMA Writes.
const RECEIVED: usize = 0;
pub(crate) const WRITTEN: usize = 8192;
const REGION_BYTES: usize = 16384;
/// A datagram's payload is behind its global route header.
const GRH_BYTES: usize = 40;

/// The objects of one side.
pub(crate) struct End {
    pub(crate) cq: CompletionQueue,
    pub(crate) region: MemoryRegion,
    pd: ProtectionDomain,
    context: Context,
}

impl End {
    fn open() -> Self {
        let context = devices(&PROVIDER).unwrap()[0].open().unwrap();
        let cq = context.completion_queue(64, None).unwrap();
        let pd = context.protection_domain().unwrap();
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        let region = pd.memory_region(REGION_BYTES, access).unwrap();
        Self { cq, region, pd, context }
    }

    /// Returns a completion, if there is one.
    pub(crate) fn poll(&self) -> Option<Completion> {
        let mut room = [Completion::default()];
        self.cq.poll(&mut room).unwrap().first().copied()
    }

    /// Returns the word at an offset of the region.
    pub(crate) fn word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.region.read(offset, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }
}

/// Near and far side; the near one posts.
pub(crate) struct Ends {
    service: Service,
    pub(crate) qp: QueuePair<ReadyToSend>,
    far_qp: QueuePair<ReadyToSend>,
    handle: AddressHandle,
    pub(crate) near: End,
    pub(crate) far: End,
}

impl Ends {
    /// Makes sides that are connected for a service; the near one has this link, the far one has
    /// none.
    pub(crate) fn connected(service: Service, link: &str) -> Self {
        Self::with(service, 1, link)
    }

    /// The same over RC, with at most `reads` Reads under way.
    pub(crate) fn asking(reads: u8, link: &str) -> Self {
        Self::with(Service::Rc, reads, link)
    }

    fn with(service: Service, reads: u8, link: &str) -> Self {
        let mut near = End::open();
        let far = End::open();
        let pattern: Vec<u8> = (0..REGION_BYTES).map(|i| (i % 251) as u8 + 1).collect();
        near.region.write(0, &pattern).unwrap();
        near.context.set_link(Some(&link.parse().unwrap())).unwrap();
        let options = QueuePairOptions {
            service,
            max_send_wr: 8,
            max_recv_wr: 8,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 64,
        };
        let access = if service == Service::Rc {
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
        } else {
            IBV_ACCESS_REMOTE_WRITE
        };
        let with = Initialisation { port: 1, pkey_index: 0, qkey: QKEY, access };
        let [a, b] = [&near, &far]
            .map(|end| end.pd.queue_pair(&options, &end.cq, &end.cq).unwrap().init(&with).unwrap());
        let route = route(&near.context);
        let to_far = connection(b.number(), route, reads);
        let to_near = connection(a.number(), route, reads);
        let a = a.ready_to_receive(&to_far).unwrap();
        let b = b.ready_to_receive(&to_near).unwrap();
        let qp = a.ready_to_send(&to_far).unwrap();
        let far_qp = b.ready_to_send(&to_near).unwrap();
        let handle = near.pd.address_handle(&route).unwrap();
        Self { service, qp, far_qp, handle, near, far }
    }

    /// Posts a receive at the far side.
    pub(crate) fn receive(&mut self) {
        let element = self.far.region.sge(RECEIVED, WRITTEN - RECEIVED).unwrap();
        self.far_qp.post_receive(&mut ReceiveRequest::new(0, vec![element])).unwrap();
    }

    /// Returns where the far side finds the payload of a send.
    pub(crate) fn received_at(&self) -> usize {
        if self.service == Service::Ud { RECEIVED + GRH_BYTES } else { RECEIVED }
    }

    /// Posts a request for a completion. Returns it, so that the caller can change an inline
    /// payload that was copied.
    pub(crate) fn post(&mut self, request: SendRequest) -> SendRequest {
        let mut request = request.signaled(true);
        if self.service == Service::Ud {
            request = request.to(&self.handle, self.far_qp.number(), QKEY);
        }
        self.qp.post_send(&mut request).unwrap();
        request
    }

    /// Polls at the near side until it has `count` completions, each with the time since `start`.
    pub(crate) fn completions(&self, start: Instant, count: usize) -> Vec<(Completion, Duration)> {
        let mut found = Vec::new();
        while found.len() < count {
            found.extend(self.near.poll().map(|wc| (wc, start.elapsed())));
            assert!(start.elapsed() < PATIENCE, "{found:?}");
        }
        found
    }
}

fn route(context: &Context) -> Route {
    let gid = context.gid(1, 0).unwrap();
    let global = Some(GlobalRoute { gid_index: 0, gid, traffic_class: 0 });
    Route { port: 1, lid: 0, service_level: 0, global }
}

fn connection(qp_num: u32, route: Route, reads: u8) -> Connection {
    Connection {
        qp_num,
        peer_psn: 0,
        own_psn: 0,
        mtu: Mtu::from_bytes(4096).unwrap(),
        route,
        timeout: 0,
        retry_count: 7,
        rnr_retry: 7,
        min_rnr_timer: 1,
        responder_reads: reads,
        initiator_reads: reads,
    }
}
