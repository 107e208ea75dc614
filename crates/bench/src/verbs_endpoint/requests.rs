//! The requests that are posted for a rank, which are created once.

use verbs::{AddressHandle, Gid, GlobalRoute, ProtectionDomain, Remote, Route, SendRequest};

use super::address::{PeerParams, Target};
use super::buffers::Buffers;
use super::constants::{LAST, MORE, QKEY};
use super::lane::Requests;
use super::port::LocalPort;
use crate::Error;
use crate::endpoint::FILL;
use crate::point::Operation;
use crate::topology::{Form, PartSpec};

/// The queue pair number of datagrams to a group (IBTA, volume 1, section 3.5.10).
const MULTICAST_QP: u32 = 0xff_ffff;

/// The destination of requests, and their contents.
pub(super) struct Destination<'a> {
    pub(super) spec: &'a PartSpec,
    pub(super) buffers: &'a Buffers,
    /// The index of the rank among this rank's partners.
    pub(super) partner: usize,
    pub(super) params: &'a PeerParams,
    /// The address handle and the queue pair of datagrams.
    pub(super) to: Option<(AddressHandle, u32)>,
}

impl Destination<'_> {
    pub(super) fn requests(&self) -> Result<Requests, Error> {
        let to = |request: SendRequest| match &self.to {
            Some((handle, qp_num)) => request.to(handle, *qp_num, QKEY),
            None => request,
        };
        let has_immediate = self.spec.message.operation.has_immediate();
        let more = |inline| {
            let request = self.request(inline)?;
            Ok(to(if has_immediate { request.immediate(MORE) } else { request }))
        };
        // A message of a pipeline may be inline or not, so there is a request for each.
        let both = [false, true].into_iter().take(1 + usize::from(self.spec.message.inline));
        let list = match self.spec.usage.form {
            Form::Written => both.map(more).collect::<Result<Vec<_>, Error>>()?,
            _ => (0..self.spec.message.post_list)
                .map(|_| more(self.spec.message.inline))
                .collect::<Result<_, _>>()?,
        };
        // A one-sided operation cannot tell the other rank that it is the last.
        let last = self.request(self.spec.message.inline)?;
        let last = if self.spec.message.operation.arrives() { last.immediate(LAST) } else { last };
        Ok(Requests { list, last: to(last).signaled(true), greeting: to(self.greeting()?).signaled(true) })
    }

    /// Returns the measured operation, without immediate data and destination.
    fn request(&self, inline: bool) -> Result<SendRequest, Error> {
        let spec = self.spec;
        let elements = self.buffers.elements(spec, self.partner)?;
        let target = || remote(self.params.target, "memory for one-sided operations");
        let request = match spec.message.operation {
            Operation::Multicast | Operation::Send | Operation::SendImm => SendRequest::send(0, elements),
            Operation::Write | Operation::WriteImm => SendRequest::write(0, elements, target()?),
            Operation::Read => SendRequest::read(0, elements, target()?),
            // The first finds zero and swaps, the others find one and do not: each is a
            // compare-and-swap.
            Operation::CompareSwap => SendRequest::compare_swap(0, elements[0], target()?, 0, 1),
            Operation::FetchAdd => SendRequest::fetch_add(0, elements[0], target()?, 1),
        };
        Ok(if inline { request.inline(&vec![FILL; spec.message.size_bytes as usize]) } else { request })
    }

    /// Returns the request of messages that are not measured: a signal, if the rank polls its
    /// memory for signals.
    fn greeting(&self) -> Result<SendRequest, Error> {
        match self.buffers.signal_element()? {
            Some(element) => {
                let to = remote(self.params.signal, "memory for signals")?;
                Ok(SendRequest::write(0, vec![element], to))
            }
            None => Ok(SendRequest::send(0, Vec::new()).immediate(LAST)),
        }
    }
}

/// Returns the route to a multicast group from a port.
pub(super) fn to_group(
    domain: &ProtectionDomain,
    port: &LocalPort,
    group: Gid,
) -> Result<(AddressHandle, u32), Error> {
    let options = &port.options;
    let global = GlobalRoute {
        gid_index: port.gid.map_or(0, |gid| gid.index),
        gid: group,
        traffic_class: options.traffic_class,
    };
    let route =
        Route { port: port.number, lid: 0, service_level: options.service_level, global: Some(global) };
    Ok((domain.address_handle(&route)?, MULTICAST_QP))
}

fn remote(target: Option<Target>, what: &str) -> Result<Remote, Error> {
    let target = target.ok_or_else(|| Error::PeerAddress { reason: format!("it has no {what}") })?;
    Ok(Remote { addr: target.addr, rkey: target.rkey })
}
