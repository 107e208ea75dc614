//! Operations of all ranks of a point, by one call of each. Endpoints offer them in addition to
//! messages so that every rank can time them.

use super::Endpoint;
use crate::Error;
use crate::patterns::halo::choices::{Grid, HaloMethod};
use crate::point::choice::choice;

choice! {
    /// A collective operation (MPI 4.0, chapter 6).
    pub enum Collective {
        /// Every rank gets the blocks of all ranks (MPI_Allgather).
        Allgather = "allgather",
        /// As allgather, with a length and a displacement for each rank's block (MPI_Allgatherv).
        Allgatherv = "allgatherv",
        /// Every rank gets the reduction of the vectors of all ranks (MPI_Allreduce).
        Allreduce = "allreduce",
        /// Each rank sends a different block to every rank (MPI_Alltoall).
        Alltoall = "alltoall",
        /// As alltoall, with a length and a displacement for each block (MPI_Alltoallv).
        Alltoallv = "alltoallv",
        /// No rank continues before all ranks have called it (MPI_Barrier).
        Barrier = "barrier",
        /// Every rank gets the data of rank 0 (MPI_Bcast).
        Bcast = "bcast",
        /// Rank 0 gets a block of each rank (MPI_Gather).
        Gather = "gather",
        /// As gather, with a length and a displacement for each rank's block (MPI_Gatherv).
        Gatherv = "gatherv",
        /// Rank 0 gets the reduction of the vectors of all ranks (MPI_Reduce).
        Reduce = "reduce",
        /// Each rank gets one block of the reduction of all vectors. The call takes a length for
        /// each block (MPI_Reduce_scatter); all are equal.
        ReduceScatter = "reduce_scatter",
        /// As reduce_scatter, with one length for all blocks (MPI_Reduce_scatter_block).
        ReduceScatterBlock = "reduce_scatter_block",
        /// Each rank gets one block of the data of rank 0 (MPI_Scatter).
        Scatter = "scatter",
        /// As scatter, with a length and a displacement for each rank's block (MPI_Scatterv).
        Scatterv = "scatterv",
    }
}

impl Collective {
    /// Returns whether the operation computes with the data of the ranks.
    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::Allreduce | Self::Reduce) || self.scatters_a_reduction()
    }

    /// Returns whether each rank gets a part of a reduction.
    pub(crate) fn scatters_a_reduction(self) -> bool {
        matches!(self, Self::ReduceScatter | Self::ReduceScatterBlock)
    }

    /// Returns whether the call takes a length and a displacement for each rank's block.
    pub(crate) fn has_blocks_of_their_own(self) -> bool {
        matches!(self, Self::Allgatherv | Self::Alltoallv | Self::Gatherv | Self::Scatterv)
    }
}

choice! {
    /// The lengths of the ranks' blocks, where each block has its own length.
    pub enum Blocks {
        /// All blocks are as long as the message, as in the OSU and the Intel MPI Benchmarks.
        Equal = "equal",
        /// The block of rank r of P ranks is 2 (r + 1) / (P + 1) of the message: the last block is
        /// P times as long as the first, and the mean is the message.
        Rising = "rising",
    }
}

choice! {
    /// How a collective operation is called.
    pub enum CollectiveCall {
        /// One call, which returns when this rank has its result (MPI_Allreduce).
        Blocking = "blocking",
        /// A call that starts the operation, and MPI_Wait right after it (MPI_Iallreduce):
        /// `Iallreduce_pure` of the Intel MPI Benchmarks.
        Nonblocking = "nonblocking",
        /// As nonblocking, with a computation in between that takes as long as the operation alone:
        /// `osu_iallreduce`, and `Iallreduce` of the Intel MPI Benchmarks.
        Overlapped = "overlapped",
    }
}

impl CollectiveCall {
    /// Returns whether one call starts the operation and another completes it.
    pub(crate) fn is_nonblocking(self) -> bool {
        self != Self::Blocking
    }
}

choice! {
    /// The algorithm of a collective operation in which ranks write to each other's memory.
    pub enum Algorithm {
        /// In round i each rank writes to n ranks, at distances that are multiples of (n+1)^i: a
        /// barrier, and an allgather of any number of ranks.
        Dissemination = "dissemination",
        /// In round k each rank exchanges all its data with the rank whose number differs in bit k:
        /// an allreduce of any number of ranks, and an allgather of a power of two.
        RecursiveDoubling = "recursive_doubling",
        /// Each rank writes only to the next rank: an allreduce and an allgather.
        Ring = "ring",
    }
}

choice! {
    /// The datatype of the elements of a vector that is reduced.
    pub enum Element {
        /// Floating point, 8 B (MPI_DOUBLE).
        Double = "double",
        /// Floating point, 4 B (MPI_FLOAT): the default of the Intel MPI Benchmarks.
        Float = "float",
        /// Signed integer, 4 B (MPI_INT32_T).
        Int32 = "int32",
        /// Unsigned integer, 8 B (MPI_UINT64_T).
        Uint64 = "uint64",
    }
}

impl Element {
    /// Returns the size of one element in bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Float | Self::Int32 => 4,
            Self::Double | Self::Uint64 => 8,
        }
    }

    /// Returns a small whole number as it is stored in memory.
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
    /// The reduction of the elements.
    pub enum Reduction {
        /// The largest (MPI_MAX).
        Max = "max",
        /// The smallest (MPI_MIN).
        Min = "min",
        /// The sum (MPI_SUM).
        Sum = "sum",
    }
}

impl Reduction {
    /// Returns the reduction of some numbers.
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
    /// Of an operation that reduces, the whole vector; of all others, what one rank sends to
    /// another.
    pub(crate) size_bytes: usize,
    pub(crate) element: Element,
    pub(crate) reduction: Reduction,
    /// The algorithm over verbs; `None` for the default of the operation.
    pub(crate) algorithm: Option<Algorithm>,
    /// The n of an n-way dissemination.
    pub(crate) ways: u32,
}

impl CollectiveSpec {
    /// Returns the algorithm over verbs.
    pub(crate) fn algorithm(&self) -> Algorithm {
        // These work with any number of ranks, in the fewest rounds.
        self.algorithm.unwrap_or(match self.operation {
            Collective::Allreduce => Algorithm::RecursiveDoubling,
            _ => Algorithm::Dissemination,
        })
    }

    /// Returns why `ranks` ranks cannot do the operation over verbs, if so.
    pub(crate) fn over_verbs(&self, ranks: u32) -> Option<Refusal> {
        let algorithm = self.algorithm();
        let (key, what, why) = match (self.operation, algorithm) {
            (Collective::Allgather, Algorithm::RecursiveDoubling) if !ranks.is_power_of_two() => (
                "algorithm",
                format!("an allgather of {ranks} ranks by recursive doubling"),
                "the number of ranks must be a power of two: use dissemination or ring",
            ),
            (Collective::Allreduce, Algorithm::Dissemination) => (
                "algorithm",
                "an allreduce by dissemination".to_owned(),
                "some vectors would be added twice: use recursive_doubling or ring",
            ),
            (Collective::Barrier, Algorithm::RecursiveDoubling | Algorithm::Ring) => (
                "algorithm",
                format!("a barrier by {}", algorithm.word()),
                "a barrier over verbs uses dissemination: leave algorithm out",
            ),
            (Collective::Allgather | Collective::Allreduce | Collective::Barrier, _) => {
                let is_stray = self.ways > 1 && algorithm != Algorithm::Dissemination;
                return is_stray.then(|| Refusal {
                    key: "ways",
                    what: format!("{} in {} ways", algorithm.word(), self.ways),
                    why: "ways applies to dissemination only: leave ways out",
                });
            }
            (operation, _) => (
                "collective",
                format!("{} over verbs", operation.word()),
                "only allgather, allreduce and barrier run over verbs: measure it over MPI",
            ),
        };
        Some(Refusal { key, what, why })
    }
}

/// Why an operation is not possible.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The axis that requests it.
    pub(crate) key: &'static str,
    pub(crate) what: String,
    /// The reason, and what to do.
    pub(crate) why: &'static str,
}

/// A halo exchange: all ranks exchange the sides of their blocks with their neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HaloSpec {
    pub(crate) grid: Grid,
    pub(crate) method: HaloMethod,
    pub(crate) side_bytes: usize,
}

/// An operation that all ranks repeat together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Joint {
    Collective(CollectiveSpec),
    Halo(HaloSpec),
}

/// Counters of an endpoint that does a joint operation by RDMA Writes: its calls, and the writes in
/// them.
pub(crate) const CALLS: &str = "joint_calls";
pub(crate) const WRITES: &str = "joint_writes";

/// An endpoint whose ranks do joint operations.
pub(crate) trait Collectives: Endpoint {
    /// Allocates memory for the operation and fills it with data that only this rank sends.
    ///
    /// # Errors
    /// [`Error::Impossible`] if this number of ranks cannot do it.
    fn prepare(&mut self, joint: &Joint) -> Result<(), Error>;

    /// Does the operation once. This is what is timed, and nothing else is done here.
    ///
    /// # Errors
    /// The error of the library or the device.
    fn call(&mut self) -> Result<(), Error>;

    /// Starts the operation, if start and completion are separate calls; otherwise does it.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn begin(&mut self) -> Result<(), Error> {
        self.call()
    }

    /// Returns whether the operation that was started has completed, and lets the library progress
    /// it.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn test(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Completes the operation that was started.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Clears the result of the last call, so that the next call is seen to produce it again.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn clear(&mut self) -> Result<(), Error>;

    /// Compares the result of the last call with the expected one.
    ///
    /// # Errors
    /// [`Error::WrongResult`].
    fn verify(&self) -> Result<(), Error>;

    /// The library's own barrier.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn meet(&mut self) -> Result<(), Error>;

    /// Sends a number of rank 0 to all ranks.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn hear(&mut self, number: u64) -> Result<u64, Error>;

    /// Returns the largest of the numbers of all ranks, on every rank.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn largest(&mut self, number: u64) -> Result<u64, Error>;

    /// Sends a number to a rank that waits for it in [`take`](Self::take).
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn give(&mut self, to: u32, number: u64) -> Result<(), Error>;

    /// Waits for a number that a rank sends by [`give`](Self::give).
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn take(&mut self, from: u32) -> Result<u64, Error>;

    /// Sends an empty message to one rank and receives one from another, both at the same time.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn swap(&mut self, to: u32, from: u32) -> Result<(), Error>;
}

/// An action on an endpoint that has [`Collectives`].
pub(crate) trait CollectivesVisitor {
    /// The result of the action.
    type Done;

    /// Performs the action.
    fn visit<C: Collectives>(self, endpoint: &mut C) -> Self::Done;
}
