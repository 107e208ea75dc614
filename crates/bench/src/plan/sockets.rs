//! What a plan must not ask of sockets.

use crate::Error;
use crate::axis;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoints;
use crate::pattern::check::Check;
use crate::point::{Carrier, Family, Flow, LinkLayer, Load, Pattern, Poll, Traffic};

/// The number and the marks of a message.
const HEADER_BYTES: u64 = 4;
/// Payload of the longest datagram: of 65,535 bytes the headers of IPv4 and UDP take 28, those of IPv6 only that of UDP (RFC 768,
/// RFC 791, RFC 8200).
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
        if let Some(poll) =
            self.0.axes.get(axis::POLL).iter().find(|poll| !matches!(poll, Poll::Busy | Poll::Event))
        {
            let why = "what comes is looked for or slept for: use busy or event";
            return self.refuse("poll", &format!("poll {} over {}", word(poll), carrier.name()), why);
        }
        if carrier == Carrier::Shmem {
            return self.shmem();
        }
        if carrier.is_library() {
            return Ok(());
        }
        self.floods_of_pairs()?;
        self.ipoib()?;
        self.datagram_sizes()?;
        self.numbered()?;
        self.lists()?;
        let streams = self.largest(axis::STREAMS.row);
        if streams > 1 && !self.0.pattern.row().floods {
            let why = "messages that are timed one by one take one connection: use the pattern \"stream\" or \"pairs\"";
            return self.refuse("streams", "several streams", why);
        }
        let lends = self.0.axes.get(axis::ZERO_COPY);
        let directions = self.0.axes.get(axis::DIRECTION);
        if lends.contains(&true) && (!self.0.pattern.row().floods || directions.contains(&Flow::Bi)) {
            let why = "it is for who only sends, and much: use the pattern \"stream\" one way";
            return self.refuse("zero_copy", "sending without a copy and receiving", why);
        }
        let loads = self.0.axes.get(axis::LOAD);
        if loads.contains(&Load::Outcast) {
            let why =
                "it is RDMA Read of the memory of who asks, which sockets have not: use incast or beside";
            return self.refuse("load", &format!("a load outcast over {}", carrier.name()), why);
        }
        Ok(())
    }

    /// Shared memory has no buffers but its rings.
    fn shmem(&self) -> Result<(), Error> {
        let loaders = self.0.axes.get(axis::LOADERS);
        if loaders.iter().any(|loaders| *loaders > 0) {
            let why = "nobody takes what loads put into a ring: use unix_stream";
            return self.refuse("loaders", "loads over shared memory", why);
        }
        Ok(())
    }

    /// IPoIB is InfiniBand.
    fn ipoib(&self) -> Result<(), Error> {
        let modes = self.0.axes.get(axis::IPOIB_MODE);
        let layers = self.0.axes.get(axis::LINK_LAYER);
        if modes.iter().any(Option::is_some) && layers.contains(&Some(LinkLayer::Ethernet)) {
            let why = "IPoIB is InfiniBand: give it an experiment of its own";
            return self.refuse("ipoib_mode", "a mode of IPoIB over Ethernet", why);
        }
        Ok(())
    }

    /// A datagram has room for so much.
    fn datagram_sizes(&self) -> Result<(), Error> {
        let max = if self.0.axes.get(axis::FAMILY).contains(&Family::Ipv4) {
            DATAGRAM_BYTES_MAX_IPV4
        } else {
            DATAGRAM_BYTES_MAX_IPV6
        };
        match self
            .0
            .axes
            .get(axis::SIZE_BYTES)
            .iter()
            .find(|size| self.0.carrier == Carrier::Udp && **size > max)
        {
            Some(size) => {
                let why = format!(
                    "the longest has {max} B: end the sizes there, or give it an experiment of its own"
                );
                self.refuse("size_bytes", &format!("a UDP datagram of {size} B"), &why)
            }
            None => Ok(()),
        }
    }

    /// Messages that are told apart say their numbers.
    fn numbered(&self) -> Result<(), Error> {
        match self.0.axes.get(axis::SIZE_BYTES).iter().find(|size| **size < HEADER_BYTES) {
            Some(size) if self.0.pattern == Pattern::OneWay => {
                let why = format!("a message says its number in {HEADER_BYTES} bytes");
                self.refuse("size_bytes", &format!("messages of {size} B one way"), &why)
            }
            _ => Ok(()),
        }
    }

    /// Datagrams that are sent by one call.
    fn lists(&self) -> Result<(), Error> {
        let list = self.largest(axis::POST_LIST.row);
        if list > LIST_MAX {
            return self.refuse(
                "post_list",
                &format!("more than {LIST_MAX} datagrams at once"),
                "sendmmsg takes no more",
            );
        }
        let offloads = self.0.axes.get(axis::OFFLOAD);
        if !offloads.contains(&true) {
            return Ok(());
        }
        let size = self.0.axes.get(axis::SIZE_BYTES).iter().max().copied().unwrap_or(1);
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

    /// Floods of pairs, of which what has come counts.
    fn floods_of_pairs(&self) -> Result<(), Error> {
        let traffic = self.0.axes.get(axis::TRAFFIC);
        let why = match self.0.carrier {
            Carrier::Udp => "UDP acknowledges nothing",
            Carrier::Sctp => "SCTP tells no program",
            _ => return Ok(()),
        };
        if !traffic.contains(&Traffic::Stream) {
            return Ok(());
        }
        let why = format!("what is acknowledged counts in the common time, and {why}: use tcp");
        self.refuse("endpoint", &format!("streams of pairs over {}", self.0.carrier.name()), &why)
    }
}

fn word(poll: &Poll) -> String {
    serde_json::to_value(poll).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
