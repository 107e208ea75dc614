//! Single calls of RDMA verbs, which endpoints of a device offer in addition to messages so that
//! they can be timed.

use super::Endpoint;
use crate::Error;
use crate::point::choice::choice;

choice! {
    /// A verbs call that is timed on its own (Hoefler et al. 2006, section 4.2).
    pub enum Step {
        /// Creating an address handle to the peer (`ibv_create_ah`).
        AddressHandle = "address_handle",
        /// Connecting a queue pair to another one of the same process: from INIT to RTR to RTS
        /// (`ibv_modify_qp`, twice).
        ConnectQp = "connect_qp",
        /// Creating a completion queue for the sends of a queue pair (`ibv_create_cq`).
        CreateCq = "create_cq",
        /// Creating a queue pair (`ibv_create_qp`).
        CreateQp = "create_qp",
        /// Ending a registration (`ibv_dereg_mr`).
        Deregister = "deregister",
        /// Destroying a queue pair that is ready to send (`ibv_destroy_qp`).
        DestroyQp = "destroy_qp",
        /// Polling a completion queue of receives that is empty (`ibv_poll_cq`).
        PollEmpty = "poll_empty",
        /// Polling the completion of a receive (`ibv_poll_cq`): the first part of o_r.
        PollReceive = "poll_receive",
        /// Polling the completion of a send (`ibv_poll_cq`).
        PollSend = "poll_send",
        /// Posting a receive (`ibv_post_recv`): the second part of o_r.
        PostReceive = "post_receive",
        /// Posting a message to a send queue that has room (`ibv_post_send`): o_s.
        PostSend = "post_send",
        /// Connecting a queue pair in INIT through RDMA CM to a queue pair of rank 1, from
        /// `rdma_create_id` until `rdma_establish` has returned; RC only.
        RdmaCmConnect = "rdma_cm_connect",
        /// Disconnecting it, from `rdma_disconnect` until rank 1 has answered.
        RdmaCmDisconnect = "rdma_cm_disconnect",
        /// Registering memory that was just mapped and never touched (`ibv_reg_mr`).
        RegisterCold = "register_cold",
        /// Registering memory that was touched and registered before (`ibv_reg_mr`).
        RegisterWarm = "register_warm",
    }
}

impl Step {
    /// The verbs calls, which are the default steps: the hot path first, then set-up in the order
    /// in which a program does it. The steps of RDMA CM need more than a device, and take many
    /// times as long.
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

    /// Returns whether the step is a post or a poll. These take a few nanoseconds, which a time
    /// stamp would double. Every other step is at least one system call.
    pub fn is_hot(self) -> bool {
        matches!(
            self,
            Self::PollEmpty | Self::PollReceive | Self::PollSend | Self::PostReceive | Self::PostSend
        )
    }

    /// Returns whether messages must arrive at rank 1, which then times the step.
    pub fn is_of_receiver(self) -> bool {
        matches!(self, Self::PollReceive | Self::PostReceive)
    }

    /// Returns whether the step registers or deregisters memory of `size_bytes`.
    pub fn is_of_memory(self) -> bool {
        matches!(self, Self::Deregister | Self::RegisterCold | Self::RegisterWarm)
    }

    /// Returns whether the step is a call of RDMA CM, which then also connects the queue pairs of
    /// the point.
    pub fn is_of_manager(self) -> bool {
        matches!(self, Self::RdmaCmConnect | Self::RdmaCmDisconnect)
    }

    /// Returns whether messages go from rank 0 to rank 1.
    pub fn has_messages(self) -> bool {
        self.is_hot() && self != Self::PollEmpty
    }

    /// Returns the rank that times the step.
    pub fn rank(self) -> u32 {
        u32::from(self.is_of_receiver())
    }

    /// Returns the default number of calls between two time stamps, with queues that hold `room`
    /// requests.
    pub(crate) fn batch(self, room: u32) -> u32 {
        if self.is_hot() { BATCH.min(room) } else { 1 }
    }
}

/// A time stamp takes 13 to 20 ns, a poll of an empty queue 3 ns. In a batch of this many calls,
/// the stamp is a tenth of the time or less.
const BATCH: u32 = 64;

/// An endpoint whose verbs calls can be timed in batches.
pub(crate) trait Calls: Endpoint {
    /// Posts `calls` messages, for which there is room. Each requests a completion, which only
    /// [`poll_sends`](Self::poll_sends) takes.
    fn post_sends(&mut self, calls: u32) -> Result<(), Error>;

    /// Polls `calls` times for the completion of a send; returns how many polls found one.
    fn poll_sends(&mut self, calls: u32) -> Result<u32, Error>;

    /// Polls `calls` times for a message; returns how many polls found one.
    fn poll_receives(&mut self, calls: u32) -> Result<u32, Error>;

    /// Posts `calls` receives, in place of those that [`poll_receives`](Self::poll_receives) took.
    fn post_receives(&mut self, calls: u32) -> Result<(), Error>;

    /// The objects that a step of set-up creates and destroys, a batch at a time.
    type Objects<'a>: Batch
    where
        Self: 'a;

    /// Creates what the calls of a set-up step need; this is not timed.
    ///
    /// # Errors
    /// The error of the device.
    fn objects(&self, step: Step, batch: u32) -> Result<Self::Objects<'_>, Error>;

    /// Accepts the RDMA CM connections that another rank makes in `batches` batches of a step, and
    /// answers when that rank disconnects them.
    ///
    /// # Errors
    /// The error of RDMA CM or of the device.
    fn accept(&self, step: Step, batch: u32, batches: u64) -> Result<(), Error>;
}

/// A step whose batches can be timed.
pub(crate) trait Batch {
    /// Prepares what the calls need; this is not timed.
    fn prepare(&mut self) -> Result<(), Error>;

    /// Makes the calls, and nothing else: this is what is timed. Returns how many of them did what
    /// the step names.
    fn run(&mut self) -> Result<u32, Error>;

    /// Releases what the calls left, of which `done` did what the step names; this is not timed.
    fn finish(&mut self, done: u32) -> Result<(), Error>;
}

/// An action on an endpoint that has [`Calls`].
pub(crate) trait CallsVisitor {
    /// The result of the action.
    type Done;

    /// Performs the action.
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
