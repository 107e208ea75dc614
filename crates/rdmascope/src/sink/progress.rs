//! The progress display on standard error, in a terminal only.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use measure::clock::{Clock, Ticks};

/// Time between two changes of the display within a point. Each takes some microseconds of a CPU on
/// which a rank may run.
const TICK: Duration = Duration::from_secs(1);

/// The display.
pub(crate) struct Progress {
    bar: ProgressBar,
    clock: Clock,
    measuring: Option<Measuring>,
}

/// A point that is being measured.
struct Measuring {
    what: String,
    begun: Ticks,
    /// How long it sends messages, if that is set.
    duration_s: Option<f64>,
}

impl Progress {
    /// Starts a display for so many points.
    pub(crate) fn new(points: u64) -> Self {
        // indicatif hides itself if standard error is no terminal. It is done here, too, because
        // results must not depend on it.
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{pos}/{len} {bar:15} {elapsed}, {left} left  {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left);
        let bar = ProgressBar::with_draw_target(Some(points), target).with_style(style);
        Self { bar, clock: Clock::monotonic(), measuring: None }
    }

    /// Sets the number of points.
    pub(crate) fn plan(&self, points: u64) {
        self.bar.set_length(points);
    }

    /// Shows the point that is measured, and how long it sends messages, if that is set.
    pub(crate) fn started(&mut self, what: String, duration_s: Option<f64>) {
        self.bar.set_message(what.clone());
        self.measuring = Some(Measuring { what, begun: self.clock.now(), duration_s });
    }

    /// Shows how long the point has been measured. Returns when to call this again; `None` where
    /// nobody sees the display.
    pub(crate) fn tick(&self) -> Option<Duration> {
        let Measuring { what, begun, duration_s } =
            self.measuring.as_ref().filter(|_| !self.bar.is_hidden())?;
        let passed_s = self.clock.ns(self.clock.now().since(*begun)) / 1_000_000_000;
        if passed_s > 0 {
            let all = duration_s.map(|duration_s| format!(" of {duration_s}")).unwrap_or_default();
            self.bar.set_message(format!("{what}, {passed_s}{all} s"));
        }
        Some(TICK)
    }

    /// Counts a point that has ended.
    pub(crate) fn ended(&mut self) {
        self.measuring = None;
        self.bar.inc(1);
    }

    /// Removes the display while something else is printed.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the display.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Writes the time that is left. Before the first point has ended, nothing is known.
fn left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let text = match state.pos() {
        0 => "?".to_owned(),
        _ => format!("{:#}", HumanDuration(state.eta())),
    };
    // A display that cannot be written does no harm.
    let _ = out.write_str(&text);
}
