//! An initialised MPI.

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::Numbers;
use crate::communicator::{Communicator, Inner};
use crate::error::{Error, Result};
use crate::functions::Call;
use crate::library::{Library, text_of};
use crate::status::RawStatus;
use crate::verification;

/// `MPI_MAX_PROCESSOR_NAME` of Open MPI and of the standard ABI; MPICH needs 128.
const NAME_BYTES: usize = 256;

/// Whether `MPI_Init_thread` was called. It may be called once in a process.
static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Which threads may call MPI.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// The thread that initialised MPI.
    Funneled,
    /// One thread at a time.
    Serialized,
    /// All threads.
    Multiple,
}

impl ThreadLevel {
    const ALL: [Self; 4] = [Self::Single, Self::Funneled, Self::Serialized, Self::Multiple];

    /// The level's name in C.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "MPI_THREAD_SINGLE",
            Self::Funneled => "MPI_THREAD_FUNNELED",
            Self::Serialized => "MPI_THREAD_SERIALIZED",
            Self::Multiple => "MPI_THREAD_MULTIPLE",
        }
    }

    /// The level's number.
    fn number(self, numbers: &Numbers) -> i32 {
        match self {
            Self::Single => numbers.thread_single,
            Self::Funneled => numbers.thread_funneled,
            Self::Serialized => numbers.thread_serialized,
            Self::Multiple => numbers.thread_multiple,
        }
    }
}

impl fmt::Display for ThreadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// MPI of this process, initialised. Dropping it without [`finalize`](Self::finalize) does nothing.
pub struct World {
    communicator: Communicator,
    thread_level: ThreadLevel,
}

impl World {
    /// `MPI_Init_thread` with the `required` level, `MPI_ERRORS_RETURN`, and then calls on
    /// `MPI_COMM_SELF` that verify the constants of the library's ABI. All ranks call it.
    ///
    /// [`ThreadLevel::Funneled`] is right for a process with several threads, of which this one
    /// calls MPI. It costs time: Open MPI 4.1.4 sends 8 B in 152 ns with it and in 101 ns with
    /// [`ThreadLevel::Single`], which is what `MPI_Init`, and so `osu_latency`, asks for (shared
    /// memory, medians of 6 launches).
    ///
    /// # Errors
    /// Errors of MPI, a second initialisation, a library that provides a lower level, constants
    /// that differ from the library's. If MPI cannot be initialised, MPI itself ends the process.
    pub fn init(library: &'static Library, required: ThreadLevel) -> Result<Self> {
        if IS_INITIALIZED.swap(true, Ordering::Relaxed) {
            return Err(Error::AlreadyInitialized);
        }
        let constants = &library.constants;
        let functions = &library.functions;
        let numbers = &constants.numbers;
        let null = std::ptr::null_mut();
        let mut provided = -1;
        crate::waiting::enter(Call::Init_thread, None);
        // SAFETY: MPI accepts null pointers for the arguments, and the level is writable.
        let code =
            unsafe { (functions.init_thread)(null, null, required.number(numbers), &raw mut provided) };
        crate::waiting::leave();
        library.check(Call::Init_thread, None, code)?;
        let level = ThreadLevel::ALL.into_iter().find(|level| level.number(numbers) == provided);
        let Some(thread_level) = level.filter(|level| *level >= required) else {
            let version = library.version().to_owned();
            return Err(Error::ThreadLevel { version, provided, required: required.name() });
        };
        verification::run(library)?;
        for communicator in [constants.handles.comm_world, constants.handles.comm_self] {
            // SAFETY: both handles are valid.
            let code =
                unsafe { (functions.comm_set_errhandler)(communicator, constants.handles.errors_return) };
            library.check(Call::Comm_set_errhandler, None, code)?;
        }
        let world = Inner::new(library, constants.handles.comm_world, false, Rc::new(()))?;
        Ok(Self { communicator: Communicator(Rc::new(world)), thread_level })
    }

    /// This process's rank in `MPI_COMM_WORLD`.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.communicator.rank()
    }

    /// Number of ranks of `MPI_COMM_WORLD`.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.communicator.size()
    }

    /// The level that the library provides, at least the required one.
    #[must_use]
    pub fn thread_level(&self) -> ThreadLevel {
        self.thread_level
    }

    /// `MPI_COMM_WORLD`.
    #[must_use]
    pub fn communicator(&self) -> Communicator {
        self.communicator.clone()
    }

    /// Lets the library progress operations that this rank has begun, such as a message that waits
    /// for buffer space: it progresses only within its functions. (`MPI_Iprobe` of
    /// `MPI_COMM_WORLD`.)
    ///
    /// # Errors
    /// Errors of MPI.
    pub fn progress(&self) -> Result<()> {
        let inner = &*self.communicator.0;
        let numbers = &inner.library.constants.numbers;
        let mut is_there = 0;
        let mut status = RawStatus::new();
        // SAFETY: the handle is a communicator, and flag and status are writable.
        let code = unsafe {
            (inner.functions.iprobe)(
                numbers.any_source,
                numbers.any_tag,
                inner.handle,
                &raw mut is_there,
                status.out(),
            )
        };
        inner.library.check(Call::Iprobe, None, code)
    }

    /// `MPI_Get_processor_name`: mostly the host's name.
    ///
    /// # Errors
    /// Errors of MPI.
    pub fn processor_name(&self) -> Result<String> {
        let inner = &*self.communicator.0;
        let mut text = [0; NAME_BYTES + 1];
        let mut length = 0;
        // SAFETY: the buffer has the size that the standard prescribes.
        let code = unsafe { (inner.functions.get_processor_name)(text.as_mut_ptr().cast(), &raw mut length) };
        inner.library.check(Call::Get_processor_name, None, code)?;
        Ok(text_of(&text))
    }

    /// `MPI_Finalize`. All ranks call it.
    ///
    /// # Errors
    /// Errors of MPI; a communicator, slots, a collective or a window that is still in use.
    pub fn finalize(self) -> Result<()> {
        let inner = &self.communicator.0;
        if Rc::strong_count(inner) > 1 || Rc::strong_count(&inner.use_count) > 1 {
            let reason = "a communicator, slots, a collective or a window is in use; drop it first";
            return Err(Error::State { call: Call::Finalize.name(), reason });
        }
        // SAFETY: nothing else holds a communicator, so nothing calls MPI after this.
        inner.blocking(Call::Finalize, None, |functions| unsafe { (functions.finalize)() })
    }
}
