//! Arriving messages of connections, and broken links.

use std::net::SocketAddr;

use crate::abi::answer::{ConnectionTold, Told};
use crate::abi::{EventKind, Space};
use crate::host::{Host, Link};
use crate::identifier::{Exchange, Identifier, Service, Stage};
use crate::manager::connect::REJ_DATA;
use crate::manager::state::{Manager, Queued};
use crate::wire::{
    AnsweredMessage, DisconnectReply, DisconnectRequest, IpHeader, Mad, Message, Reject, RejectReason, Reply,
    Request, port_of,
};

/// The size of the private data of a REP.
const REP_DATA: usize = 196;

impl<H: Host> Manager<H> {
    /// Handles a message of a link. Malformed messages are dropped.
    pub fn arrived(&mut self, link: Link, bytes: &[u8]) {
        let Ok(Mad { transaction, message }) = Mad::decode(bytes) else { return };
        match message {
            Message::Request(request) => self.request_arrived(link, transaction, &request),
            Message::Reply(reply) => self.reply_arrived(link, &reply),
            Message::ReadyToUse(ready) => {
                if let Some(id) = self.of(link, ready.remote_communication_id)
                    && self.id(id).exchange == Exchange::RepSent
                {
                    self.established(id);
                }
            }
            Message::Reject(reject) => self.reject_arrived(link, &reject),
            Message::DisconnectRequest(request) => self.end_requested(link, transaction, &request),
            Message::DisconnectReply(reply) => {
                if let Some(id) = self.of(link, reply.remote_communication_id)
                    && matches!(self.id(id).exchange, Exchange::DreqSent | Exchange::DreqReceived)
                {
                    self.disconnected(id, 0);
                    self.wait_out(id);
                }
            }
            Message::ResolutionRequest(request) => self.resolution_requested(link, transaction, &request),
            Message::ResolutionReply(reply) => self.resolution_arrived(link, &reply),
            // The peer needs more time. This manager never sends an MRA, and its timeout is long
            // anyway.
            Message::MessageReceipt(_) => {}
        }
    }

    /// Handles the end of a link: the peer's process has ended. On hardware, its kernel would end
    /// its connections.
    pub fn lost(&mut self, link: Link) {
        let of_it: Vec<u32> = self
            .identifiers
            .iter()
            .filter(|(_, id)| id.conversation.link == Some(link))
            .map(|(key, _)| *key)
            .collect();
        for id in of_it {
            // An identifier may have been removed together with an earlier one.
            let Some(found) = self.identifiers.get_mut(&id) else { continue };
            match found.exchange {
                Exchange::ReqSent | Exchange::ReqReceived | Exchange::RepSent | Exchange::RepReceived => {
                    let reason = RejectReason::CONSUMER_REJECT;
                    self.rejected(id, &Reject { reason, ..Reject::default() });
                }
                Exchange::Established => {
                    found.exchange = Exchange::DreqReceived;
                    self.disconnected(id, 0);
                }
                Exchange::DreqSent => {
                    self.disconnected(id, 0);
                    self.wait_out(id);
                }
                Exchange::SidrReqSent => self.unresolved(id),
                Exchange::SidrReqReceived => self.end(id),
                Exchange::Idle | Exchange::DreqReceived | Exchange::TimeWait => {}
            }
        }
    }

    /// Returns the identifier that a peer's message names.
    pub(super) fn of(&self, link: Link, local: u32) -> Option<u32> {
        let id = *self.conversations.get(&local)?;
        (self.identifiers.get(&id)?.conversation.link == Some(link)).then_some(id)
    }

    /// Returns a listener of this process for an address; one at this address comes before one at
    /// all addresses.
    pub(super) fn listener(&self, service_id: u64, header: &IpHeader) -> Option<(u32, SocketAddr)> {
        let (space, port) = port_of(service_id)?;
        let space = Space::of(space.0)?;
        let to = SocketAddr::new(header.addresses.destination(), port);
        let fits = |id: &Identifier<H::Hold>| {
            let at = id.source.filter(|at| at.port() == port)?;
            let is_of_both = at.is_ipv6() && id.options.is_of_one_family != Some(true);
            let is_all = at.ip().is_unspecified() && (at.is_ipv4() == to.is_ipv4() || is_of_both);
            (at.ip() == to.ip() || is_all).then_some(at.ip().is_unspecified())
        };
        let listeners =
            self.identifiers.iter().filter(|(_, id)| id.stage == Stage::Listen && id.space == space);
        let of_it = listeners.filter_map(|(key, id)| fits(id).map(|is_all| (is_all, *key)));
        of_it.min().map(|(_, key)| (key, to))
    }

    /// Returns the identifier of a request that has arrived before.
    pub(super) fn known(&self, link: Link, remote: u32) -> Option<u32> {
        let is_it = |id: &&Identifier<H::Hold>| {
            id.conversation.link == Some(link)
                && id.conversation.remote == remote
                && id.exchange != Exchange::Idle
        };
        self.identifiers.iter().find(|(_, id)| is_it(id)).map(|(key, _)| *key)
    }

    fn request_arrived(&mut self, link: Link, transaction: u64, request: &Request) {
        if let Some(id) = self.known(link, request.local_communication_id) {
            // The request was sent again, so send its answer again.
            let waiting = self.id(id).conversation.waiting.clone();
            if let Some(reply) = waiting {
                self.host.send(link, &reply);
            }
            return;
        }
        let refuse = |manager: &mut Self, reason: RejectReason| {
            let remote_communication_id = request.local_communication_id;
            let message = AnsweredMessage::Request;
            let reject = Reject { remote_communication_id, message, reason, ..Reject::default() };
            manager.answer(link, transaction, reject.into());
        };
        let header = IpHeader::decode(&request.private_data.0);
        let Some((listener, to)) = header.as_ref().ok().and_then(|h| self.listener(request.service_id, h))
        else {
            return refuse(self, RejectReason::INVALID_SERVICE_ID);
        };
        if self.is_in_use(request.local_qpn, request.local_ca_guid) {
            return refuse(self, RejectReason::STALE_CONNECTION);
        }
        let (Ok(port), Ok(header)) = (self.host.port_of(to.ip()), header) else {
            return refuse(self, RejectReason::INVALID_SERVICE_ID);
        };
        let listening = self.id(listener);
        if listening.backlog == 0 {
            // Dropped: the peer sends it again.
            return;
        }
        listening.backlog -= 1;
        let mut made =
            Identifier::new(listening.channel, 0, listening.space, request.transport_service.into(), 0);
        made.is_known = false;
        made.stage = Stage::Connect;
        made.exchange = Exchange::ReqReceived;
        made.source = Some(to);
        made.destination = Some(SocketAddr::new(header.addresses.source(), header.source_port));
        made.port = Some(port);
        made.psn = self.host.random() & 0xff_ffff;
        made.hear(request);
        let private_data = request.private_data.0[IpHeader::BYTES..].to_vec();
        let told = ConnectionTold {
            qp_num: request.local_qpn,
            private_data,
            srq: request.srq,
            responder_resources: request.initiator_depth,
            initiator_depth: request.responder_resources,
            flow_control: request.end_to_end_flow_control,
            retry_count: request.retry_count,
            rnr_retry_count: request.rnr_retry_count,
        };
        self.announce(listener, made, link, transaction, Told::Connection(told));
    }

    /// Queues the event of a request, with the identifier that it has created.
    pub(super) fn announce(
        &mut self,
        listener: u32,
        made: Identifier<H::Hold>,
        link: Link,
        transaction: u64,
        told: Told,
    ) {
        let id = self.new_number();
        self.identifiers.insert(id, made);
        self.begin(id, Some(link));
        self.id(id).conversation.transaction = transaction;
        let uid = self.id(listener).uid;
        let event = crate::abi::answer::Event { uid, id, kind: EventKind::ConnectRequest, status: 0, told };
        self.queue(Queued { event, id: listener, request: Some(id), group: None });
    }

    /// Whether a peer's queue pair already has a connection here.
    fn is_in_use(&self, qpn: u32, ca_guid: u64) -> bool {
        self.identifiers.values().any(|id| {
            let talk = &id.conversation;
            let has_peer = !matches!(id.exchange, Exchange::Idle | Exchange::ReqSent | Exchange::TimeWait);
            has_peer && id.service != Service::Ud && talk.remote_qp == qpn && talk.remote_guid == ca_guid
        })
    }

    fn reply_arrived(&mut self, link: Link, reply: &Reply) {
        let Some(id) = self.of(link, reply.remote_communication_id) else { return };
        let found = self.id(id);
        match found.exchange {
            Exchange::ReqSent => {}
            // It was sent again because the RTU was lost.
            Exchange::Established => {
                let ready = found.ready();
                return self.send(id, ready.into(), false);
            }
            _ => return,
        }
        if self.is_in_use(reply.local_qpn, reply.local_ca_guid) {
            // The kernel continues to wait for another answer.
            let reject = Reject {
                local_communication_id: reply.remote_communication_id,
                remote_communication_id: reply.local_communication_id,
                message: AnsweredMessage::Reply,
                reason: RejectReason::STALE_CONNECTION,
                ..Reject::default()
            };
            let transaction = self.id(id).conversation.transaction;
            return self.answer(link, transaction, reject.into());
        }
        let found = self.id(id);
        found.exchange = Exchange::RepReceived;
        let talk = &mut found.conversation;
        talk.waiting = None;
        talk.deadline = None;
        talk.remote = reply.local_communication_id;
        talk.remote_qp = reply.local_qpn;
        talk.remote_guid = reply.local_ca_guid;
        talk.sq_psn = reply.starting_psn;
        talk.initiator_depth = reply.responder_resources;
        talk.responder_resources = reply.initiator_depth;
        talk.rnr_retry_count = reply.rnr_retry_count;
        let told = ConnectionTold {
            qp_num: reply.local_qpn,
            private_data: reply.private_data.0[..REP_DATA].to_vec(),
            srq: reply.srq,
            responder_resources: reply.initiator_depth,
            initiator_depth: reply.responder_resources,
            flow_control: reply.end_to_end_flow_control,
            retry_count: 0,
            rnr_retry_count: reply.rnr_retry_count,
        };
        self.raise(id, EventKind::ConnectResponse, 0, Told::Connection(told));
    }

    fn reject_arrived(&mut self, link: Link, reject: &Reject) {
        // A client that gives up its REQ may not know this side's communication ID: look up its
        // own.
        let gives_up = reject.reason == RejectReason::TIMEOUT
            && reject.remote_communication_id == 0
            && reject.local_communication_id != 0;
        let id = if gives_up {
            self.known(link, reject.local_communication_id)
        } else {
            self.of(link, reject.remote_communication_id)
        };
        if let Some(id) = id {
            self.rejected(id, reject);
        }
    }

    /// The peer has rejected (`cm_rej_handler()` of cm.c).
    pub(super) fn rejected(&mut self, id: u32, reject: &Reject) {
        match self.id(id).exchange {
            Exchange::ReqSent | Exchange::ReqReceived | Exchange::RepSent | Exchange::RepReceived => {
                self.end(id);
            }
            // The peer has rejected after its REP, before it received the RTU.
            Exchange::Established | Exchange::DreqSent => self.wait_out(id),
            _ => return,
        }
        let private_data = reject.private_data.0[..REJ_DATA].to_vec();
        let told = ConnectionTold { private_data, ..ConnectionTold::default() };
        self.raise(id, EventKind::Rejected, reject.reason.0.into(), Told::Connection(told));
    }

    fn end_requested(&mut self, link: Link, transaction: u64, request: &DisconnectRequest) {
        let id = self.of(link, request.remote_communication_id);
        let exchange = id.map(|id| self.id(id).exchange);
        match (id, exchange) {
            (Some(id), Some(Exchange::RepSent | Exchange::Established | Exchange::DreqSent)) => {
                let found = self.id(id);
                found.exchange = Exchange::DreqReceived;
                found.conversation.transaction = transaction;
                found.conversation.waiting = None;
                found.conversation.deadline = None;
                self.disconnected(id, 0);
            }
            (Some(_), Some(Exchange::DreqReceived)) => {}
            // No such connection: answer a repeated DREQ with a DREP, as Linux does.
            _ => {
                let reply = DisconnectReply {
                    local_communication_id: request.remote_communication_id,
                    remote_communication_id: request.local_communication_id,
                    ..DisconnectReply::default()
                };
                self.answer(link, transaction, reply.into());
            }
        }
    }

    /// Ends a connection for the program.
    pub(super) fn disconnected(&mut self, id: u32, status: i32) {
        if self.leave_connection(id) {
            self.raise(id, EventKind::Disconnected, status, Told::default());
        }
    }
}

impl<Hold> Identifier<Hold> {
    /// Stores the values of a request's sender.
    fn hear(&mut self, request: &Request) {
        let path = &request.primary_path;
        let talk = &mut self.conversation;
        talk.remote = request.local_communication_id;
        talk.remote_qp = request.local_qpn;
        talk.remote_guid = request.local_ca_guid;
        talk.remote_gid = path.local_gid;
        talk.remote_lid = path.local_lid;
        talk.sq_psn = request.starting_psn;
        talk.initiator_depth = request.responder_resources;
        talk.responder_resources = request.initiator_depth;
        talk.retry_count = request.retry_count;
        talk.rnr_retry_count = request.rnr_retry_count;
        talk.mtu = request.path_mtu;
        self.options.service_type = path.traffic_class;
        self.options.ack_timeout = Some(path.local_ack_timeout);
    }
}
