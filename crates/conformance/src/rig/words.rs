//! Attributes, routes and addresses as words.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use verbs::abi::*;

/// Returns a queue pair's attributes as words, in the order of `attributes`.
pub fn attribute_words(a: &ibv_qp_attr) -> Vec<u64> {
    let mut words: Vec<u64> = [
        a.qp_state,
        a.cur_qp_state,
        a.path_mtu,
        a.path_mig_state,
        a.qkey,
        a.rq_psn,
        a.sq_psn,
        a.dest_qp_num,
        a.qp_access_flags,
    ]
    .map(u64::from)
    .to_vec();
    words.push(u64::from(a.pkey_index));
    words.extend(
        [
            a.en_sqd_async_notify,
            a.max_rd_atomic,
            a.max_dest_rd_atomic,
            a.min_rnr_timer,
            a.port_num,
            a.timeout,
            a.retry_cnt,
            a.rnr_retry,
        ]
        .map(u64::from),
    );
    words.extend(route_words(&a.ah_attr));
    words
}

/// Returns a queue pair's attributes from their words. `lid` is the LID of the local port: see
/// `route`.
pub fn attributes(w: &[u64], lid: u16) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state: w[0] as u32,
        cur_qp_state: w[1] as u32,
        path_mtu: w[2] as u32,
        path_mig_state: w[3] as u32,
        qkey: w[4] as u32,
        rq_psn: w[5] as u32,
        sq_psn: w[6] as u32,
        dest_qp_num: w[7] as u32,
        qp_access_flags: w[8] as u32,
        pkey_index: w[9] as u16,
        en_sqd_async_notify: w[10] as u8,
        max_rd_atomic: w[11] as u8,
        max_dest_rd_atomic: w[12] as u8,
        min_rnr_timer: w[13] as u8,
        port_num: w[14] as u8,
        timeout: w[15] as u8,
        retry_cnt: w[16] as u8,
        rnr_retry: w[17] as u8,
        ah_attr: route(&w[18..], lid),
        ..ibv_qp_attr::default()
    }
}

/// Returns a GID's bytes, from its words.
pub fn gid_of(words: [u64; 2]) -> [u8; 16] {
    (u128::from(words[0]) << 64 | u128::from(words[1])).to_be_bytes()
}

/// Returns a GID's words, from its bytes.
pub fn gid_words(gid: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(gid);
    [(whole >> 64) as u64, whole as u64]
}

/// Returns a route as words, in the order of `route`.
pub fn route_words(a: &ibv_ah_attr) -> [u64; 9] {
    let [high, low] = gid_words(a.grh.dgid.raw);
    let small = [a.grh.sgid_index, a.grh.hop_limit, a.grh.traffic_class, a.sl, a.is_global, a.port_num];
    let [index, hops, class, level, global, port] = small.map(u64::from);
    [high, low, index, hops, class, level, global, port, u64::from(a.dlid)]
}

/// Returns a route from its words. A route without LID leads to `lid`, the LID of the local port:
/// most cases run on one port. On Ethernet that LID is 0.
pub fn route(w: &[u64], lid: u16) -> ibv_ah_attr {
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: gid_of([w[0], w[1]]) },
            flow_label: 0,
            sgid_index: w[2] as u8,
            hop_limit: w[3] as u8,
            traffic_class: w[4] as u8,
        },
        dlid: if w[8] == 0 { lid } else { w[8] as u16 },
        sl: w[5] as u8,
        is_global: w[6] as u8,
        port_num: w[7] as u8,
        ..ibv_ah_attr::default()
    }
}

/// Returns an address as words, in the order of `address`.
pub fn address_words(address: Option<SocketAddr>) -> [u64; 5] {
    let Some(address) = address else { return [0; 5] };
    let (family, octets) = match address.ip() {
        IpAddr::V4(ip) => (4, ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => (6, ip.octets()),
    };
    let scope = if let SocketAddr::V6(v6) = address { v6.scope_id() } else { 0 };
    let [high, low] = gid_words(octets);
    [family, u64::from(address.port()), high, low, u64::from(scope)]
}

/// Returns an address from its words, or `None` if there are none or they name no family.
pub fn address(w: &[u64]) -> Option<SocketAddr> {
    let &[family, port, high, low, scope] = w else { return None };
    let ip = Ipv6Addr::from(gid_of([high, low]));
    match (family, ip.to_ipv4_mapped()) {
        (4, Some(ip)) => Some(SocketAddr::new(ip.into(), port as u16)),
        (6, _) => Some(SocketAddrV6::new(ip, port as u16, 0, scope as u32).into()),
        _ => None,
    }
}
