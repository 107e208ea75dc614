//! What a plan must not ask of collective operations.

use crate::Error;
use crate::axis;
use crate::endpoint::collectives::{Blocks, Collective, CollectiveCall, CollectiveSpec, Element, Reduction};
use crate::pattern::check::Check;
use crate::pattern::joint;

/// Checks an experiment of collective operations.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    joint::experiment(check)?;
    if check.0.carrier.is_verbs() {
        over_verbs(check)?;
    }
    calls(check)?;
    let reduces = check.0.axes.get(axis::COLLECTIVE).into_iter().find(|of| Collective::reduces(*of));
    let (Some(operation), elements) = (reduces, check.0.axes.get(axis::DATATYPE)) else { return Ok(()) };
    let sizes = check.0.axes.get(axis::SIZE_BYTES);
    for element in elements {
        let bytes = element.bytes() as u64;
        if let Some(size) = sizes.iter().find(|size| !size.is_multiple_of(bytes)) {
            let what = format!("{} of {size} B", operation.word());
            let why = format!("a vector of {} has a multiple of {bytes} B", element.word());
            return check.refuse("size_bytes", &what, &why);
        }
    }
    Ok(())
}

/// Refuses ways of calling that an operation does not have.
fn calls(check: &Check<'_>) -> Result<(), Error> {
    let calls = check.0.axes.get(axis::COLLECTIVE_CALL);
    let apart = calls.iter().find(|call| call.is_nonblocking());
    let mut operations = check.0.axes.get(axis::COLLECTIVE).into_iter();
    let own = operations.find(|operation| operation.has_blocks_of_their_own());
    if let (Some(call), Some(operation)) = (apart, own) {
        let what = format!("{} {}", call.word(), operation.word());
        let why = "only operations with equal blocks can be called so: give collective_call blocking";
        return check.refuse("collective_call", &what, why);
    }
    let equal = check.0.axes.get(axis::COLLECTIVE).into_iter().find(|of| !of.has_blocks_of_their_own());
    if let (Some(operation), true) = (equal, check.0.axes.get(axis::BLOCKS).contains(&Blocks::Rising)) {
        let what = format!("rising blocks of {}", operation.word());
        let why = "only allgatherv, alltoallv, gatherv and scatterv take a length for each block";
        return check.refuse("blocks", &what, why);
    }
    let tests = check.0.axes.numbers(axis::MPI_TESTS.row).find(|tests| *tests > 0);
    let other = calls.iter().find(|call| **call != CollectiveCall::Overlapped);
    if let (Some(tests), Some(other)) = (tests, other) {
        let what = format!("{tests} mpi_tests with the collective_call {}", other.word());
        return check.refuse(
            "mpi_tests",
            &what,
            "they interrupt a computation: give collective_call overlapped",
        );
    }
    Ok(())
}

/// Refuses combinations that ranks cannot carry out over verbs.
fn over_verbs(check: &Check<'_>) -> Result<(), Error> {
    let axes = &check.0.axes;
    for operation in axes.get(axis::COLLECTIVE) {
        for algorithm in axes.get(axis::ALGORITHM) {
            for ways in axes.get(axis::WAYS) {
                for ranks in axes.get(axis::RANKS) {
                    let spec = CollectiveSpec {
                        operation,
                        call: CollectiveCall::Blocking,
                        blocks: Blocks::Equal,
                        size_bytes: 0,
                        element: Element::Float,
                        reduction: Reduction::Sum,
                        algorithm,
                        ways,
                    };
                    if let Some(refusal) = spec.over_verbs(ranks) {
                        return check.refuse(refusal.key, &refusal.what, refusal.why);
                    }
                }
            }
        }
    }
    Ok(())
}
