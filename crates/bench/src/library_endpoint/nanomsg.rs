//! nanomsg (libnanomsg 1.x; nn_socket(3), nn_send(3), nn_getsockopt(3)).

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::errors::Errors;
use super::functions::functions;
use super::socket::{Messages, QUEUE_BYTES, Role, readable};

functions! {
    "libnanomsg.so.5", "nanomsg", "libnanomsg5";
    socket = c"nn_socket": fn(c_int, c_int) -> c_int,
    close = c"nn_close": fn(c_int) -> c_int,
    setsockopt = c"nn_setsockopt": fn(c_int, c_int, c_int, *const c_void, usize) -> c_int,
    getsockopt = c"nn_getsockopt": fn(c_int, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    bind = c"nn_bind": fn(c_int, *const c_char) -> c_int,
    connect = c"nn_connect": fn(c_int, *const c_char) -> c_int,
    send = c"nn_send": fn(c_int, *const c_void, usize, c_int) -> c_int,
    recv = c"nn_recv": fn(c_int, *mut c_void, usize, c_int) -> c_int,
    errno = c"nn_errno": fn() -> c_int,
    strerror = c"nn_strerror": fn(c_int) -> *const c_char,
}

/// A socket.
pub(super) struct Nanomsg {
    functions: &'static Functions,
    errors: Errors,
    socket: c_int,
    /// A descriptor that is readable when a message has arrived; `None` for a publisher.
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
        // SAFETY: nn_errno(3) and nn_strerror(3) behave as the POSIX functions.
        let errors = unsafe { Errors::new(functions.errno, functions.strerror) };
        let protocol = match role {
            Role::Pair => 16,
            Role::Publisher => 32,
            Role::Subscriber => SUB,
        };
        // SAFETY: it has no preconditions.
        let socket = unsafe { (functions.socket)(AF_SP, protocol) };
        let mut own = Self { functions, errors, socket, came: None };
        if socket < 0 {
            return Err(own.errors.reason());
        }
        // The other libraries set this by default.
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
        let mut came: c_int = 0;
        let mut size: usize = size_of::<c_int>();
        let value = (&raw mut came).cast();
        let get = functions.getsockopt;
        // SAFETY: the socket is open, and the number of that size writable.
        own.errors.done(unsafe { get(socket, SOL_SOCKET, RCVFD, value, &raw mut size) })?;
        own.came = Some(came);
        Ok(own)
    }

    fn set(&self, level: c_int, option: c_int, value: &[u8]) -> Result<(), String> {
        let set = self.functions.setsockopt;
        // SAFETY: the socket is open, and the value readable.
        self.errors.done(unsafe { set(self.socket, level, option, value.as_ptr().cast(), value.len()) })
    }
}

impl Messages for Nanomsg {
    fn bind(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: the socket is open, and the text ends with a zero.
        self.errors.done(unsafe { (self.functions.bind)(self.socket, url.as_ptr()) })
    }

    fn connect(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: as for bind.
        self.errors.done(unsafe { (self.functions.connect)(self.socket, url.as_ptr()) })
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<bool, String> {
        let send = self.functions.send;
        // SAFETY: the socket is open, and the message readable; it is copied.
        let sent = unsafe { send(self.socket, message.as_ptr().cast(), message.len(), DONTWAIT) };
        self.errors.at_once(sent).map(|sent| sent.is_some())
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String> {
        let recv = self.functions.recv;
        // SAFETY: the socket is open, and the message writable.
        self.errors
            .at_once(unsafe { recv(self.socket, message.as_mut_ptr().cast(), message.len(), DONTWAIT) })
    }

    fn wait(&mut self, limit: Duration) -> Result<(), String> {
        let Some(came) = self.came else { return Ok(()) };
        // SAFETY: the descriptor is the socket's, which is open.
        readable(unsafe { BorrowedFd::borrow_raw(came) }, limit)
    }

    /// nanomsg reports no version, so the soname stands in.
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
