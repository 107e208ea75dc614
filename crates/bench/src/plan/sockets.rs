//! What a plan must not ask of sockets.

use crate::Error;
use crate::axis;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoints;
use crate::pattern::check::Check;
use crate::point::{Carrier, Family, LinkLayer, Poll};

/// Payload of the longest datagram: of 65,535 bytes the headers of IPv4 and UDP take 28, those of
/// IPv6 only that of UDP (RFC 768, RFC 791, RFC 8200).
const DATAGRAM_BYTES_MAX_IPV4: u64 = 65_507;
const DATAGRAM_BYTES_MAX_IPV6: u64 = 65_527;
/// Datagrams that go through the stack as one (`UDP_MAX_SEGMENTS` of older kernels).
const SEGMENTS_MAX: u64 = 64;
/// Longest list of datagrams (`UIO_MAXIOV`, sendmmsg(2)).
const LIST_MAX: u64 = 1024;

impl Check<'_> {
    /// Checks an experiment over sockets or shared memory.
    pub(super) fn sockets(&self) -> Result<(), Error> {
        let carrier = self.0.carrier;
        if carrier.is_verbs() {
            return Ok(());
        }
        let can = endpoints::row(carrier).capabilities;
        let needs = self.0.pattern.row().needs;
        if needs.contain(Capabilities::VERBS_CALLS) && !can.contain(Capabilities::VERBS_CALLS) {
            let why = "its steps are calls of verbs: use the endpoint \"verbs\"";
            return self.refuse("endpoint", &format!("the overheads of {}", carrier.name()), why);
        }
        let mut polls = self.0.axes.get(axis::POLL).into_iter();
        if let Some(poll) = polls.find(|poll| !matches!(poll, Poll::Busy | Poll::Event)) {
            let why = "what comes is looked for or slept for: use busy or event";
            return self.refuse("poll", &format!("poll {} over {}", poll.word(), carrier.name()), why);
        }
        if !carrier.is_socket() {
            return Ok(());
        }
        self.ipoib()?;
        self.datagram_sizes()?;
        self.lists()?;
        let streams = self.largest(axis::STREAMS.row);
        let floods = self.0.pattern.row().floods;
        if streams > 1 && !floods {
            let why = "messages that are timed one by one take one connection: use the pattern \"stream\" or \"pairs\"";
            return self.refuse("streams", "several streams", why);
        }
        if self.has(axis::ZERO_COPY, true) && (!floods || self.goes_both_ways()) {
            let why = "it is for who only sends, and much: use the pattern \"stream\" one way";
            return self.refuse("zero_copy", "sending without a copy and receiving", why);
        }
        Ok(())
    }

    /// IPoIB is InfiniBand.
    fn ipoib(&self) -> Result<(), Error> {
        let modes = self.0.axes.get(axis::IPOIB_MODE);
        if modes.iter().any(Option::is_some) && self.has(axis::LINK_LAYER, Some(LinkLayer::Ethernet)) {
            let why = "IPoIB is InfiniBand: give it an experiment of its own";
            return self.refuse("ipoib_mode", "a mode of IPoIB over Ethernet", why);
        }
        Ok(())
    }

    /// A datagram has room for so much.
    fn datagram_sizes(&self) -> Result<(), Error> {
        let is_ipv4 = self.has(axis::FAMILY, Family::Ipv4);
        let max = if is_ipv4 { DATAGRAM_BYTES_MAX_IPV4 } else { DATAGRAM_BYTES_MAX_IPV6 };
        let mut sizes = self.0.axes.numbers(axis::SIZE_BYTES.row);
        let too_long = sizes.find(|size| self.0.carrier == Carrier::Udp && *size > max);
        let Some(size) = too_long else { return Ok(()) };
        let why =
            format!("the longest has {max} B: end the sizes there, or give it an experiment of its own");
        self.refuse("size_bytes", &format!("a UDP datagram of {size} B"), &why)
    }

    /// Datagrams that are sent by one call.
    fn lists(&self) -> Result<(), Error> {
        let list = self.largest(axis::POST_LIST.row);
        if list > LIST_MAX {
            let what = format!("more than {LIST_MAX} datagrams at once");
            return self.refuse("post_list", &what, "sendmmsg takes no more");
        }
        if !self.has(axis::OFFLOAD, true) {
            return Ok(());
        }
        let size = self.largest(axis::SIZE_BYTES.row);
        if list > SEGMENTS_MAX || list * size > DATAGRAM_BYTES_MAX_IPV4 {
            let why = format!("they may be {SEGMENTS_MAX} and have {DATAGRAM_BYTES_MAX_IPV4} B together");
            return self.refuse("offload", &format!("{list} datagrams of {size} B as one"), &why);
        }
        if list == 1 {
            let why = "one alone is no list: give post_list, such as 16";
            return self.refuse("offload", "offload of datagrams that are sent one by one", why);
        }
        Ok(())
    }
}
