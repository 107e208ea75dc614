//! What plans cannot ask of sockets.

use crate::Error;
use crate::axis;
use crate::pattern::check::{Check, floods};
use crate::point::{Carrier, Family, LinkLayer};

/// The payload of the longest datagram: of 65,535 bytes, the headers of IPv4 and UDP take 28, and
/// with IPv6 only the header of UDP counts (RFC 768, RFC 791, RFC 8200).
const DATAGRAM_BYTES_MAX_IPV4: u64 = 65_507;
const DATAGRAM_BYTES_MAX_IPV6: u64 = 65_527;
/// The most datagrams that pass the stack as one (`UDP_MAX_SEGMENTS` of older kernels).
const SEGMENTS_MAX: u64 = 64;
/// The longest list of datagrams (`UIO_MAXIOV`, sendmmsg(2)).
const LIST_MAX: u64 = 1024;

/// Checks an experiment over sockets.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    ipoib(check)?;
    datagram_sizes(check)?;
    lists(check)?;
    let is_flood = check.0.pattern.row().floods;
    if check.largest(axis::STREAMS.row) > 1 && !is_flood {
        let why = "messages that are timed one by one use one connection: use the pattern";
        return check.refuse("streams", "several streams", &format!("{why} {}", floods()));
    }
    if check.has(axis::ZERO_COPY, true) && (!is_flood || check.goes_both_ways()) {
        let why = format!("it needs a rank that only sends a stream: use the pattern {} one way", floods());
        return check.refuse("zero_copy", "zero copy without a one-way stream", &why);
    }
    Ok(())
}

/// Refuses a mode of IPoIB over Ethernet.
fn ipoib(check: &Check<'_>) -> Result<(), Error> {
    let modes = check.0.axes.get(axis::IPOIB_MODE);
    if modes.iter().any(Option::is_some) && check.has(axis::LINK_LAYER, Some(LinkLayer::Ethernet)) {
        let why = "IPoIB runs over InfiniBand: use a separate experiment";
        return check.refuse("ipoib_mode", "a mode of IPoIB over Ethernet", why);
    }
    Ok(())
}

/// Refuses messages that do not fit into a datagram.
fn datagram_sizes(check: &Check<'_>) -> Result<(), Error> {
    let is_ipv4 = check.has(axis::FAMILY, Family::Ipv4);
    let max = if is_ipv4 { DATAGRAM_BYTES_MAX_IPV4 } else { DATAGRAM_BYTES_MAX_IPV6 };
    let mut sizes = check.0.axes.numbers(axis::SIZE_BYTES.row);
    let too_long = sizes.find(|size| check.0.carrier == Carrier::Udp && *size > max);
    let Some(size) = too_long else { return Ok(()) };
    let why = format!("the longest has {max} B: end the sizes there, or use a separate experiment");
    check.refuse("size_bytes", &format!("a UDP datagram of {size} B"), &why)
}

/// Refuses lists of datagrams that are too long for one call.
fn lists(check: &Check<'_>) -> Result<(), Error> {
    let list = check.largest(axis::POST_LIST.row);
    if list > LIST_MAX {
        let what = format!("more than {LIST_MAX} datagrams at once");
        return check.refuse("post_list", &what, "sendmmsg takes no more");
    }
    if !check.has(axis::OFFLOAD, true) {
        return Ok(());
    }
    let size = check.largest(axis::SIZE_BYTES.row);
    if list > SEGMENTS_MAX || list * size > DATAGRAM_BYTES_MAX_IPV4 {
        let why = format!("offload takes at most {SEGMENTS_MAX} with {DATAGRAM_BYTES_MAX_IPV4} B together");
        return check.refuse("offload", &format!("{list} datagrams of {size} B as one"), &why);
    }
    if list == 1 {
        let why = "offload needs a list: give post_list, such as 16";
        return check.refuse("offload", "offload of datagrams that are sent one by one", why);
    }
    Ok(())
}
