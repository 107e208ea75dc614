//! The values of axes that are words, which plans, records and flags share.

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
        /// Send to a multicast group, answered by a Send from each member.
        Multicast = "multicast",
        /// RDMA Read.
        Read = "read",
        /// Send, consumed by a posted receive.
        Send = "send",
        /// Send with immediate data.
        SendImm = "send_imm",
        /// RDMA Write: the target's memory changes, without a completion there.
        Write = "write",
        /// RDMA Write with immediate data, which consumes a posted receive.
        WriteImm = "write_imm",
    }
}

impl Operation {
    /// Whether it fetches bytes from the peer instead of sending bytes to the peer.
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

    /// Whether a service has it: RDMA Read and atomics need responses, and datagrams have only Send
    /// (IBTA vol. 1, section 9.4).
    pub fn exists_on(self, service: Service) -> bool {
        match service {
            Service::Rc => self != Self::Multicast,
            Service::Uc => !self.is_fetch() && self != Self::Multicast,
            Service::Ud => self.is_datagram(),
        }
    }

    /// Whether it may be a datagram, whose payload a posted receive takes.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Multicast | Self::Send | Self::SendImm)
    }

    /// Why `service` does not have it.
    pub(crate) fn why_not(self, service: Service) -> &'static str {
        match service {
            _ if self == Self::Multicast => "only datagrams can be sent to groups: use UD",
            Service::Ud => "UD has only Send and Send with immediate (IBTA vol. 1, section 9.4)",
            _ => "it needs a response, which only RC has: give it an experiment with service RC",
        }
    }

    /// Its name in the specification.
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
        /// The ranks exchange their addresses over the control connection.
        Exchange = "exchange",
        /// RDMA CM, the connection manager of librdmacm, connects them.
        RdmaCm = "rdma_cm",
    }
}

choice! {
    /// Direction of a stream.
    pub enum Flow {
        /// Both directions at once.
        Bi = "bi",
        /// From rank 0 to rank 1.
        Uni = "uni",
    }
}

choice! {
    /// Memory that messages are sent from and received into.
    pub enum Memory {
        /// Memory of the device, if it has any. The peers of softdev map it. Without any, as
        /// `process`.
        Device = "device",
        /// Memory of the process, as in perftest and qperf.
        Process = "process",
    }
}

choice! {
    /// How a rank waits for completions.
    pub enum Poll {
        /// Poll the completion queues without a pause.
        Busy = "busy",
        /// Sleep until a completion; the completion channel is armed before the queue is polled, as
        /// in perftest.
        Event = "event",
        /// Sleep until a completion; the completion channel is armed when the queue is empty. The
        /// rank need not sleep again for messages that arrive meanwhile (Potter 2018).
        EventRepoll = "event_repoll",
        /// Poll for receives, sleep for the completions of sends (Potter 2018).
        Hybrid = "hybrid",
    }
}

impl Poll {
    /// How a rank waits for receives, and for the completions of sends.
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
    /// How a rank waits for the completions of one queue: see [`Poll`].
    pub enum QueuePoll {
        /// Poll the queue without a pause.
        Busy = "busy",
        /// Sleep until a completion. The rank arms the completion channel before it polls the
        /// queue.
        Event = "event",
        /// Sleep until a completion. The rank arms the completion channel when the queue is empty.
        EventRepoll = "event_repoll",
    }
}

impl QueuePoll {
    /// Whether the rank sleeps.
    pub fn sleeps(self) -> bool {
        self != Self::Busy
    }
}
