//! The thread that looks after a context.

use crate::transport::local::link::Link;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::JoinHandle;

/// A thread that carries on with what is long due, for a program that calls no verb.
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
