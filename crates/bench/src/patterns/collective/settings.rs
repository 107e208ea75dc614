//! The settings of collective operations.

use crate::endpoint::collectives::{Algorithm, Blocks, Collective, CollectiveCall, Element, Reduction};
use crate::pattern::joint::Start;
use crate::pattern::settings::settings;
use crate::point::Injection;

settings! {
    usual {
        collective: Collective = COLLECTIVE or Collective::Allreduce,
        collective_call: CollectiveCall = COLLECTIVE_CALL or CollectiveCall::Blocking,
        ranks: u32 = RANKS or 2,
        start: Start = START or Start::Barrier,
        datatype: Element = DATATYPE or Element::Float,
        op: Reduction = OP or Reduction::Sum,
        algorithm: Option<Algorithm> = ALGORITHM or None,
        ways: u32 = WAYS or 1,
    }
    asked {
        blocks: Blocks = BLOCKS or Blocks::Equal,
        inject: Option<Injection> = INJECT or None,
        mpi_tests: u32 = MPI_TESTS or 0,
    }
}
