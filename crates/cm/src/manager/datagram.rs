//! Datagram identifiers: a request names a service, and the answer a queue pair (SIDR, IBTA vol. 1,
//! section 12.11).

use std::net::SocketAddr;

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::{AddressHandle, PKEY, Told};
use crate::abi::command::Parameters;
use crate::host::{Host, Link};
use crate::identifier::{Exchange, Identifier, Service, Stage, UDP_QKEY};
use crate::manager::connect::{field, ip_header};
use crate::manager::state::Manager;
use crate::wire::{IpHeader, PortSpace, ResolutionReply, ResolutionRequest, ResolutionStatus, service_id};

/// The size of the private data of an answer.
const REPLY_DATA: usize = 136;

impl<H: Host> Manager<H> {
    /// rdma_connect() of a datagram identifier.
    pub(super) fn resolve(&mut self, id: u32, private_data: &[u8]) -> Result<(), Errno> {
        let found = self.id(id);
        let source = found.source.ok_or(Errno::INVAL)?;
        let destination = found.destination.ok_or(Errno::INVAL)?;
        let header = ip_header(source, destination)?.encode();
        let private_data = field(&header, private_data)?;
        let space = found.space;
        let link = self.call(space, destination)?;
        let request_id = self.begin(id, link);
        let found = self.id(id);
        found.stage = Stage::Connect;
        found.exchange = Exchange::SidrReqSent;
        let service_id = service_id(PortSpace(space as u16), destination.port());
        let request = ResolutionRequest { request_id, p_key: PKEY, service_id, private_data };
        self.send(id, request.into(), true);
        Ok(())
    }

    pub(super) fn resolution_requested(&mut self, link: Link, transaction: u64, request: &ResolutionRequest) {
        if self.known(link, request.request_id).is_some() {
            return;
        }
        let header = IpHeader::decode(&request.private_data.0);
        let found = header.as_ref().ok().and_then(|h| self.listener(request.service_id, h));
        let port = found.and_then(|(_, to)| self.host.port_of(to.ip()).ok());
        let (Some((listener, to)), Some(port), Ok(header)) = (found, port, header) else {
            let status = ResolutionStatus::SERVICE_ID_NOT_SUPPORTED;
            let reply =
                ResolutionReply { request_id: request.request_id, status, ..ResolutionReply::default() };
            return self.answer(link, transaction, reply.into());
        };
        let from = header.addresses.source();
        let remote = self.host.port_of(from).map_or_else(|_| Default::default(), |port| (port.gid, port.lid));
        let listening = self.id(listener);
        if listening.backlog == 0 {
            return;
        }
        listening.backlog -= 1;
        let mut made = Identifier::new(listening.channel, 0, listening.space, Service::Ud, 0);
        made.is_known = false;
        made.stage = Stage::Connect;
        made.exchange = Exchange::SidrReqReceived;
        made.source = Some(to);
        made.destination = Some(SocketAddr::new(from, header.source_port));
        made.port = Some(port);
        made.conversation.remote = request.request_id;
        (made.conversation.remote_gid, made.conversation.remote_lid) = remote;
        let private_data = request.private_data.0[IpHeader::BYTES..].to_vec();
        let address = AddressHandle::default();
        let told = Told::Datagram { qp_num: 0, qkey: 0, address, private_data };
        self.announce(listener, made, link, transaction, told);
    }

    /// rdma_accept() of a datagram request.
    pub(super) fn accept_datagrams(
        &mut self,
        id: u32,
        uid: u64,
        parameters: &Parameters,
    ) -> Result<(), Errno> {
        let found = self.id(id);
        if found.qkey == 0 {
            found.qkey = UDP_QKEY;
        }
        let qkey = found.qkey;
        let private_data = parameters.private_data.get();
        self.reply(id, ResolutionStatus::VALID, parameters.qp_num, qkey, private_data)?;
        self.id(id).uid = uid;
        Ok(())
    }

    /// rdma_reject() of a datagram request.
    pub(super) fn reject_datagrams(&mut self, id: u32, private_data: &[u8]) -> Result<(), Errno> {
        self.reply(id, ResolutionStatus::REJECTED_BY_SERVICE_PROVIDER, 0, 0, private_data)
    }

    fn reply(
        &mut self,
        id: u32,
        status: ResolutionStatus,
        qpn: u32,
        q_key: u32,
        private_data: &[u8],
    ) -> Result<(), Errno> {
        let found = self.id(id);
        if found.exchange != Exchange::SidrReqReceived {
            return Err(Errno::INVAL);
        }
        let private_data = field(&[], private_data)?;
        let port = found.source.map_or(0, |source| source.port());
        let reply = ResolutionReply {
            request_id: found.conversation.remote,
            status,
            qpn,
            service_id: service_id(PortSpace(found.space as u16), port),
            q_key,
            private_data,
            ..ResolutionReply::default()
        };
        self.send(id, reply.into(), false);
        self.end(id);
        Ok(())
    }

    pub(super) fn resolution_arrived(&mut self, link: Link, reply: &ResolutionReply) {
        let Some(id) = self.of(link, reply.request_id) else { return };
        if self.id(id).exchange != Exchange::SidrReqSent {
            return;
        }
        self.end(id);
        let private_data = reply.private_data.0[..REPLY_DATA].to_vec();
        if reply.status != ResolutionStatus::VALID {
            return self.failed(id, reply.status.0.into(), private_data);
        }
        let found = self.id(id);
        found.qkey = reply.q_key;
        let address = found.address_handle();
        let told = Told::Datagram { qp_num: reply.qpn, qkey: reply.q_key, address, private_data };
        self.raise(id, EventKind::Established, 0, told);
    }

    /// The peer of a request has ended.
    pub(super) fn unresolved(&mut self, id: u32) {
        self.end(id);
        let status = ResolutionStatus::REJECTED_BY_SERVICE_PROVIDER.0;
        self.failed(id, status.into(), vec![0; REPLY_DATA]);
    }

    /// No process has this service.
    pub(super) fn unsupported(&mut self, id: u32) {
        self.end(id);
        let status = ResolutionStatus::SERVICE_ID_NOT_SUPPORTED.0;
        self.failed(id, status.into(), vec![0; REPLY_DATA]);
    }

    /// No process has this service, or it refuses this side: there is no address to send to.
    fn failed(&mut self, id: u32, status: i32, private_data: Vec<u8>) {
        let address = AddressHandle::default();
        let told = Told::Datagram { qp_num: 0, qkey: 0, address, private_data };
        self.raise(id, EventKind::Unreachable, status, told);
    }
}
