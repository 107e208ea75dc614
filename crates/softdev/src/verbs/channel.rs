//! Completion channels: how a program sleeps until there is a completion.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::engine::channel::Channel;
use crate::objects::completion::Cq;
use crate::sys::errno::fail;
use crate::transport::local::host::host;
use crate::transport::local::notify::pipe;

pub(crate) unsafe extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    match pipe() {
        Ok((reading, writing, inode)) => {
            let ibv = ibv_comp_channel { context, fd: reading.into_raw_fd(), refcnt: 0 };
            let queues = Mutex::default();
            let sleepers = AtomicUsize::new(0);
            Box::into_raw(Box::new(Channel { ibv, writing, inode, queues, sleepers })).cast()
        }
        Err(errno) => fail(errno.raw_os_error()),
    }
}

pub(crate) unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    let channel = channel.cast::<Channel>();
    // SAFETY: the caller passes a live channel.
    if !unsafe { &*channel }.queues.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
        return libc::EBUSY;
    }
    // SAFETY: create_comp_channel made it, and no queue uses it.
    let channel = unsafe { Box::from_raw(channel) };
    if let Ok(host) = host() {
        host.forget_channel(channel.writing.as_raw_fd(), channel.inode);
    }
    // SAFETY: create_comp_channel gave the descriptor up to this member.
    drop(unsafe { OwnedFd::from_raw_fd(channel.ibv.fd) });
    0
}

pub(crate) unsafe extern "C" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller passes a live channel of this device.
    let Some(channel) = (unsafe { Channel::from(channel) }) else { return -1 };
    loop {
        let handle = match channel.read() {
            Ok(handle) => handle,
            Err(errno) => {
                fail::<c_void>(errno.raw_os_error());
                return -1;
            }
        };
        let queues = channel.queues();
        channel.pay(&queues);
        let Some((_, raw)) = queues.iter().find(|(other, _)| *other == handle) else {
            continue; // The queue was destroyed meanwhile.
        };
        // SAFETY: the queue is on the channel's list, so it is alive; its destruction waits for the
        // acknowledgement.
        let found = unsafe { Cq::from(*raw) };
        found.taken.fetch_add(1, SeqCst);
        // SAFETY: the caller passes two writable pointers.
        unsafe {
            cq.write(*raw);
            cq_context.write(found.ibv.cq_context);
        }
        return 0;
    }
}

pub(crate) unsafe extern "C" fn ack_cq_events(cq: *mut ibv_cq, nevents: u32) {
    // SAFETY: the caller passes a queue with events to acknowledge, so it is alive.
    unsafe { Cq::from(cq) }.acknowledged.fetch_add(u64::from(nevents), SeqCst);
}
