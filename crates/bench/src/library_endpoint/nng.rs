//! NNG (libnng 1.x; nng_pair_open(3), nng_send(3), nng_recv(3), nng_options(5)).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::time::Duration;

use verbs::library::Library;

use super::socket::{Messages, QUEUE, Role, readable};

/// `nng_socket`, and any other of its handles: a number in a structure.
#[derive(Clone, Copy)]
#[repr(C)]
struct Handle(u32);

struct Functions {
    pair_open: unsafe extern "C" fn(*mut Handle) -> c_int,
    pub_open: unsafe extern "C" fn(*mut Handle) -> c_int,
    sub_open: unsafe extern "C" fn(*mut Handle) -> c_int,
    close: unsafe extern "C" fn(Handle) -> c_int,
    listen: unsafe extern "C" fn(Handle, *const c_char, *mut Handle, c_int) -> c_int,
    dial: unsafe extern "C" fn(Handle, *const c_char, *mut Handle, c_int) -> c_int,
    send: unsafe extern "C" fn(Handle, *const c_void, usize, c_int) -> c_int,
    recv: unsafe extern "C" fn(Handle, *mut c_void, *mut usize, c_int) -> c_int,
    set: unsafe extern "C" fn(Handle, *const c_char, *const c_void, usize) -> c_int,
    set_int: unsafe extern "C" fn(Handle, *const c_char, c_int) -> c_int,
    get_int: unsafe extern "C" fn(Handle, *const c_char, *mut c_int) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> *const c_char,
}

fn functions() -> Result<&'static Functions, String> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    FUNCTIONS.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Functions, String> {
    let library = Library::open("libnng.so.1", "NNG", "libnng1")?;
    // SAFETY: the types are those of the library's headers, which its soname keeps.
    Ok(unsafe {
        Functions {
            pair_open: library.function(c"nng_pair0_open")?,
            pub_open: library.function(c"nng_pub0_open")?,
            sub_open: library.function(c"nng_sub0_open")?,
            close: library.function(c"nng_close")?,
            listen: library.function(c"nng_listen")?,
            dial: library.function(c"nng_dial")?,
            send: library.function(c"nng_send")?,
            recv: library.function(c"nng_recv")?,
            set: library.function(c"nng_socket_set")?,
            set_int: library.function(c"nng_socket_set_int")?,
            get_int: library.function(c"nng_socket_get_int")?,
            strerror: library.function(c"nng_strerror")?,
            version: library.function(c"nng_version")?,
        }
    })
}

/// A socket.
pub(super) struct Nng {
    functions: &'static Functions,
    socket: Handle,
    /// Readable where a message has come; absent where none does.
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
        let opened = unsafe { open(&raw mut socket) };
        if opened != 0 {
            return Err(words(functions, opened));
        }
        let mut own = Self { functions, socket, came: None };
        if role != Role::Subscriber {
            own.set(c"send-buffer")?;
        }
        if role == Role::Publisher {
            return Ok(own);
        }
        own.set(c"recv-buffer")?;
        if role == Role::Subscriber {
            // SAFETY: the socket is open, the name ends with a zero, and no byte of the value is read.
            own.done(unsafe { (functions.set)(socket, c"sub:subscribe".as_ptr(), c"".as_ptr().cast(), 0) })?;
        }
        let mut came = 0;
        // SAFETY: the socket is open, the name ends with a zero, and the number is writable.
        own.done(unsafe { (functions.get_int)(socket, c"recv-fd".as_ptr(), &raw mut came) })?;
        own.came = Some(came);
        Ok(own)
    }

    /// Lets a queue hold as much as it may.
    fn set(&self, queue: &CStr) -> Result<(), String> {
        // SAFETY: the socket is open, and the name ends with a zero.
        self.done(unsafe { (self.functions.set_int)(self.socket, queue.as_ptr(), QUEUE) })
    }

    fn done(&self, result: c_int) -> Result<(), String> {
        if result == 0 { Ok(()) } else { Err(words(self.functions, result)) }
    }
}

fn words(functions: &Functions, error: c_int) -> String {
    // SAFETY: any number has a text, which is static.
    unsafe { CStr::from_ptr((functions.strerror)(error)) }.to_string_lossy().into_owned()
}

impl Messages for Nng {
    fn bind(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: the socket is open, the text ends with a zero, and nobody wants the listener.
        self.done(unsafe { (self.functions.listen)(self.socket, url.as_ptr(), std::ptr::null_mut(), 0) })
    }

    fn connect(&mut self, url: &CString) -> Result<(), String> {
        // SAFETY: as for bind. It goes on trying by itself.
        self.done(unsafe { (self.functions.dial)(self.socket, url.as_ptr(), std::ptr::null_mut(), NONBLOCK) })
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<bool, String> {
        // SAFETY: the socket is open, and the message readable; it is copied.
        match unsafe { (self.functions.send)(self.socket, message.as_ptr().cast(), message.len(), NONBLOCK) }
        {
            0 => Ok(true),
            EAGAIN => Ok(false),
            error => Err(words(self.functions, error)),
        }
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String> {
        let mut size = message.len();
        // SAFETY: the socket is open, and so many bytes of the message writable.
        match unsafe {
            (self.functions.recv)(self.socket, message.as_mut_ptr().cast(), &raw mut size, NONBLOCK)
        } {
            0 => Ok(Some(size)),
            EAGAIN => Ok(None),
            error => Err(words(self.functions, error)),
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
