//! The functions of MPI that rdmascope calls, as a table.

use std::ffi::{c_char, c_int, c_void};

/// An opaque handle, passed by value.
///
/// MPICH's handles are `int`, those of other libraries are pointers. On x86-64 and AArch64 both are
/// passed as a whole register or stack slot, and a callee that expects an `int` reads the lower
/// half. This is a property of these two platforms, not of Rust or C.
pub(crate) type Handle = usize;
type Address = *const c_void;
type AddressMut = *mut c_void;
/// `MPI_Aint`.
type Aint = isize;
/// Where a function stores a handle; of 4 or 8 bytes (`handles`).
type Out = *mut c_void;
/// `MPI_Status`, or an array of them.
type StatusOut = *mut c_void;
type Ints = *const c_int;

/// Defines [`Functions`] and [`Call`] from lines `field = Name(types)`: the function `MPI_Name`,
/// which returns an error code.
macro_rules! functions {
    (
        required { $($field:ident = $call:ident($($of:ty),* $(,)?);)+ }
        optional { $($option:ident = $optional:ident($($takes:ty),* $(,)?);)+ }
    ) => {
        /// The functions of an open library.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($of),*) -> c_int,)+
            $(pub(crate) $option: Option<unsafe extern "C" fn($($takes),*) -> c_int>,)+
        }

        /// Which function is called.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[expect(non_camel_case_types, reason = "the names are those of MPI's functions")]
        pub(crate) enum Call {
            $($call,)+
            $($optional,)+
        }

        impl Call {
            const ALL: &'static [Self] = &[$(Self::$call,)+ $(Self::$optional,)+];

            /// The function's name in C.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$call => concat!("MPI_", stringify!($call)),)+
                    $(Self::$optional => concat!("MPI_", stringify!($optional)),)+
                }
            }

            /// Returns the function with a number, which is its index in the table.
            pub(crate) fn from_number(number: usize) -> Option<Self> {
                Self::ALL.get(number).copied()
            }
        }

        impl Functions {
            /// Looks up the functions in `library`.
            ///
            /// # Errors
            /// The first required function that the library does not have.
            ///
            /// # Safety
            /// `library` is an MPI library.
            pub(crate) unsafe fn of(library: &libloading::os::unix::Library) -> Result<Self, Call> {
                // SAFETY: the caller guarantees that this is an MPI library, and the standard
                // prescribes the types.
                unsafe {
                    Ok(Self {
                        $($field: *library
                            .get(concat!("MPI_", stringify!($call), "\0").as_bytes())
                            .map_err(|_| Call::$call)?,)+
                        $($option: library
                            .get(concat!("MPI_", stringify!($optional), "\0").as_bytes())
                            .ok()
                            .map(|symbol| *symbol),)+
                    })
                }
            }
        }
    };
}

functions! {
    required {
        allgather = Allgather(Address, c_int, Handle, AddressMut, c_int, Handle, Handle);
        allreduce = Allreduce(Address, AddressMut, c_int, Handle, Handle, Handle);
        alltoall = Alltoall(Address, c_int, Handle, AddressMut, c_int, Handle, Handle);
        barrier = Barrier(Handle);
        bcast = Bcast(AddressMut, c_int, Handle, c_int, Handle);
        cancel = Cancel(Out);
        comm_dup = Comm_dup(Handle, Out);
        comm_free = Comm_free(Out);
        comm_rank = Comm_rank(Handle, *mut c_int);
        comm_set_errhandler = Comm_set_errhandler(Handle, Handle);
        comm_size = Comm_size(Handle, *mut c_int);
        comm_split = Comm_split(Handle, c_int, c_int, Out);
        error_string = Error_string(c_int, *mut c_char, *mut c_int);
        finalize = Finalize();
        gather = Gather(Address, c_int, Handle, AddressMut, c_int, Handle, c_int, Handle);
        get_count = Get_count(Address, Handle, *mut c_int);
        get_library_version = Get_library_version(*mut c_char, *mut c_int);
        get_processor_name = Get_processor_name(*mut c_char, *mut c_int);
        init_thread = Init_thread(AddressMut, AddressMut, c_int, *mut c_int);
        iprobe = Iprobe(c_int, c_int, Handle, *mut c_int, StatusOut);
        irecv = Irecv(AddressMut, c_int, Handle, c_int, c_int, Handle, Out);
        isend = Isend(Address, c_int, Handle, c_int, c_int, Handle, Out);
        recv = Recv(AddressMut, c_int, Handle, c_int, c_int, Handle, StatusOut);
        recv_init = Recv_init(AddressMut, c_int, Handle, c_int, c_int, Handle, Out);
        reduce = Reduce(Address, AddressMut, c_int, Handle, Handle, c_int, Handle);
        request_free = Request_free(Out);
        scatter = Scatter(Address, c_int, Handle, AddressMut, c_int, Handle, c_int, Handle);
        send = Send(Address, c_int, Handle, c_int, c_int, Handle);
        send_init = Send_init(Address, c_int, Handle, c_int, c_int, Handle, Out);
        sendrecv = Sendrecv(
            Address, c_int, Handle, c_int, c_int, AddressMut, c_int, Handle, c_int, c_int, Handle, StatusOut,
        );
        ssend = Ssend(Address, c_int, Handle, c_int, c_int, Handle);
        start = Start(Out);
        startall = Startall(c_int, Out);
        test = Test(Out, *mut c_int, StatusOut);
        testall = Testall(c_int, Out, *mut c_int, StatusOut);
        type_size = Type_size(Handle, *mut c_int);
        wait = Wait(Out, StatusOut);
        waitall = Waitall(c_int, Out, StatusOut);
    }
    optional {
        allgatherv = Allgatherv(Address, c_int, Handle, AddressMut, Ints, Ints, Handle, Handle);
        alltoallv = Alltoallv(Address, Ints, Ints, Handle, AddressMut, Ints, Ints, Handle, Handle);
        cart_create = Cart_create(Handle, c_int, Ints, Ints, c_int, Out);
        gatherv = Gatherv(Address, c_int, Handle, AddressMut, Ints, Ints, Handle, c_int, Handle);
        get = Get(AddressMut, c_int, Handle, c_int, Aint, c_int, Handle, Handle);
        iallgather = Iallgather(Address, c_int, Handle, AddressMut, c_int, Handle, Handle, Out);
        iallreduce = Iallreduce(Address, AddressMut, c_int, Handle, Handle, Handle, Out);
        ialltoall = Ialltoall(Address, c_int, Handle, AddressMut, c_int, Handle, Handle, Out);
        ibarrier = Ibarrier(Handle, Out);
        ibcast = Ibcast(AddressMut, c_int, Handle, c_int, Handle, Out);
        igather = Igather(Address, c_int, Handle, AddressMut, c_int, Handle, c_int, Handle, Out);
        ireduce = Ireduce(Address, AddressMut, c_int, Handle, Handle, c_int, Handle, Out);
        ireduce_scatter = Ireduce_scatter(Address, AddressMut, Ints, Handle, Handle, Handle, Out);
        ireduce_scatter_block = Ireduce_scatter_block(
            Address, AddressMut, c_int, Handle, Handle, Handle, Out,
        );
        iscatter = Iscatter(Address, c_int, Handle, AddressMut, c_int, Handle, c_int, Handle, Out);
        neighbor_alltoall = Neighbor_alltoall(Address, c_int, Handle, AddressMut, c_int, Handle, Handle);
        put = Put(Address, c_int, Handle, c_int, Aint, c_int, Handle, Handle);
        reduce_scatter = Reduce_scatter(Address, AddressMut, Ints, Handle, Handle, Handle);
        reduce_scatter_block = Reduce_scatter_block(Address, AddressMut, c_int, Handle, Handle, Handle);
        scatterv = Scatterv(Address, Ints, Ints, Handle, AddressMut, c_int, Handle, c_int, Handle);
        win_allocate = Win_allocate(Aint, c_int, Handle, Handle, AddressMut, Out);
        win_fence = Win_fence(c_int, Handle);
        win_flush = Win_flush(c_int, Handle);
        win_flush_all = Win_flush_all(Handle);
        win_flush_local = Win_flush_local(c_int, Handle);
        win_free = Win_free(Out);
        win_lock = Win_lock(c_int, c_int, c_int, Handle);
        win_lock_all = Win_lock_all(c_int, Handle);
        win_set_errhandler = Win_set_errhandler(Handle, Handle);
        win_sync = Win_sync(Handle);
        win_unlock = Win_unlock(c_int, Handle);
        win_unlock_all = Win_unlock_all(Handle);
    }
}
