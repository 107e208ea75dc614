//! ZeroMQ (libzmq; zmq_socket(3), zmq_send(3), zmq_poll(3)).

use std::ffi::{CString, c_char, c_int, c_long, c_short, c_void};
use std::time::Duration;

use super::errors::Errors;
use super::functions::functions;
use super::socket::{Messages, QUEUE, Role};

/// `zmq_pollitem_t`.
#[repr(C)]
struct PollItem {
    socket: *mut c_void,
    fd: c_int,
    events: c_short,
    revents: c_short,
}

functions! {
    "libzmq.so.5", "ZeroMQ", "libzmq5";
    ctx_new = c"zmq_ctx_new": fn() -> *mut c_void,
    ctx_term = c"zmq_ctx_term": fn(*mut c_void) -> c_int,
    socket = c"zmq_socket": fn(*mut c_void, c_int) -> *mut c_void,
    close = c"zmq_close": fn(*mut c_void) -> c_int,
    setsockopt = c"zmq_setsockopt": fn(*mut c_void, c_int, *const c_void, usize) -> c_int,
    bind = c"zmq_bind": fn(*mut c_void, *const c_char) -> c_int,
    connect = c"zmq_connect": fn(*mut c_void, *const c_char) -> c_int,
    send = c"zmq_send": fn(*mut c_void, *const c_void, usize, c_int) -> c_int,
    recv = c"zmq_recv": fn(*mut c_void, *mut c_void, usize, c_int) -> c_int,
    poll = c"zmq_poll": fn(*mut PollItem, c_int, c_long) -> c_int,
    version = c"zmq_version": fn(*mut c_int, *mut c_int, *mut c_int),
    errno = c"zmq_errno": fn() -> c_int,
    strerror = c"zmq_strerror": fn(c_int) -> *const c_char,
}

/// A socket with its own context.
pub(super) struct Zeromq {
    functions: &'static Functions,
    errors: Errors,
    context: *mut c_void,
    socket: *mut c_void,
}

// SAFETY: a socket may move to another thread across a full fence, which moving the value provides
// (zmq_socket(3)).
unsafe impl Send for Zeromq {}

const SUBSCRIBE: c_int = 6;
const LINGER: c_int = 17;
const SNDHWM: c_int = 23;
const RCVHWM: c_int = 24;
const XPUB_NODROP: c_int = 69;
const DONTWAIT: c_int = 1;
const POLLIN: c_short = 1;

impl Zeromq {
    pub(super) fn open(role: Role) -> Result<Self, String> {
        let functions = functions()?;
        // SAFETY: zmq_errno(3) and zmq_strerror(3) behave as the POSIX functions.
        let errors = unsafe { Errors::new(functions.errno, functions.strerror) };
        // SAFETY: it has no preconditions.
        let context = unsafe { (functions.ctx_new)() };
        let kind = match role {
            Role::Pair => 0,
            Role::Publisher => 1,
            Role::Subscriber => 2,
        };
        // SAFETY: the context is alive, if there is one.
        let socket = if context.is_null() { context } else { unsafe { (functions.socket)(context, kind) } };
        let own = Self { functions, errors, context, socket };
        if own.socket.is_null() {
            return Err(own.errors.reason());
        }
        for (option, value) in [(LINGER, 0), (SNDHWM, QUEUE), (RCVHWM, QUEUE)] {
            own.set(option, &value.to_ne_bytes())?;
        }
        match role {
            Role::Pair => {}
            // A message that finds no room is refused, and not silently dropped.
            Role::Publisher => own.set(XPUB_NODROP, &1_i32.to_ne_bytes())?,
            Role::Subscriber => own.set(SUBSCRIBE, &[])?,
        }
        Ok(own)
    }

    fn set(&self, option: c_int, value: &[u8]) -> Result<(), String> {
        let set = self.functions.setsockopt;
        // SAFETY: the socket is open, and the value is readable.
        self.errors.done(unsafe { set(self.socket, option, value.as_ptr().cast(), value.len()) })
    }
}

impl Messages for Zeromq {
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
        let mut item = PollItem { socket: self.socket, fd: 0, events: POLLIN, revents: 0 };
        let limit_ms = c_long::try_from(limit.as_millis()).unwrap_or(c_long::MAX);
        // SAFETY: there is one item, it is writable, and its socket is open.
        let ready = unsafe { (self.functions.poll)(&raw mut item, 1, limit_ms) };
        self.errors.at_once(ready).map(drop)
    }

    fn version(&self) -> String {
        let mut major = 0;
        let mut minor = 0;
        let mut patch = 0;
        // SAFETY: the numbers are writable.
        unsafe { (self.functions.version)(&raw mut major, &raw mut minor, &raw mut patch) };
        format!("ZeroMQ {major}.{minor}.{patch}")
    }
}

impl Drop for Zeromq {
    fn drop(&mut self) {
        // SAFETY: the socket and the context are alive if they exist, and are not used again;
        // nothing lingers, so this returns.
        unsafe {
            if !self.socket.is_null() {
                (self.functions.close)(self.socket);
            }
            if !self.context.is_null() {
                (self.functions.ctx_term)(self.context);
            }
        }
    }
}
