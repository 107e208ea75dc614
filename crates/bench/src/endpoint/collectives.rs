//! What all ranks of a point do together, by one call of each: what endpoints offer beside
//! messages, to time that on every rank.

use super::Endpoint;
use crate::Error;
use crate::patterns::halo::choices::{Grid, HaloMethod};
use crate::point::choice::choice;

choice! {
    /// A collective operation (MPI 4.0, chapter 6).
    pub enum Collective {
        /// Each rank gives a block, and all get the blocks of all (MPI_Allgather).
        Allgather = "allgather",
        /// The same, with a length and a place for each rank's block (MPI_Allgatherv).
        Allgatherv = "allgatherv",
        /// All get what reduces the vectors of all (MPI_Allreduce).
        Allreduce = "allreduce",
        /// Each rank gives every other a block of its own (MPI_Alltoall).
        Alltoall = "alltoall",
        /// The same, with a length and a place for each block (MPI_Alltoallv).
        Alltoallv = "alltoallv",
        /// No rank goes on before all have come (MPI_Barrier).
        Barrier = "barrier",
        /// All get what rank 0 has (MPI_Bcast).
        Bcast = "bcast",
        /// Rank 0 gets a block of each rank (MPI_Gather).
        Gather = "gather",
        /// The same, with a length and a place for each rank's block (MPI_Gatherv).
        Gatherv = "gatherv",
        /// Rank 0 gets what reduces the vectors of all (MPI_Reduce).
        Reduce = "reduce",
        /// Each rank gets a block of what reduces the vectors of all (MPI_Reduce_scatter_block).
        ReduceScatter = "reduce_scatter",
        /// Each rank gets a block of what rank 0 has (MPI_Scatter).
        Scatter = "scatter",
        /// The same, with a length and a place for each rank's block (MPI_Scatterv).
        Scatterv = "scatterv",
    }
}

impl Collective {
    /// Whether it computes with what ranks give.
    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::Allreduce | Self::Reduce | Self::ReduceScatter)
    }

    /// Whether its call takes a length and a place for each rank's block.
    pub(crate) fn has_blocks_of_their_own(self) -> bool {
        matches!(self, Self::Allgatherv | Self::Alltoallv | Self::Gatherv | Self::Scatterv)
    }
}

choice! {
    /// How long the blocks of ranks are, where each has a length of its own.
    pub enum Blocks {
        /// All as long as the message, as the OSU and the Intel MPI Benchmarks have them.
        Equal = "equal",
        /// That of rank r of P ranks is 2 (r + 1) / (P + 1) of the message: the last is P times as
        /// long as the first, and the mean is the message.
        Rising = "rising",
    }
}

choice! {
    /// How a collective operation is called.
    pub enum CollectiveCall {
        /// By one call that returns when this rank has its share (MPI_Allreduce).
        Blocking = "blocking",
        /// By a call that starts it, and MPI_Wait right after (MPI_Iallreduce): `Iallreduce_pure`
        /// of the Intel MPI Benchmarks.
        Nonblocking = "nonblocking",
        /// The same with a calculation in between that takes as long as the operation alone:
        /// `osu_iallreduce`, and `Iallreduce` of the Intel MPI Benchmarks.
        Overlapped = "overlapped",
    }
}

impl CollectiveCall {
    /// Whether it is started by one call and completed by another.
    pub(crate) fn is_nonblocking(self) -> bool {
        self != Self::Blocking
    }
}

choice! {
    /// How ranks that write to each other's memory do a collective operation.
    pub enum Algorithm {
        /// In round i each rank writes to those n ways on, at distances of (n+1)^i: a barrier, and
        /// an allgather of any number of ranks.
        Dissemination = "dissemination",
        /// In round k each rank exchanges everything it holds with the rank whose number differs in
        /// bit k: an allreduce of any number of ranks, and an allgather of a power of two.
        RecursiveDoubling = "recursive_doubling",
        /// Each rank writes to the next one only: an allreduce and an allgather.
        Ring = "ring",
    }
}

choice! {
    /// What the elements of a vector are that is reduced.
    pub enum Element {
        /// Floating point of 8 B (MPI_DOUBLE).
        Double = "double",
        /// Floating point of 4 B (MPI_FLOAT): that of the Intel MPI Benchmarks.
        Float = "float",
        /// Signed integers of 4 B (MPI_INT32_T).
        Int32 = "int32",
        /// Unsigned integers of 8 B (MPI_UINT64_T).
        Uint64 = "uint64",
    }
}

impl Element {
    /// Bytes of one.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Float | Self::Int32 => 4,
            Self::Double | Self::Uint64 => 8,
        }
    }

    /// A small whole number, as it stands in memory.
    pub(crate) fn encode(self, value: u32) -> Vec<u8> {
        match self {
            Self::Double => f64::from(value).to_ne_bytes().to_vec(),
            Self::Float => (value as f32).to_ne_bytes().to_vec(),
            Self::Int32 => value.cast_signed().to_ne_bytes().to_vec(),
            Self::Uint64 => u64::from(value).to_ne_bytes().to_vec(),
        }
    }
}

choice! {
    /// What is computed of elements.
    pub enum Reduction {
        /// The largest (MPI_MAX).
        Max = "max",
        /// The least (MPI_MIN).
        Min = "min",
        /// The sum (MPI_SUM).
        Sum = "sum",
    }
}

impl Reduction {
    /// It of some numbers.
    pub(crate) fn of(self, values: impl Iterator<Item = u32>) -> u32 {
        match self {
            Self::Max => values.max().unwrap_or(0),
            Self::Min => values.min().unwrap_or(0),
            Self::Sum => values.sum(),
        }
    }
}

/// A collective operation with its message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CollectiveSpec {
    pub(crate) operation: Collective,
    pub(crate) call: CollectiveCall,
    pub(crate) blocks: Blocks,
    /// Of a vector that is reduced, all of it; elsewhere what one rank gives to another.
    pub(crate) size_bytes: usize,
    pub(crate) element: Element,
    pub(crate) reduction: Reduction,
    /// How ranks do it over verbs; absent for what is usual for the operation.
    pub(crate) algorithm: Option<Algorithm>,
    /// The n of a dissemination in n ways.
    pub(crate) ways: u32,
}

impl CollectiveSpec {
    /// How ranks do it over verbs.
    pub(crate) fn algorithm(&self) -> Algorithm {
        // Those that any number of ranks can do, in the fewest rounds.
        self.algorithm.unwrap_or(match self.operation {
            Collective::Allreduce => Algorithm::RecursiveDoubling,
            _ => Algorithm::Dissemination,
        })
    }

    /// Why so many ranks do not do it over verbs, if so.
    pub(crate) fn over_verbs(&self, ranks: u32) -> Option<Refusal> {
        let algorithm = self.algorithm();
        let (key, what, why) = match (self.operation, algorithm) {
            (Collective::Allgather, Algorithm::RecursiveDoubling) if !ranks.is_power_of_two() => (
                "algorithm",
                format!("an allgather by recursive doubling of {ranks} ranks"),
                "it takes a power of two: use dissemination or ring",
            ),
            (Collective::Allreduce, Algorithm::Dissemination) => (
                "algorithm",
                "an allreduce by dissemination".to_owned(),
                "a sum would have some vectors twice: use recursive_doubling or ring",
            ),
            (Collective::Barrier, Algorithm::RecursiveDoubling | Algorithm::Ring) => (
                "algorithm",
                format!("a barrier by {}", algorithm.word()),
                "over verbs a barrier is disseminated: leave algorithm out",
            ),
            (Collective::Allgather | Collective::Allreduce | Collective::Barrier, _) => {
                let is_stray = self.ways > 1 && algorithm != Algorithm::Dissemination;
                return is_stray.then(|| Refusal {
                    key: "ways",
                    what: format!("{} in {} ways", algorithm.word(), self.ways),
                    why: "only dissemination has ways: leave ways out",
                });
            }
            (operation, _) => (
                "collective",
                format!("{} over verbs", operation.word()),
                "over verbs there are allgather, allreduce and barrier: measure it over MPI",
            ),
        };
        Some(Refusal { key, what, why })
    }
}

/// Why something cannot be.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The axis that asks for it.
    pub(crate) key: &'static str,
    pub(crate) what: String,
    /// And what to do.
    pub(crate) why: &'static str,
}

/// An exchange of the sides of all ranks' blocks with their neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HaloSpec {
    pub(crate) grid: Grid,
    pub(crate) method: HaloMethod,
    pub(crate) side_bytes: usize,
}

/// What all ranks do together, again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Joint {
    Collective(CollectiveSpec),
    Halo(HaloSpec),
}

/// Counters of an endpoint that does it by RDMA Writes: its calls, and its writes in them.
pub(crate) const CALLS: &str = "joint_calls";
pub(crate) const WRITES: &str = "joint_writes";

/// An endpoint whose ranks do something together.
pub(crate) trait Collectives: Endpoint {
    /// Makes memory for it, and fills that with what only this rank would give.
    ///
    /// # Errors
    /// [`Error::Impossible`] where it cannot be done by so many ranks.
    fn prepare(&mut self, joint: &Joint) -> Result<(), Error>;

    /// Does it once. This is what is timed, and nothing else is done here.
    ///
    /// # Errors
    /// What the library or the device says.
    fn call(&mut self) -> Result<(), Error>;

    /// Starts it, where it can be started and completed apart; does it otherwise.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn begin(&mut self) -> Result<(), Error> {
        self.call()
    }

    /// Whether what was started has completed; lets the library go on with it.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn test(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Completes what was started.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Removes what the last call brought, so that the next is seen to bring it again.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn clear(&mut self) -> Result<(), Error>;

    /// Compares what the last call brought with what it should have.
    ///
    /// # Errors
    /// [`Error::WrongResult`].
    fn verify(&self) -> Result<(), Error>;

    /// The library's own barrier.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn meet(&mut self) -> Result<(), Error>;

    /// Gives all ranks a number of rank 0.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn hear(&mut self, number: u64) -> Result<u64, Error>;

    /// Gives all ranks the largest of their numbers.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn largest(&mut self, number: u64) -> Result<u64, Error>;

    /// Sends a number to a rank that waits for it by [`take`](Self::take).
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn give(&mut self, to: u32, number: u64) -> Result<(), Error>;

    /// Waits for a number that a rank sends by [`give`](Self::give).
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn take(&mut self, from: u32) -> Result<u64, Error>;

    /// Sends an empty message to one rank and waits for that of another, both at the same time.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn swap(&mut self, to: u32, from: u32) -> Result<(), Error>;
}

/// What is done with an endpoint that has [`Collectives`].
pub(crate) trait CollectivesVisitor {
    /// What comes of it.
    type Done;

    /// Does it.
    fn visit<C: Collectives>(self, endpoint: &mut C) -> Self::Done;
}
