//! Creates sockets: their kind, and the options that are set before they are connected.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, ipproto, socket_with, sockopt};

use crate::Error;
use crate::point::{Carrier, Family};
use crate::topology::PartSpec;

/// Creates a socket of the point's kind, with all options.
///
/// # Errors
/// [`Error::Impossible`] if the kernel does not support the kind or does not allow an option.
pub(super) fn socket(spec: &PartSpec) -> Result<OwnedFd, Error> {
    let (family, kind, protocol) = kind(spec);
    let made = socket_with(family, kind, SocketFlags::CLOEXEC, protocol);
    let socket = made.map_err(|error| refused(spec, "socket", error))?;
    set(&socket, spec)?;
    Ok(socket)
}

fn kind(spec: &PartSpec) -> (AddressFamily, SocketType, Option<Protocol>) {
    let internet = match spec.message.socket.family {
        Family::Ipv4 => AddressFamily::INET,
        Family::Ipv6 => AddressFamily::INET6,
    };
    match spec.message.endpoint {
        Carrier::Sctp => (internet, SocketType::STREAM, Some(ipproto::SCTP)),
        Carrier::Udp => (internet, SocketType::DGRAM, Some(ipproto::UDP)),
        Carrier::UnixDatagram => (AddressFamily::UNIX, SocketType::DGRAM, None),
        Carrier::UnixStream => (AddressFamily::UNIX, SocketType::STREAM, None),
        // All other carriers use sockets only for TCP.
        _ => (internet, SocketType::STREAM, Some(ipproto::TCP)),
    }
}

fn set(socket: &OwnedFd, spec: &PartSpec) -> Result<(), Error> {
    let settings = &spec.message.socket;
    let failed = |option: &'static str| move |error: Errno| refused(spec, option, error);
    if spec.message.endpoint.is_internet() && settings.family == Family::Ipv6 {
        sockopt::set_ipv6_v6only(socket, true).map_err(failed("IPV6_V6ONLY"))?;
    }
    if let Some(bytes) = settings.buffer_bytes {
        buffers(socket, bytes)?;
    }
    if settings.no_delay && spec.message.endpoint == Carrier::Tcp {
        sockopt::set_tcp_nodelay(socket, true).map_err(failed("TCP_NODELAY"))?;
    }
    if settings.no_delay && spec.message.endpoint == Carrier::Sctp {
        number(socket, libc::IPPROTO_SCTP, SCTP_NODELAY, 1).map_err(failed("SCTP_NODELAY"))?;
    }
    if let Some(us) = settings.busy_poll_us {
        let us = libc::c_int::try_from(us).unwrap_or(libc::c_int::MAX);
        number(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, us).map_err(|error| match error {
            Errno::PERM => impossible("SO_BUSY_POLL needs root (CAP_NET_ADMIN)".to_owned()),
            error => refused(spec, "SO_BUSY_POLL", error),
        })?;
    }
    if let Some(name) = &settings.congestion {
        congestion(socket, name)?;
    }
    if let Some(bits_per_s) = settings.pacing_bits_per_s {
        pace(socket, bits_per_s).map_err(failed("SO_MAX_PACING_RATE"))?;
    }
    if settings.offload {
        let size = libc::c_int::try_from(spec.message.size_bytes).unwrap_or(libc::c_int::MAX);
        number(socket, libc::SOL_UDP, libc::UDP_SEGMENT, size).map_err(failed("UDP_SEGMENT"))?;
        number(socket, libc::SOL_UDP, libc::UDP_GRO, 1).map_err(failed("UDP_GRO"))?;
    }
    if settings.zero_copy {
        zero_copy(socket)?;
    }
    Ok(())
}

/// Limits the kernel to this many bits per second (`SO_MAX_PACING_RATE`, socket(7)).
pub(super) fn pace(socket: &impl AsRawFd, bits_per_s: u64) -> Result<(), Errno> {
    let bytes_per_s = libc::c_ulong::from(bits_per_s / 8);
    option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_s)
}

/// Lets sends refer to memory instead of copying it (`SO_ZEROCOPY`).
pub(super) fn zero_copy(socket: &OwnedFd) -> Result<(), Error> {
    number(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
        .map_err(|error| impossible(format!("this kernel refuses SO_ZEROCOPY: {}", io::Error::from(error))))
}

/// Sets both buffers, above the limits of the system if that is allowed, and checks the result. The
/// kernel also counts its own overhead, for which it doubles the value (socket(7)).
pub(super) fn buffers(socket: &OwnedFd, bytes: u64) -> Result<(), Error> {
    let asked = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let send = (libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, "wmem_max");
    let receive = (libc::SO_RCVBUF, libc::SO_RCVBUFFORCE, "rmem_max");
    for (option, force, limit) in [send, receive] {
        let set = number(socket, libc::SOL_SOCKET, force, asked);
        set.or_else(|_| number(socket, libc::SOL_SOCKET, option, asked)).map_err(|error| {
            impossible(format!("the kernel refuses a socket buffer of {bytes} B: {}", io::Error::from(error)))
        })?;
        let now = match option {
            libc::SO_SNDBUF => sockopt::socket_send_buffer_size(socket),
            _ => sockopt::socket_recv_buffer_size(socket),
        };
        let has = now.unwrap_or(0) as u64 / 2;
        if has < bytes {
            let reason = format!(
                "the kernel limits the socket buffer to {has} B, but {bytes} B are needed: raise net.core.{limit}, or run as root"
            );
            return Err(impossible(reason));
        }
    }
    Ok(())
}

fn congestion(socket: &OwnedFd, name: &str) -> Result<(), Error> {
    sockopt::set_tcp_congestion(socket, name).map_err(|error| {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let known = known.unwrap_or_default();
        let why = io::Error::from(error);
        impossible(format!(
            "the congestion control {name:?} is not available ({why}): this host has {}",
            known.trim()
        ))
    })
}

/// Sets how many bytes wake the receiver, as far as they fit into the socket's buffer
/// (`SO_RCVLOWAT`, socket(7)).
pub(super) fn wake_for(socket: &impl AsRawFd, bytes: usize) -> Result<(), Errno> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    number(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Sets an option that is a number.
fn number(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    option(socket, level, name, value)
}

/// Sets an option from the bytes of a value.
fn option<T: Copy>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> Result<(), Errno> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is readable and of that length.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if set == 0 { Ok(()) } else { Err(last()) }
}

/// Returns the error of the last call.
pub(super) fn last() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Returns the error of an option that the kernel does not support or does not allow.
fn refused(spec: &PartSpec, what: &str, error: Errno) -> Error {
    let why = io::Error::from(error);
    let name = spec.message.endpoint.name();
    match (error, spec.message.endpoint) {
        (Errno::PROTONOSUPPORT | Errno::SOCKTNOSUPPORT | Errno::AFNOSUPPORT, Carrier::Sctp) => {
            impossible("this kernel has no SCTP: load its module (`modprobe sctp`)".to_owned())
        }
        (Errno::AFNOSUPPORT, _) => {
            impossible(format!("this kernel does not support the address family of {name}: {why}"))
        }
        _ => impossible(format!("the kernel refuses {what} for {name}: {why}")),
    }
}

fn impossible(reason: String) -> Error {
    Error::Impossible { reason }
}

/// The value of linux/sctp.h.
const SCTP_NODELAY: libc::c_int = 3;
