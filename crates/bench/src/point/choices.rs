//! What axes choose from: names that plans, records and flags share.

use super::choice::choice;

choice! {
    /// Transport service of a queue pair (IBTA vol. 1, section 9.2; names as in the papers).
    #[derive(Ord, PartialOrd)]
    pub enum Service {
        /// Reliable connection.
        Rc = "RC",
        /// Unreliable connection.
        Uc = "UC",
        /// Unreliable datagram.
        Ud = "UD",
    }
}

choice! {
    /// Operation that carries a message (IBTA vol. 1, section 9.4).
    pub enum Operation {
        /// Compare-and-swap of eight bytes.
        CompareSwap = "compare_swap",
        /// Fetch-and-add to eight bytes.
        FetchAdd = "fetch_add",
        /// Send to a group, answered by a Send from each of its members.
        Multicast = "multicast",
        /// RDMA Read.
        Read = "read",
        /// Send, consumed by a posted receive.
        Send = "send",
        /// Send with immediate data.
        SendImm = "send_imm",
        /// RDMA Write: the target sees its memory change and nothing else.
        Write = "write",
        /// RDMA Write with immediate data, which consumes a posted receive.
        WriteImm = "write_imm",
    }
}

impl Operation {
    /// Whether it brings the peer's bytes here instead of ours there.
    pub fn is_fetch(self) -> bool {
        matches!(self, Self::Read) || self.is_atomic()
    }

    /// Whether it is an atomic operation, always on eight bytes.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::CompareSwap | Self::FetchAdd)
    }

    /// Whether it consumes a receive at the target and completes there.
    pub fn arrives(self) -> bool {
        matches!(self, Self::Multicast | Self::Send | Self::SendImm | Self::WriteImm)
    }

    /// Whether the request carries immediate data.
    pub fn has_immediate(self) -> bool {
        matches!(self, Self::SendImm | Self::WriteImm)
    }

    /// Whether a service has it: RDMA Read and atomics need responses, datagrams have Send alone
    /// (IBTA vol. 1, section 9.4).
    pub fn exists_on(self, service: Service) -> bool {
        match service {
            Service::Rc => self != Self::Multicast,
            Service::Uc => !self.is_fetch() && self != Self::Multicast,
            Service::Ud => self.is_datagram(),
        }
    }

    /// Whether it may be a datagram: its payload goes to a posted receive.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Multicast | Self::Send | Self::SendImm)
    }

    /// Why a service that does not have it does not.
    pub(crate) fn why_not(self, service: Service) -> &'static str {
        match service {
            _ if self == Self::Multicast => "only datagrams go to groups: use UD",
            Service::Ud => "datagrams have Send and Send with immediate only (IBTA vol. 1, section 9.4)",
            _ => "it needs a response, which only RC has",
        }
    }

    /// Its name as the specification has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CompareSwap => "compare-and-swap",
            Self::FetchAdd => "fetch-and-add",
            Self::Multicast => "multicast Send",
            Self::Read => "RDMA Read",
            Self::Send => "Send",
            Self::SendImm => "Send with immediate",
            Self::Write => "RDMA Write",
            Self::WriteImm => "RDMA Write with immediate",
        }
    }
}

choice! {
    /// How queue pairs are connected.
    pub enum Setup {
        /// The ranks tell each other their addresses over the control plane.
        Exchange = "exchange",
        /// By the communication manager of librdmacm.
        RdmaCm = "rdma_cm",
    }
}

choice! {
    /// Which way a stream flows.
    pub enum Flow {
        /// Both ways at once.
        Bi = "bi",
        /// From rank 0 to rank 1.
        Uni = "uni",
    }
}

choice! {
    /// Whose memory messages come from and go to.
    pub enum Memory {
        /// What the device gives where it gives any: softdev's is mapped by its peers. Else as
        /// `Process`.
        Device = "device",
        /// The process's own, as the field's tools have it.
        Process = "process",
    }
}

choice! {
    /// How completions are waited for.
    pub enum Poll {
        /// Poll the completion queues without a pause.
        Busy = "busy",
        /// Sleep for completions; the channel is armed again before the queue is polled. So does
        /// perftest.
        Event = "event",
        /// Sleep for completions; the queue is polled until it is empty before the channel is armed
        /// again. Messages that come meanwhile need no sleep of their own (V12).
        EventRepoll = "event_repoll",
        /// Poll for receives, sleep for sends. V18 of the evaluations.
        Hybrid = "hybrid",
    }
}

impl Poll {
    /// How receives and sends are waited for.
    pub fn queues(self) -> (QueuePoll, QueuePoll) {
        match self {
            Self::Busy => (QueuePoll::Busy, QueuePoll::Busy),
            Self::Event => (QueuePoll::Event, QueuePoll::Event),
            Self::EventRepoll => (QueuePoll::EventRepoll, QueuePoll::EventRepoll),
            Self::Hybrid => (QueuePoll::Busy, QueuePoll::Event),
        }
    }
}

choice! {
    /// How the completions of one queue are waited for: see [`Poll`].
    pub enum QueuePoll {
        /// Polling without a pause.
        Busy = "busy",
        /// Sleeping, armed again before the queue is polled.
        Event = "event",
        /// Sleeping, armed again once the queue is empty.
        EventRepoll = "event_repoll",
    }
}

impl QueuePoll {
    /// Whether it sleeps.
    pub fn sleeps(self) -> bool {
        self != Self::Busy
    }
}
