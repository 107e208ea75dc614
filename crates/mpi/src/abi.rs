//! The constants of the three ABIs of MPI, as rows of a table.
//!
//! Sources: `mpi.h` of Open MPI 4.1.4 and of MPICH 4.0.2 (a test compiles C programs against both),
//! and `mpi.h` of mpi-forum/mpi-abi-stubs for the standard ABI (MPI 5.0, chapter 20).

use std::fmt;

/// The ABI of a library: the constants, the size of handles and the layout of `MPI_Status`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Abi {
    /// MPICH's ABI: MPICH, Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// Open MPI's ABI.
    OpenMpi,
    /// The standard ABI of MPI 5.
    Standard,
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
            Self::Standard => "MPI 5 standard",
        })
    }
}

/// The type of the elements that a reduction combines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Datatype {
    /// `MPI_BYTE`. MPI refuses `Sum`, `Max` and `Min` of bytes.
    Byte,
    /// `MPI_DOUBLE`.
    Double,
    /// `MPI_FLOAT`.
    Float,
    /// `MPI_INT32_T`.
    Int32,
    /// `MPI_UINT64_T`.
    Uint64,
}

impl Datatype {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Byte, Self::Double, Self::Float, Self::Int32, Self::Uint64];

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Float | Self::Int32 => 4,
            Self::Double | Self::Uint64 => 8,
        }
    }
}

/// How a reduction combines two elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Op {
    /// `MPI_MAX`.
    Max,
    /// `MPI_MIN`.
    Min,
    /// `MPI_SUM`.
    Sum,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Max, Self::Min, Self::Sum];
}

/// Defines the struct of a table with a member for each row, and the rows as they are written.
macro_rules! table {
    ($(#[$about:meta])* $table:ident: $type:ty, $row:ident {
        $($(#[$doc:meta])* $field:ident $c:literal: $($value:expr),+;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub(crate) struct $table {
            $($(#[$doc])* pub(crate) $field: $type,)+
        }

        impl $table {
            /// `(name in C, values)` of every row.
            const ROWS: &'static [(&'static str, $row)] = &[$(($c, ($($value),+))),+];

            /// Makes the table; `value` returns the value of a row.
            fn from_rows<E>(mut value: impl FnMut(&'static $row) -> Result<$type, E>) -> Result<Self, E> {
                let mut rows = Self::ROWS.iter().map(|(_, row)| row);
                Ok(Self { $($field: value(rows.next().expect("there is a row for each member"))?),+ })
            }
        }
    };
}

/// The value of a handle: the symbol that it is the address of (Open MPI), and its numbers (MPICH,
/// standard).
type HandleRow = (&'static str, usize, usize);
/// The values of a number: Open MPI, MPICH, standard.
type NumberRow = (i32, i32, i32);

table! {
    /// Predefined handles, as they are passed by value.
    Handles: usize, HandleRow {
        comm_self "MPI_COMM_SELF": "ompi_mpi_comm_self", 0x4400_0001, 0x102;
        comm_world "MPI_COMM_WORLD": "ompi_mpi_comm_world", 0x4400_0000, 0x101;
        byte "MPI_BYTE": "ompi_mpi_byte", 0x4c00_010d, 0x247;
        double "MPI_DOUBLE": "ompi_mpi_double", 0x4c00_080b, 0x214;
        float "MPI_FLOAT": "ompi_mpi_float", 0x4c00_040a, 0x210;
        int32 "MPI_INT32_T": "ompi_mpi_int32_t", 0x4c00_0439, 0x250;
        uint64 "MPI_UINT64_T": "ompi_mpi_uint64_t", 0x4c00_083e, 0x259;
        max "MPI_MAX": "ompi_mpi_op_max", 0x5800_0001, 0x23;
        min "MPI_MIN": "ompi_mpi_op_min", 0x5800_0002, 0x22;
        sum "MPI_SUM": "ompi_mpi_op_sum", 0x5800_0003, 0x21;
        errors_return "MPI_ERRORS_RETURN": "ompi_mpi_errors_return", 0x5400_0001, 0x143;
        info_null "MPI_INFO_NULL": "ompi_mpi_info_null", 0x1c00_0000, 0x130;
        request_null "MPI_REQUEST_NULL": "ompi_request_null", 0x2c00_0000, 0x180;
        win_null "MPI_WIN_NULL": "ompi_mpi_win_null", 0x2000_0000, 0x110;
    }
}

table! {
    /// Predefined numbers, sizes and offsets.
    Numbers: i32, NumberRow {
        any_source "MPI_ANY_SOURCE": -1, -2, -1;
        any_tag "MPI_ANY_TAG": -1, -1, -2;
        thread_single "MPI_THREAD_SINGLE": 0, 0, 0;
        thread_funneled "MPI_THREAD_FUNNELED": 1, 1, 1024;
        thread_serialized "MPI_THREAD_SERIALIZED": 2, 2, 2048;
        thread_multiple "MPI_THREAD_MULTIPLE": 3, 3, 4096;
        lock_shared "MPI_LOCK_SHARED": 2, 235, 302;
        /// The error of a call whose statuses tell which request has failed, and the error in the
        /// status of a request that has neither failed nor completed.
        err_in_status "MPI_ERR_IN_STATUS": 18, 17, 19;
        err_pending "MPI_ERR_PENDING": 19, 18, 18;
        /// The address that stands for `MPI_STATUS_IGNORE`.
        status_ignore "(int)(long)MPI_STATUS_IGNORE": 0, 1, 0;
        /// The address that stands for `MPI_STATUSES_IGNORE`.
        statuses_ignore "(int)(long)MPI_STATUSES_IGNORE": 0, 1, 0;
        status_bytes "(int)sizeof(MPI_Status)": 24, 20, 32;
        status_source "(int)offsetof(MPI_Status, MPI_SOURCE)": 0, 8, 0;
        status_tag "(int)offsetof(MPI_Status, MPI_TAG)": 4, 12, 4;
        status_error "(int)offsetof(MPI_Status, MPI_ERROR)": 8, 16, 8;
        /// Bytes of a handle in memory.
        handle_bytes "(int)sizeof(MPI_Request)": 8, 4, 8;
    }
}

/// The constants of a library.
#[derive(Clone, Debug)]
pub(crate) struct Constants {
    pub(crate) handles: Handles,
    pub(crate) numbers: Numbers,
}

impl Constants {
    /// Returns the constants of an ABI. `address` returns the address of a data symbol.
    ///
    /// # Errors
    /// The errors of `address`.
    pub(crate) fn of<E>(
        abi: Abi,
        mut address: impl FnMut(&'static str) -> Result<usize, E>,
    ) -> Result<Self, E> {
        let handles = Handles::from_rows(|&(symbol, mpich, standard)| match abi {
            Abi::OpenMpi => address(symbol),
            Abi::Mpich => Ok(mpich),
            Abi::Standard => Ok(standard),
        })?;
        let numbers = Numbers::from_rows(|&(open_mpi, mpich, standard)| match abi {
            Abi::OpenMpi => Ok(open_mpi),
            Abi::Mpich => Ok(mpich),
            Abi::Standard => Ok(standard),
        })?;
        Ok(Self { handles, numbers })
    }

    /// The handle of a datatype.
    #[inline]
    pub(crate) fn datatype(&self, datatype: Datatype) -> usize {
        match datatype {
            Datatype::Byte => self.handles.byte,
            Datatype::Double => self.handles.double,
            Datatype::Float => self.handles.float,
            Datatype::Int32 => self.handles.int32,
            Datatype::Uint64 => self.handles.uint64,
        }
    }

    /// The handle of an operation.
    #[inline]
    pub(crate) fn op(&self, op: Op) -> usize {
        match op {
            Op::Max => self.handles.max,
            Op::Min => self.handles.min,
            Op::Sum => self.handles.sum,
        }
    }

    /// `MPI_STATUS_IGNORE`.
    #[inline]
    pub(crate) fn status_ignore(&self) -> *mut libc::c_void {
        std::ptr::without_provenance_mut(self.numbers.status_ignore as usize)
    }

    /// `MPI_STATUSES_IGNORE`.
    #[inline]
    pub(crate) fn statuses_ignore(&self) -> *mut libc::c_void {
        std::ptr::without_provenance_mut(self.numbers.statuses_ignore as usize)
    }
}

#[cfg(test)]
mod tests;
