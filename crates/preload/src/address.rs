//! Address handles for the sender of a received datagram (man ibv_create_ah_from_wc).

use std::array;
use std::ffi::c_int;
use std::net::Ipv4Addr;

use softdev::PROVIDER;
use verbs::abi::*;

use crate::gid;
use crate::refused::fail;

/// The 40 bytes in front of a datagram: a global route header, an IPv6 header, or 20 unused bytes
/// and an IPv4 header (InfiniBand Architecture Specification, volume 1, annex A17.4.5).
type Header = [u8; 40];

/// Next header of IPv6 for UDP.
const UDP: u8 = 17;
/// Next header of a global route header (IBTA vol. 1, section 8.3).
const INFINIBAND: u8 = 0x1b;

/// `ibv_init_ah_from_wc`: the route back to a datagram's sender; returns -1 if there is none.
pub(crate) unsafe fn init_ah_from_wc(
    context: *mut ibv_context,
    port: u8,
    wc: *mut ibv_wc,
    grh: *mut Header,
    attr: *mut ibv_ah_attr,
) -> c_int {
    // SAFETY: the caller passes a completion.
    let wc = unsafe { &*wc };
    let mut made = ibv_ah_attr {
        dlid: wc.slid,
        sl: wc.sl,
        src_path_bits: wc.dlid_path_bits,
        port_num: port,
        ..ibv_ah_attr::default()
    };
    let mut answer = 0;
    if wc.wc_flags & IBV_WC_GRH != 0 {
        // SAFETY: the completion says that there is a header.
        let header = unsafe { &*grh };
        made.is_global = 1;
        // SAFETY: the caller passes a live context.
        match unsafe { route(context, port, header) } {
            Ok(found) => made.grh = found,
            Err(error) => {
                fail::<()>(error);
                answer = -1;
            }
        }
    }
    // SAFETY: the caller passes writable attributes.
    unsafe { attr.write(made) };
    answer
}

/// `ibv_create_ah_from_wc`.
pub(crate) unsafe fn create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: *mut ibv_wc,
    grh: *mut Header,
    port: u8,
) -> *mut ibv_ah {
    let mut attr = ibv_ah_attr::default();
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe {
        if init_ah_from_wc((*pd).context, port, wc, grh, &raw mut attr) != 0 {
            return std::ptr::null_mut();
        }
        (PROVIDER.create_ah)(pd, &raw mut attr)
    }
}

/// `ibv_resolve_eth_l2_from_gid`: a software port has no neighbours on an Ethernet.
pub(crate) unsafe fn resolve_eth_l2(
    _: *mut ibv_context,
    _: *mut ibv_ah_attr,
    _eth_mac: *mut u8,
    _vid: *mut u16,
) -> c_int {
    -libc::EHOSTUNREACH
}

/// Returns the route back to the sender of a datagram with this header.
///
/// # Safety
/// `context` is a live context of the device.
unsafe fn route(context: *mut ibv_context, port: u8, header: &Header) -> Result<ibv_global_route, c_int> {
    let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    let ipv6 = |at: usize| array::from_fn(|i| header[at + i]);
    let ipv4 = |at: usize| Ipv4Addr::from(array::from_fn(|i| header[at + i])).to_ipv6_mapped().octets();
    // A group has no entry in the GID table, so there is no route for a header with a group as
    // destination: EINVAL, before any other check, as in libibverbs (set_ah_attr_by_ipv4() and
    // _ipv6() in verbs.c).
    let (source, destination, hop_limit, traffic_class, is_roce_v2) = if is_ipv4(header) {
        if header[36] >> 4 == 0xe {
            return Err(libc::EINVAL);
        }
        (ipv4(32), ipv4(36), header[28], header[21], true)
    } else if word >> 28 == 6 {
        if header[24] == 0xff {
            return Err(libc::EINVAL);
        }
        let is_roce_v2 = match header[6] {
            UDP => true,
            INFINIBAND => false,
            _ => return Err(libc::EPROTONOSUPPORT),
        };
        let class = ((word >> 20) & 0xff) as u8;
        (ipv6(8), ipv6(24), header[7], class, is_roce_v2)
    } else {
        return Err(libc::EPROTONOSUPPORT);
    };
    // SAFETY: the caller passes a live context.
    let found = unsafe { gid::find(context, port, destination, is_roce_v2) };
    Ok(ibv_global_route {
        dgid: ibv_gid { raw: source },
        flow_label: word & 0xf_ffff,
        sgid_index: found.ok_or(libc::EINVAL)?,
        hop_limit,
        traffic_class,
    })
}

/// Whether the last 20 bytes are an IPv4 header: by their version, and by their checksum unless
/// they cannot be anything else.
fn is_ipv4(header: &Header) -> bool {
    let ipv4 = &header[20..];
    let is_ipv6 = header[0] >> 4 == 6;
    if ipv4[0] != 0x45 {
        return !is_ipv6 && ipv4[0] >> 4 == 4;
    }
    !is_ipv6 || checksum(ipv4) == 0xffff
}

/// The ones' complement sum of a header; all ones if the header contains its own checksum (RFC
/// 1071).
fn checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A common example for RFC 1071: its checksum is b861.
    const IPV4: [u8; 20] =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 0x01, 0xc0, 0xa8, 0, 0xc7];

    /// None of these cases uses the context.
    #[test]
    fn a_header_that_leads_to_a_group_gives_no_address() {
        // SAFETY: the context is not used.
        let route = |header: &Header| unsafe { route(std::ptr::null_mut(), 1, header) }.err();
        let mut header = [0; 40];
        header[0] = 0x60;
        header[6] = 0x3a; // A next header without a route back.
        assert_eq!(route(&header), Some(libc::EPROTONOSUPPORT));
        header[24] = 0xff;
        assert_eq!(route(&header), Some(libc::EINVAL), "the group comes first");
        let mut header = [0; 40];
        header[20..].copy_from_slice(&IPV4);
        header[36] = 239;
        header[30..32].fill(0);
        let sum = !checksum(&header[20..]);
        header[30..32].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(route(&header), Some(libc::EINVAL));
        assert_eq!(route(&[0; 40]), Some(libc::EPROTONOSUPPORT), "of neither version");
    }

    /// The route that the library makes from a received header leads back to the sender, over IPv4
    /// and IPv6 addresses.
    #[test]
    fn an_answer_finds_its_way_by_the_received_header() {
        let device = verbs::devices(&PROVIDER).unwrap().remove(0);
        let context = device.open().unwrap();
        let entries = context.gids(1).unwrap();
        let of_ipv4 = entries.iter().find(|entry| entry.is_ipv4());
        if of_ipv4.is_none() {
            eprintln!("SKIPPED: no network interface is up with an address of IPv4");
        }
        for entry in of_ipv4.into_iter().chain(&entries[..1]) {
            let [mut there, mut back] = [(); 2].map(|()| End::new(&context, entry.index));
            let route = End::route(entry.index, entry.gid);
            let header = there.send(&mut back, &route, 0x5a);
            // SAFETY: the list is not empty, and its device is opened and closed here.
            let (raw, attr) = unsafe {
                let list = (PROVIDER.get_device_list)(std::ptr::null_mut());
                let raw = (PROVIDER.open_device)(*list);
                (PROVIDER.free_device_list)(list);
                let mut wc: ibv_wc = std::mem::zeroed();
                wc.wc_flags = IBV_WC_GRH;
                let mut header = header;
                let mut attr = ibv_ah_attr::default();
                assert_eq!(init_ah_from_wc(raw, 1, &raw mut wc, &raw mut header, &raw mut attr), 0);
                (raw, attr)
            };
            // SAFETY: no object of the context is left.
            unsafe { (PROVIDER.close_device)(raw) };
            let found = (attr.is_global, attr.grh.sgid_index, attr.grh.dgid.raw, attr.grh.traffic_class);
            assert_eq!(found, (1, entry.index, entry.gid.0, 0x5a), "{header:x?}");
            let route = End::route(attr.grh.sgid_index, verbs::Gid(attr.grh.dgid.raw));
            assert_eq!(back.send(&mut there, &route, 0)[32..], header[32..], "between the same addresses");
        }
    }

    /// A datagram queue pair.
    struct End {
        pd: verbs::ProtectionDomain,
        cq: verbs::CompletionQueue,
        pair: verbs::QueuePair<verbs::ReadyToSend>,
        region: verbs::MemoryRegion,
    }

    impl End {
        const QKEY: u32 = 7;

        fn route(gid_index: u8, gid: verbs::Gid) -> verbs::Route {
            let global = Some(verbs::GlobalRoute { gid_index, gid, traffic_class: 0 });
            verbs::Route { port: 1, lid: 0, service_level: 0, global }
        }

        fn new(context: &verbs::Context, gid_index: u8) -> Self {
            let pd = context.protection_domain().unwrap();
            let cq = context.completion_queue(4, None).unwrap();
            let options = verbs::QueuePairOptions {
                service: verbs::Service::Ud,
                max_send_wr: 1,
                max_recv_wr: 1,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            };
            let to = verbs::Connection {
                qp_num: 0,
                peer_psn: 0,
                own_psn: 0,
                mtu: verbs::Mtu::from_bytes(1024).unwrap(),
                route: Self::route(gid_index, context.gid(1, gid_index.into()).unwrap()),
                timeout: 0,
                retry_count: 0,
                rnr_retry: 0,
                min_rnr_timer: 0,
                responder_reads: 0,
                initiator_reads: 0,
            };
            let with = verbs::Initialisation { port: 1, pkey_index: 0, qkey: Self::QKEY, access: 0 };
            let pair = pd.queue_pair(&options, &cq, &cq).unwrap().init(&with).unwrap();
            let pair = pair.ready_to_receive(&to).unwrap().ready_to_send(&to).unwrap();
            let region = pd.memory_region(4096, IBV_ACCESS_LOCAL_WRITE).unwrap();
            Self { pd, cq, pair, region }
        }

        /// Sends a datagram and returns the header in front of its payload.
        fn send(&mut self, to: &mut Self, route: &verbs::Route, traffic_class: u8) -> Header {
            let global = route.global.map(|global| verbs::GlobalRoute { traffic_class, ..global });
            let handle = self.pd.address_handle(&verbs::Route { global, ..*route }).unwrap();
            let room = vec![to.region.sge(0, 1024).unwrap()];
            to.pair.post_receive(&mut verbs::ReceiveRequest::new(1, room)).unwrap();
            let payload = vec![self.region.sge(2048, 8).unwrap()];
            let request = verbs::SendRequest::send(2, payload).signaled(true);
            self.pair.post_send(&mut request.to(&handle, to.pair.number(), Self::QKEY)).unwrap();
            for end in [&*self, &*to] {
                let mut room = [verbs::Completion::default(); 1];
                let [done] = end.cq.poll(&mut room).unwrap() else { panic!("it is done at once") };
                assert!(done.status().is_success());
            }
            let mut header = [0; 40];
            to.region.read(0, &mut header).unwrap();
            header
        }
    }

    #[test]
    fn headers_of_ipv4_are_told_from_those_of_ipv6() {
        let mut header = [0; 40];
        header[20..].copy_from_slice(&IPV4);
        assert!(is_ipv4(&header));
        // An IPv6 address that happens to look like the start of an IPv4 header.
        header[0] = 0x60;
        assert!(is_ipv4(&header));
        header[31] ^= 1;
        assert!(!is_ipv4(&header));
        header[0] = 0;
        header[20] = 0x46;
        assert!(is_ipv4(&header));
        header[20] = 0x60;
        assert!(!is_ipv4(&header));
    }
}
