//! The thread that carries out what is overdue, for a program that calls no verb.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::objects::context::Ctx;
use crate::objects::keeper::{Ending, Keeper};
use crate::transport::local::link::{Link, Ticks};

/// A context with a keeper.
struct Kept(*const Ctx);

// SAFETY: a context is shared between threads, and its keeper ends before it is closed.
unsafe impl Send for Kept {}

impl Keeper {
    /// How often the thread looks, and how often while it finds something: a look interrupts the
    /// program for some microseconds.
    const SELDOM: Duration = Duration::from_millis(1);
    const OFTEN: Duration = Duration::from_micros(50);
    /// What is overdue by less is left to the program.
    const PATIENCE_NS: u64 = 20_000;
    /// The number of looks at the higher rate after one that found something.
    const LOOKS: u32 = 200;

    pub(crate) fn start(ctx: &Ctx, link: Link) -> Self {
        let ends = Arc::new(Ending { has_come: Mutex::new(false), changed: Condvar::new() });
        let seen = Arc::clone(&ends);
        let kept = Kept(ctx);
        let thread = std::thread::Builder::new().name("softdev-link".to_owned());
        let thread = thread.spawn(move || Self::run(&kept, &seen)).ok();
        Self { link, ends, thread }
    }

    fn run(kept: &Kept, ends: &Ending) {
        // SAFETY: the keeper is joined before its context is closed.
        let ctx = unsafe { &*kept.0 };
        let mut looks = 0_u32;
        let mut ended = ends.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            let period = if looks > 0 { Self::OFTEN } else { Self::SELDOM };
            looks = looks.saturating_sub(1);
            let to_look = Ticks::now().after(period);
            let waited = ends.changed.wait_timeout(ended, period);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *ended || ctx.waiting.load(Relaxed) == 0 {
                continue;
            }
            // Not what has become due since: this thread may have preempted the program.
            let overdue = ctx.next_due().is_some_and(|due| to_look.ns_since(due) > Self::PATIENCE_NS);
            if overdue {
                looks = Self::LOOKS;
                ctx.progress();
            }
        }
    }
}
