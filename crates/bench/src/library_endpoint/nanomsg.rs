//! nanomsg (libnanomsg 1.x; nn_socket(3), nn_send(3), nn_getsockopt(3)).

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::time::Duration;

use verbs::library::Library;

use super::errors::Errors;
use super::socket::{Messages, QUEUE_BYTES, Role, readable};

struct Functions {
    socket: unsafe extern "C" fn(c_int, c_int) -> c_int,
    close: unsafe extern "C" fn(c_int) -> c_int,
    setsockopt: unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, usize) -> c_int,
    getsockopt: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    bind: unsafe extern "C" fn(c_int, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(c_int, *const c_char) -> c_int,
    send: unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> c_int,
    recv: unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> c_int,
    errors: Errors,
}

fn functions() -> Result<&'static Functions, String> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    FUNCTIONS.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Functions, String> {
    let library = Library::open("libnanomsg.so.5", "nanomsg", "libnanomsg5")?;
    // SAFETY: the types are those of the library's headers, which its soname keeps.
    Ok(unsafe {
        Functions {
            socket: library.function(c"nn_socket")?,
            close: library.function(c"nn_close")?,
            setsockopt: library.function(c"nn_setsockopt")?,
            getsockopt: library.function(c"nn_getsockopt")?,
            bind: library.function(c"nn_bind")?,
            connect: library.function(c"nn_connect")?,
            send: library.function(c"nn_send")?,
            recv: library.function(c"nn_recv")?,
            errors: Errors::of(&library, [c"nn_errno", c"nn_strerror"])?,
        }
    })
}

/// A socket.
pub(super) struct Nanomsg {
    functions: &'static Functions,
    socket: c_int,
    /// Readable where a message has come; absent where none does.
    came: Option<c_int>,
}

const AF_SP: c_int = 1;
const SOL_SOCKET: c_int = 0;
const SNDBUF: c_int = 2;
const RCVBUF: c_int = 3;
const RCVFD: c_int = 11;
const SUB: c_int = 33;
const SUB_SUBSCRIBE: c_int = 1;
const TCP: c_int = -3;
const TCP_NODELAY: c_int = 1;
const DONTWAIT: c_int = 1;

impl Nanomsg {
    pub(super) fn open(role: Role) -> Result<Self, String> {
        let functions = functions()?;
        let protocol = match role {
            Role::Pair => 16,
            Role::Publisher => 32,
            Role::Subscriber => SUB,
        };
        // SAFETY: it has no preconditions.
        let socket = unsafe { (functions.socket)(AF_SP, protocol) };
        let mut own = Self { functions, socket, came: None };
        if socket < 0 {
            return Err(functions.errors.reason());
        }
        // The other libraries do so unasked.
        own.set(TCP, TCP_NODELAY, &1_i32.to_ne_bytes())?;
        if role != Role::Subscriber {
            own.set(SOL_SOCKET, SNDBUF, &QUEUE_BYTES.to_ne_bytes())?;
        }
        if role == Role::Publisher {
            return Ok(own);
        }
        own.set(SOL_SOCKET, RCVBUF, &QUEUE_BYTES.to_ne_bytes())?;
        if role == Role::Subscriber {
            own.set(SUB, SUB_SUBSCRIBE, &[])?;
        }
        let (mut came, mut size): (c_int, usize) = (0, size_of::<c_int>());
        // SAFETY: the socket is open, and the number of that size writable.
        let got = unsafe {
            (functions.getsockopt)(socket, SOL_SOCKET, RCVFD, (&raw mut came).cast(), &raw mut size)
        };
        functions.errors.done(got)?;
        own.came = Some(came);
        Ok(own)
    }

    fn set(&self, level: c_int, option: c_int, value: &[u8]) -> Result<(), String> {
        // SAFETY: the socket is open, and the value readable.
        let set = unsafe {
            (self.functions.setsockopt)(self.socket, level, option, value.as_ptr().cast(), value.len())
        };
        self.functions.errors.done(set)
    }
}

impl Messages for Nanomsg {
    fn bind(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: the socket is open, and the text ends with a zero.
        self.functions.errors.done(unsafe { (self.functions.bind)(self.socket, url.as_ptr()) })
    }

    fn connect(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: as for bind.
        self.functions.errors.done(unsafe { (self.functions.connect)(self.socket, url.as_ptr()) })
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<bool, String> {
        // SAFETY: the socket is open, and the message readable; it is copied.
        let sent =
            unsafe { (self.functions.send)(self.socket, message.as_ptr().cast(), message.len(), DONTWAIT) };
        self.functions.errors.at_once(sent).map(|sent| sent.is_some())
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String> {
        // SAFETY: the socket is open, and the message writable.
        let came = unsafe {
            (self.functions.recv)(self.socket, message.as_mut_ptr().cast(), message.len(), DONTWAIT)
        };
        self.functions.errors.at_once(came)
    }

    fn wait(&mut self, limit: Duration) -> Result<(), String> {
        let Some(came) = self.came else { return Ok(()) };
        // SAFETY: the descriptor is the socket's, which is open.
        readable(unsafe { BorrowedFd::borrow_raw(came) }, limit)
    }

    /// It says none: the soname is what there is.
    fn version(&self) -> String {
        "nanomsg (libnanomsg.so.5)".to_owned()
    }
}

impl Drop for Nanomsg {
    fn drop(&mut self) {
        if self.socket >= 0 {
            // SAFETY: the socket is open, and used no more.
            unsafe { (self.functions.close)(self.socket) };
        }
    }
}
