//! Calls of RDMA verbs by themselves: what endpoints of a device offer beside messages, to time
//! that.

use super::Endpoint;
use crate::Error;
use crate::point::choice::choice;

choice! {
    /// A call of a program on RDMA verbs, timed by itself (H19 of the evaluations).
    pub enum Step {
        /// Making an address handle to the peer (`ibv_create_ah`).
        AddressHandle = "address_handle",
        /// Taking a queue pair from INIT over RTR to RTS (`ibv_modify_qp`, twice), to another one
        /// of the same process.
        ConnectQp = "connect_qp",
        /// Making a completion queue for the sends of a queue pair (`ibv_create_cq`).
        CreateCq = "create_cq",
        /// Making a queue pair (`ibv_create_qp`).
        CreateQp = "create_qp",
        /// Ending a registration (`ibv_dereg_mr`).
        Deregister = "deregister",
        /// Destroying a queue pair that is ready to send (`ibv_destroy_qp`).
        DestroyQp = "destroy_qp",
        /// Asking a completion queue of receives for a completion when it has none (`ibv_poll_cq`).
        PollEmpty = "poll_empty",
        /// Taking the completion of a receive (`ibv_poll_cq`): the first part of o_r.
        PollReceive = "poll_receive",
        /// Taking the completion of a send (`ibv_poll_cq`).
        PollSend = "poll_send",
        /// Posting a receive (`ibv_post_recv`): the other part of o_r.
        PostReceive = "post_receive",
        /// Posting a message to a send queue that has room (`ibv_post_send`): o_s.
        PostSend = "post_send",
        /// Connecting a queue pair in INIT through RDMA CM to one of rank 1, from `rdma_create_id`
        /// until `rdma_establish` has returned; RC only.
        RdmaCmConnect = "rdma_cm_connect",
        /// Ending such a connection, from `rdma_disconnect` until rank 1 has answered.
        RdmaCmDisconnect = "rdma_cm_disconnect",
        /// Registering memory of the process that was just mapped and never touched (`ibv_reg_mr`).
        RegisterCold = "register_cold",
        /// Registering memory of the process that was touched, and registered before
        /// (`ibv_reg_mr`).
        RegisterWarm = "register_warm",
    }
}

impl Step {
    /// The calls of verbs, which are the usual steps: the hot path first, then set-up in the order
    /// in which a program does it. Those of RDMA CM need more than a device, and take many times
    /// as long.
    pub const OF_VERBS: [Self; 13] = [
        Self::PostSend,
        Self::PollEmpty,
        Self::PollSend,
        Self::PollReceive,
        Self::PostReceive,
        Self::RegisterCold,
        Self::RegisterWarm,
        Self::Deregister,
        Self::CreateCq,
        Self::CreateQp,
        Self::ConnectQp,
        Self::DestroyQp,
        Self::AddressHandle,
    ];

    /// Whether it is a post or a poll: some nanoseconds, which a stamp would double. Everything
    /// else is a system call or more.
    pub fn is_hot(self) -> bool {
        matches!(
            self,
            Self::PollEmpty | Self::PollReceive | Self::PollSend | Self::PostReceive | Self::PostSend
        )
    }

    /// Whether messages must arrive at rank 1, which then does the timing.
    pub fn is_of_receiver(self) -> bool {
        matches!(self, Self::PollReceive | Self::PostReceive)
    }

    /// Whether it is about registered memory of `size_bytes`.
    pub fn is_of_memory(self) -> bool {
        matches!(self, Self::Deregister | Self::RegisterCold | Self::RegisterWarm)
    }

    /// Whether it is RDMA CM's, which then connects the queue pairs of the point as well.
    pub fn is_of_manager(self) -> bool {
        matches!(self, Self::RdmaCmConnect | Self::RdmaCmDisconnect)
    }

    /// Whether messages go from one rank to the other.
    pub fn has_messages(self) -> bool {
        self.is_hot() && self != Self::PollEmpty
    }

    /// The rank that times it.
    pub fn rank(self) -> u32 {
        u32::from(self.is_of_receiver())
    }

    /// Calls between two stamps where a plan leaves it to the step, with queues that hold so many
    /// requests.
    pub(crate) fn batch(self, room: u32) -> u32 {
        if self.is_hot() { BATCH.min(room) } else { 1 }
    }
}

/// A stamp takes 13 to 20 ns, a poll of an empty queue 3 ns: of so many calls the stamp is a tenth
/// or less.
const BATCH: u32 = 64;

/// An endpoint whose calls can be made by themselves, a batch at a time.
pub(crate) trait Calls: Endpoint {
    /// Posts so many messages, for which there is room. Each asks for a completion, which only
    /// [`poll_sends`](Self::poll_sends) takes.
    fn post_sends(&mut self, calls: u32) -> Result<(), Error>;

    /// Asks so often for the completion of such a message; gives how often there was one.
    fn poll_sends(&mut self, calls: u32) -> Result<u32, Error>;

    /// Asks so often for a message; gives how often there was one.
    fn poll_receives(&mut self, calls: u32) -> Result<u32, Error>;

    /// Posts so many receives, in place of those that [`poll_receives`](Self::poll_receives) took.
    fn post_receives(&mut self, calls: u32) -> Result<(), Error>;

    /// Objects that a step of set-up makes and takes away, so many in a batch.
    type Objects<'a>: Batch
    where
        Self: 'a;

    /// Makes ready what a step of set-up needs that is not timed.
    ///
    /// # Errors
    /// What the device says.
    fn objects(&self, step: Step, batch: u32) -> Result<Self::Objects<'_>, Error>;

    /// Takes the connections of RDMA CM that so many batches of a step make at the other rank, and
    /// answers when that rank ends them.
    ///
    /// # Errors
    /// What RDMA CM and the device say.
    fn accept(&self, step: Step, batch: u32, batches: u64) -> Result<(), Error>;
}

/// A step of which batches can be timed.
pub(crate) trait Batch {
    /// Makes ready what the calls need; not timed.
    fn prepare(&mut self) -> Result<(), Error>;

    /// Makes the calls, and nothing else: this is what is timed. Gives how many did what the step
    /// is.
    fn run(&mut self) -> Result<u32, Error>;

    /// Puts away what the calls left, of which so many did what the step is; not timed.
    fn finish(&mut self, done: u32) -> Result<(), Error>;
}

/// What is done with an endpoint that has [`Calls`].
pub(crate) trait CallsVisitor {
    /// What comes of it.
    type Done;

    /// Does it.
    fn visit<C: Calls>(self, endpoint: &mut C) -> Self::Done;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Choice;

    #[test]
    fn every_step_has_the_name_that_plans_give_it() {
        for step in Step::VALUES {
            assert_eq!(serde_json::to_value(step).unwrap(), step.word());
            assert_eq!(Step::OF_VERBS.contains(step), !step.is_of_manager(), "{step:?}");
        }
        assert_eq!(Step::PostSend.batch(16), 16);
        assert_eq!(Step::CreateQp.batch(16), 1);
    }
}
