//! Connecting and disconnecting, on commands of a program.

use std::net::SocketAddr;

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::Told;
use crate::abi::command::Parameters;
use crate::host::Host;
use crate::identifier::{Exchange, Identifier, Service, Stage};
use crate::manager::state::Manager;
use crate::times::{RESPONSE_TIMEOUT, TRIES};
use crate::wire::{
    Addresses, AnsweredMessage, Bytes, DisconnectReply, DisconnectRequest, IpHeader, Path, PortSpace,
    ReadyToUse, Reject, RejectReason, Reply, Request, service_id,
};

/// The highest value of a field of three bits.
const MOST_RETRIES: u8 = 7;

/// The default reason of a program's rejection, and the reason for a vendor's option
/// (`IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED`).
const BY_VENDOR_OPTION: u8 = 35;

/// Returns the header in front of a program's private data.
pub(super) fn ip_header(source: SocketAddr, destination: SocketAddr) -> Result<IpHeader, Errno> {
    let addresses = Addresses::of(source.ip(), destination.ip()).ok_or(Errno::INVAL)?;
    Ok(IpHeader { source_port: source.port(), addresses })
}

/// Returns a field for private data: `front`, followed by the program's data.
pub(super) fn field<const SIZE: usize>(front: &[u8], data: &[u8]) -> Result<Bytes<SIZE>, Errno> {
    Bytes::of(&[front, data].concat()).ok_or(Errno::INVAL)
}

impl<H: Host> Manager<H> {
    /// rdma_connect().
    pub(super) fn connect(&mut self, id: u32, parameters: &Parameters) -> Result<(), Errno> {
        self.expect(id, Stage::RouteResolved)?;
        if self.id(id).service == Service::Ud {
            return self.resolve(id, parameters.private_data.get());
        }
        let found = self.id(id);
        let source = found.source.ok_or(Errno::INVAL)?;
        let destination = found.destination.ok_or(Errno::INVAL)?;
        let space = found.space;
        let header = ip_header(source, destination)?.encode();
        let private_data = field(&header, parameters.private_data.get())?;
        let link = self.call(space, destination)?;
        let local = self.begin(id, link);
        let found = self.id(id);
        found.stage = Stage::Connect;
        found.exchange = Exchange::ReqSent;
        found.remember(parameters);
        let request = found.request(local, destination, private_data)?;
        self.send(id, request.into(), true);
        Ok(())
    }

    /// rdma_accept() of a request. A request that cannot be accepted is rejected.
    pub(super) fn accept(&mut self, id: u32, uid: u64, parameters: &Parameters) -> Result<(), Errno> {
        self.expect(id, Stage::Connect)?;
        let accepted = match self.id(id).service {
            Service::Ud => self.accept_datagrams(id, uid, parameters),
            Service::Rc | Service::Uc => self.accept_connection(id, uid, parameters),
        };
        accepted.inspect_err(|_| self.reject_as_well(id))
    }

    fn reject_as_well(&mut self, id: u32) {
        // If there is no peer to reject, that is not a second error.
        let _ = self.reject(id, 0, &[]);
    }

    fn accept_connection(&mut self, id: u32, uid: u64, parameters: &Parameters) -> Result<(), Errno> {
        let found = self.id(id);
        let may = matches!(found.exchange, Exchange::ReqReceived);
        let port = found.port.filter(|_| may).ok_or(Errno::INVAL)?;
        let private_data = field(&[], parameters.private_data.get())?;
        found.remember(parameters);
        found.exchange = Exchange::RepSent;
        found.uid = uid;
        let talk = &found.conversation;
        let reply = Reply {
            local_communication_id: talk.local,
            remote_communication_id: talk.remote,
            local_qpn: parameters.qp_num,
            starting_psn: found.psn,
            responder_resources: parameters.responder_resources,
            initiator_depth: parameters.initiator_depth,
            end_to_end_flow_control: parameters.flow_control,
            rnr_retry_count: parameters.rnr_retry_count.min(MOST_RETRIES),
            srq: parameters.srq,
            local_ca_guid: port.guid,
            private_data,
            ..Reply::default()
        };
        self.send(id, reply.into(), true);
        Ok(())
    }

    /// rdma_accept() of the response: the program's queue pair is ready.
    pub(super) fn confirm(&mut self, id: u32) -> Result<(), Errno> {
        self.expect(id, Stage::Connect)?;
        let found = self.id(id);
        if found.exchange != Exchange::RepReceived {
            self.reject_as_well(id);
            return Err(Errno::INVAL);
        }
        found.exchange = Exchange::Established;
        let ready = found.ready();
        self.send(id, ready.into(), false);
        Ok(())
    }

    /// rdma_reject().
    pub(super) fn reject(&mut self, id: u32, reason: u8, private_data: &[u8]) -> Result<(), Errno> {
        let reason = match reason {
            0 => RejectReason::CONSUMER_REJECT,
            reason if reason == BY_VENDOR_OPTION => RejectReason(reason.into()),
            reason if RejectReason(reason.into()) == RejectReason::CONSUMER_REJECT => {
                RejectReason::CONSUMER_REJECT
            }
            _ => return Err(Errno::INVAL),
        };
        if self.id(id).service == Service::Ud {
            return self.reject_datagrams(id, private_data);
        }
        let private_data = field(&[], private_data)?;
        self.refuse(id, reason, private_data)
    }

    /// Sends a REJ if there is a peer to reject.
    pub(super) fn refuse(
        &mut self,
        id: u32,
        reason: RejectReason,
        private_data: Bytes<REJ_DATA>,
    ) -> Result<(), Errno> {
        let found = self.id(id);
        let message = match found.exchange {
            Exchange::ReqSent => AnsweredMessage::Other,
            Exchange::ReqReceived => AnsweredMessage::Request,
            Exchange::RepSent | Exchange::RepReceived => AnsweredMessage::Reply,
            _ => return Err(Errno::INVAL),
        };
        let talk = &found.conversation;
        let reject = Reject {
            local_communication_id: talk.local,
            remote_communication_id: talk.remote,
            message,
            reason,
            private_data,
            ..Reject::default()
        };
        self.send(id, reject.into(), false);
        self.end(id);
        Ok(())
    }

    /// rdma_disconnect(). Succeeds if nothing is left to do.
    pub(super) fn disconnect(&mut self, id: u32) -> Result<(), Errno> {
        let found = self.id(id);
        if !matches!(found.stage, Stage::Connect | Stage::Disconnect) {
            return Err(Errno::INVAL);
        }
        match found.exchange {
            Exchange::Established => self.request_end(id),
            Exchange::DreqReceived => self.reply_end(id),
            _ => {}
        }
        Ok(())
    }

    /// Sends a DREQ.
    pub(super) fn request_end(&mut self, id: u32) {
        let found = self.id(id);
        found.exchange = Exchange::DreqSent;
        let talk = &found.conversation;
        let request = DisconnectRequest {
            local_communication_id: talk.local,
            remote_communication_id: talk.remote,
            remote_qpn: talk.remote_qp,
            ..DisconnectRequest::default()
        };
        self.send(id, request.into(), true);
    }

    /// Sends a DREP.
    pub(super) fn reply_end(&mut self, id: u32) {
        let talk = &self.id(id).conversation;
        let reply = DisconnectReply {
            local_communication_id: talk.local,
            remote_communication_id: talk.remote,
            ..DisconnectReply::default()
        };
        self.send(id, reply.into(), false);
        self.wait_out(id);
    }

    /// rdma_notify(): the queue pair has received something before the RTU arrived.
    pub(super) fn notify(&mut self, id: u32, event: u32) -> Result<(), Errno> {
        /// `IB_EVENT_COMM_EST`.
        const ESTABLISHED: u32 = 4;
        /// `IB_EVENT_PATH_MIG`: there is no alternate path to migrate to, which the kernel does not
        /// check either.
        const MIGRATED: u32 = 6;
        let found = self.id(id);
        if found.conversation.local == 0 {
            return Err(Errno::INVAL);
        }
        match (event, found.exchange) {
            (ESTABLISHED, Exchange::RepSent) => {
                self.established(id);
                Ok(())
            }
            (ESTABLISHED, Exchange::Established) => Err(Errno::ISCONN),
            (MIGRATED, Exchange::Established) => Ok(()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Notes that the peer is ready.
    pub(super) fn established(&mut self, id: u32) {
        let found = self.id(id);
        found.exchange = Exchange::Established;
        found.conversation.waiting = None;
        found.conversation.deadline = None;
        self.raise(id, EventKind::Established, 0, Told::default());
    }
}

/// The size of the private data of a REJ.
pub(super) const REJ_DATA: usize = 148;

impl<Hold> Identifier<Hold> {
    /// Stores the program's parameters of the connection.
    fn remember(&mut self, parameters: &Parameters) {
        let talk = &mut self.conversation;
        talk.local_qp = parameters.qp_num;
        talk.responder_resources = parameters.responder_resources;
        talk.initiator_depth = parameters.initiator_depth;
        // The side that accepts has received the retry count from its peer.
        if self.exchange == Exchange::ReqSent {
            talk.retry_count = parameters.retry_count.min(MOST_RETRIES);
            talk.rnr_retry_count = parameters.rnr_retry_count.min(MOST_RETRIES);
            talk.mtu = self.port.map_or(0, |port| port.mtu);
        }
        self.is_srq = parameters.srq;
        self.has_flow_control = parameters.flow_control;
    }

    fn request(
        &self,
        local: u32,
        destination: SocketAddr,
        private_data: Bytes<92>,
    ) -> Result<Request, Errno> {
        let port = self.port.ok_or(Errno::INVAL)?;
        let talk = &self.conversation;
        Ok(Request {
            local_communication_id: local,
            service_id: service_id(PortSpace(self.space as u16), destination.port()),
            local_ca_guid: port.guid,
            local_qpn: talk.local_qp,
            responder_resources: talk.responder_resources,
            initiator_depth: talk.initiator_depth,
            remote_cm_response_timeout: RESPONSE_TIMEOUT,
            transport_service: self.service.into(),
            end_to_end_flow_control: self.has_flow_control,
            starting_psn: self.psn,
            local_cm_response_timeout: RESPONSE_TIMEOUT,
            retry_count: talk.retry_count,
            p_key: crate::abi::answer::PKEY,
            path_mtu: talk.mtu,
            rnr_retry_count: talk.rnr_retry_count,
            max_cm_retries: TRIES,
            srq: self.is_srq,
            primary_path: Path {
                local_lid: port.lid,
                remote_lid: talk.remote_lid,
                local_gid: port.gid,
                remote_gid: talk.remote_gid,
                traffic_class: self.options.service_type,
                hop_limit: crate::identifier::HOP_LIMIT,
                subnet_local: true,
                local_ack_timeout: self.ack_timeout(),
                ..Path::default()
            },
            private_data,
            ..Request::default()
        })
    }

    /// Returns an RTU.
    pub(super) fn ready(&self) -> ReadyToUse {
        ReadyToUse {
            local_communication_id: self.conversation.local,
            remote_communication_id: self.conversation.remote,
            ..ReadyToUse::default()
        }
    }
}
