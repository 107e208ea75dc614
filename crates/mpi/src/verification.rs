//! Verifies the constants of an ABI by calls with known results on `MPI_COMM_SELF`. A wrong
//! constant causes an error message, not a crash.

use crate::abi::{Datatype, Op};
use crate::error::{Error, Result};
use crate::functions::Call;
use crate::library::Library;
use crate::status::RawStatus;

/// The value of the bytes behind the status, which must not change.
const GUARD: u8 = 0xa5;
/// A tag that differs from every offset and length.
const TAG: i32 = 4711;

/// Verifies `library`, whose MPI is initialised.
///
/// # Errors
/// The first result that differs.
pub(crate) fn run(library: &Library) -> Result<()> {
    errors_return(library)?;
    type_sizes(library)?;
    sendrecv(library)?;
    reductions(library)
}

/// The error for a result `got` of a library.
fn differs(
    library: &Library,
    what: &str,
    got: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Error::Constant {
        version: library.version().to_owned(),
        abi: library.abi(),
        what: format!("{what} is {got}, and should be {expected}"),
    }
}

/// Sets the error handler of `MPI_COMM_SELF` to return errors. A call with an invalid rank then
/// returns one.
fn errors_return(library: &Library) -> Result<()> {
    let handles = &library.constants.handles;
    let functions = &library.functions;
    // SAFETY: both handles are valid if the ABI is right, and this call verifies that.
    let code = unsafe { (functions.comm_set_errhandler)(handles.comm_self, handles.errors_return) };
    library.check(Call::Comm_set_errhandler, None, code)
}

/// Checks the sizes of the datatypes.
fn type_sizes(library: &Library) -> Result<()> {
    for datatype in Datatype::ALL {
        let mut bytes = -1;
        // SAFETY: the number is writable.
        let code =
            unsafe { (library.functions.type_size)(library.constants.datatype(datatype), &raw mut bytes) };
        library.check(Call::Type_size, None, code)?;
        if usize::try_from(bytes) != Ok(datatype.bytes()) {
            let what = format!("MPI_Type_size of {datatype:?}");
            return Err(differs(library, &what, bytes, datatype.bytes()));
        }
    }
    Ok(())
}

/// Checks that a message to this rank itself arrives, and that its status has the layout of the
/// ABI.
fn sendrecv(library: &Library) -> Result<()> {
    let constants = &library.constants;
    let handles = &constants.handles;
    let sent = *b"rdmasco";
    for (source, tag) in [(0, TAG), (constants.numbers.any_source, constants.numbers.any_tag)] {
        let mut received = [0; 16];
        let mut status = [RawStatus::filled(GUARD); 2];
        // SAFETY: the buffers have the bytes, and the status has more space than any ABI needs.
        let code = unsafe {
            (library.functions.sendrecv)(
                sent.as_ptr().cast(),
                sent.len() as i32,
                handles.byte,
                0,
                TAG,
                received.as_mut_ptr().cast(),
                received.len() as i32,
                handles.byte,
                source,
                tag,
                handles.comm_self,
                status.as_mut_ptr().cast(),
            )
        };
        library.check(Call::Sendrecv, Some(0), code)?;
        if received[..sent.len()] != sent {
            return Err(differs(library, "a message to the rank itself", "damaged", "what was sent"));
        }
        let found = status[0].read(library);
        for (what, got, expected) in [
            ("MPI_SOURCE of the status", i64::from(found.source), 0),
            ("MPI_TAG of the status", i64::from(found.tag), i64::from(TAG)),
            ("the count of the status", found.bytes as i64, sent.len() as i64),
        ] {
            if got != expected {
                return Err(differs(library, what, got, expected));
            }
        }
        let size = constants.numbers.status_bytes as usize;
        if status.iter().flat_map(RawStatus::bytes).skip(size).any(|byte| byte != GUARD) {
            return Err(differs(library, "MPI_Status", "longer", format!("{size} B")));
        }
    }
    Ok(())
}

/// Checks that each operation leaves the only rank's element unchanged.
fn reductions(library: &Library) -> Result<()> {
    let constants = &library.constants;
    for datatype in Datatype::ALL.into_iter().filter(|datatype| *datatype != Datatype::Byte) {
        for op in Op::ALL {
            let sent = one(datatype);
            let mut received = 0_u64.to_ne_bytes();
            let op_handle = constants.op(op);
            let handle = constants.datatype(datatype);
            let comm_self = constants.handles.comm_self;
            let address = received.as_mut_ptr().cast();
            // SAFETY: both buffers have an element.
            let code = unsafe {
                (library.functions.allreduce)(
                    (&raw const sent).cast(),
                    address,
                    1,
                    handle,
                    op_handle,
                    comm_self,
                )
            };
            library.check(Call::Allreduce, None, code)?;
            if received != sent.to_ne_bytes() {
                let what = format!("MPI_Allreduce of {datatype:?} by {op:?} on one rank");
                return Err(differs(library, &what, "changed", "the element itself"));
            }
        }
    }
    Ok(())
}

/// The number 1 of a datatype, in the first bytes of a word.
fn one(datatype: Datatype) -> u64 {
    let mut word = [0; 8];
    let bytes = datatype.bytes();
    match datatype {
        Datatype::Byte => word[0] = 1,
        Datatype::Double => word.copy_from_slice(&1_f64.to_ne_bytes()),
        Datatype::Float => word[..bytes].copy_from_slice(&1_f32.to_ne_bytes()),
        Datatype::Int32 => word[..bytes].copy_from_slice(&1_i32.to_ne_bytes()),
        Datatype::Uint64 => word.copy_from_slice(&1_u64.to_ne_bytes()),
    }
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests;
