//! The progress of a transfer: a line on the terminal, and with `--verbose` a line for each file.

use std::io::{self, IsTerminal};

use bench::point::{News, PointSpec};
use bench::process::message::Hello;
use bench::process::sink::{KeptSamples, Sink, SinkError};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use measure::record::Point;

use super::arguments::TransferArguments;
use crate::failure::harmless;

/// Whether the progress is shown.
pub(super) fn is_wanted(arguments: &TransferArguments) -> bool {
    io::stderr().is_terminal() && !arguments.json
}

/// The progress of a transfer, and its point when it has ended.
pub(super) struct Watched {
    bar: ProgressBar,
    point: Option<Point>,
}

impl Watched {
    pub(super) fn new(arguments: &TransferArguments) -> Self {
        let target = match is_wanted(arguments) {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar: bar.with_style(style(UNKNOWN)), point: None }
    }

    /// Ends the line, and returns the point of the transfer.
    pub(super) fn end(self) -> Option<Point> {
        self.bar.finish_and_clear();
        self.point
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }
}

/// The line if the total is known.
const KNOWN: &str =
    "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {msg}, {eta} left";
/// The line if the total is not known.
const UNKNOWN: &str = "{spinner} {binary_bytes}, {binary_bytes_per_sec}, {msg}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Sink for Watched {
    fn started(&mut self, _agents: &[Hello]) -> Result<(), SinkError> {
        Ok(())
    }

    fn point_started(&mut self, _spec: &PointSpec) {}

    fn point(&mut self, point: Point, _samples: &[KeptSamples]) -> Result<(), SinkError> {
        self.point = Some(point);
        Ok(())
    }

    fn agent_line(&mut self, who: &str, line: &str) {
        match News::read(line) {
            Some(News::Progress { bytes, files, all }) => {
                if let Some((all_bytes, all_files)) = all {
                    if self.bar.length().is_none() {
                        self.bar.set_style(style(KNOWN));
                    }
                    self.bar.set_length(all_bytes.max(bytes));
                    self.bar.set_message(format!("{files} of {all_files} files"));
                } else {
                    self.bar.set_message(format!("{files} files"));
                }
                self.bar.set_position(bytes);
            }
            Some(News::File { path }) => self.say(&harmless(&path)),
            Some(News::Arrived { .. }) => {}
            None => self.say(&format!("[{who}] {line}")),
        }
    }

    fn notice(&mut self, text: &str) {
        self.say(&format!("rdmascope: {text}"));
    }

    fn warning(&mut self, text: &str) {
        self.say(&format!("rdmascope: warning: {text}"));
    }
}
