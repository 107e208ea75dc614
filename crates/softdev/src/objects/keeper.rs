//! The thread that serves a context.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::transport::local::link::Link;

/// A thread that carries out what is overdue, for a program that calls no verb.
pub(crate) struct Keeper {
    pub(crate) link: Link,
    pub(crate) ends: Arc<Ending>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

pub(crate) struct Ending {
    pub(crate) has_come: Mutex<bool>,
    pub(crate) changed: Condvar,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.ends.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
