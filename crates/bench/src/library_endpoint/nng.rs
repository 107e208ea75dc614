//! NNG (libnng 1.x; nng_pair_open(3), nng_send(3), nng_recv(3), nng_options(5)).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::errors::text;
use super::functions::functions;
use super::socket::{Messages, QUEUE, Role, readable};

/// `nng_socket`, and every other handle of NNG: a number in a structure.
#[derive(Clone, Copy)]
#[repr(C)]
struct Handle(u32);

functions! {
    "libnng.so.1", "NNG", "libnng1";
    pair_open = c"nng_pair0_open": fn(*mut Handle) -> c_int,
    pub_open = c"nng_pub0_open": fn(*mut Handle) -> c_int,
    sub_open = c"nng_sub0_open": fn(*mut Handle) -> c_int,
    close = c"nng_close": fn(Handle) -> c_int,
    listen = c"nng_listen": fn(Handle, *const c_char, *mut Handle, c_int) -> c_int,
    dial = c"nng_dial": fn(Handle, *const c_char, *mut Handle, c_int) -> c_int,
    send = c"nng_send": fn(Handle, *const c_void, usize, c_int) -> c_int,
    recv = c"nng_recv": fn(Handle, *mut c_void, *mut usize, c_int) -> c_int,
    set = c"nng_socket_set": fn(Handle, *const c_char, *const c_void, usize) -> c_int,
    set_int = c"nng_socket_set_int": fn(Handle, *const c_char, c_int) -> c_int,
    get_int = c"nng_socket_get_int": fn(Handle, *const c_char, *mut c_int) -> c_int,
    strerror = c"nng_strerror": fn(c_int) -> *const c_char,
    version = c"nng_version": fn() -> *const c_char,
}

/// A socket.
pub(super) struct Nng {
    functions: &'static Functions,
    socket: Handle,
    /// A descriptor that is readable when a message has arrived; `None` for a publisher.
    came: Option<c_int>,
}

const NONBLOCK: c_int = 2;
const EAGAIN: c_int = 8;

impl Nng {
    pub(super) fn open(role: Role) -> Result<Self, String> {
        let functions = functions()?;
        let open = match role {
            Role::Pair => functions.pair_open,
            Role::Publisher => functions.pub_open,
            Role::Subscriber => functions.sub_open,
        };
        let mut socket = Handle(0);
        // SAFETY: the handle is writable.
        done(functions, unsafe { open(&raw mut socket) })?;
        let mut own = Self { functions, socket, came: None };
        if role != Role::Subscriber {
            own.set(c"send-buffer")?;
        }
        if role == Role::Publisher {
            return Ok(own);
        }
        own.set(c"recv-buffer")?;
        if role == Role::Subscriber {
            // SAFETY: the socket is open, the name ends with a zero, and no byte of the value is
            // read.
            own.done(unsafe { (functions.set)(socket, c"sub:subscribe".as_ptr(), c"".as_ptr().cast(), 0) })?;
        }
        let mut came = 0;
        // SAFETY: the socket is open, the name ends with a zero, and the number is writable.
        own.done(unsafe { (functions.get_int)(socket, c"recv-fd".as_ptr(), &raw mut came) })?;
        own.came = Some(came);
        Ok(own)
    }

    /// Sets a queue to its largest length.
    fn set(&self, queue: &CStr) -> Result<(), String> {
        // SAFETY: the socket is open, and the name ends with a zero.
        self.done(unsafe { (self.functions.set_int)(self.socket, queue.as_ptr(), QUEUE) })
    }

    fn done(&self, result: c_int) -> Result<(), String> {
        done(self.functions, result)
    }
}

/// Returns the result of a call that returns zero or an error number.
fn done(functions: &Functions, result: c_int) -> Result<(), String> {
    // SAFETY: any number has a text, which is static (nng_strerror(3)).
    if result == 0 { Ok(()) } else { Err(unsafe { text(functions.strerror, result) }) }
}

impl Messages for Nng {
    fn bind(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: the socket is open, the text ends with a zero, and the listener may be null.
        self.done(unsafe { (self.functions.listen)(self.socket, url.as_ptr(), std::ptr::null_mut(), 0) })
    }

    fn connect(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: as for bind. The dialer keeps trying in the background.
        self.done(unsafe { (self.functions.dial)(self.socket, url.as_ptr(), std::ptr::null_mut(), NONBLOCK) })
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<bool, String> {
        let send = self.functions.send;
        // SAFETY: the socket is open, and the message readable; it is copied.
        match unsafe { send(self.socket, message.as_ptr().cast(), message.len(), NONBLOCK) } {
            EAGAIN => Ok(false),
            result => self.done(result).map(|()| true),
        }
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String> {
        let mut size = message.len();
        let recv = self.functions.recv;
        // SAFETY: the socket is open, and so many bytes of the message writable.
        match unsafe { recv(self.socket, message.as_mut_ptr().cast(), &raw mut size, NONBLOCK) } {
            EAGAIN => Ok(None),
            result => self.done(result).map(|()| Some(size)),
        }
    }

    fn wait(&mut self, limit: Duration) -> Result<(), String> {
        let Some(came) = self.came else { return Ok(()) };
        // SAFETY: the descriptor is the socket's, which is open.
        readable(unsafe { BorrowedFd::borrow_raw(came) }, limit)
    }

    fn version(&self) -> String {
        // SAFETY: the text is static.
        let version = unsafe { CStr::from_ptr((self.functions.version)()) };
        format!("NNG {}", version.to_string_lossy())
    }
}

impl Drop for Nng {
    fn drop(&mut self) {
        // SAFETY: the socket is open, and used no more.
        unsafe { (self.functions.close)(self.socket) };
    }
}
