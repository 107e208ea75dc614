//! Flags of `rdmascope one-way` that `advise` does not have: it chooses the setting itself, or has
//! another flag for it.

use clap::Args;

use crate::failure::Usage;

/// Accepted only to refuse each with its own error.
#[derive(Args, Debug)]
pub(crate) struct RefusedFlags {
    #[arg(long, hide = true)]
    poll: Option<Option<String>>,
    #[arg(long, hide = true)]
    send_poll: Option<Option<String>>,
    #[arg(short = 'e', long, hide = true)]
    events: bool,
    #[arg(short = 'I', long, hide = true)]
    inline_size: Option<Option<String>>,
    #[arg(short = 'Q', long, hide = true)]
    cq_mod: Option<Option<String>>,
    #[arg(long, hide = true)]
    buffers: Option<Option<String>>,
    #[arg(long, hide = true)]
    burst: Option<Option<String>>,
    #[arg(long, hide = true)]
    pause: Option<Option<String>>,
    #[arg(short = 'a', long, hide = true)]
    all: bool,
}

impl RefusedFlags {
    /// Refuses the first flag that is given.
    pub(super) fn refuse(&self) -> Result<(), Usage> {
        let polls = "advise chooses how to wait for completions: leave it out";
        let rate = "--rate sets how messages follow each other: give a rate, `asap`, or no --rate";
        let known = [
            (self.poll.is_some(), "--poll", polls),
            (self.send_poll.is_some(), "--send-poll", polls),
            (self.events, "-e", polls),
            (self.inline_size.is_some(), "-I", "advise chooses whether to send inline: leave it out"),
            (self.cq_mod.is_some(), "-Q", "advise chooses how often to signal: leave it out"),
            (self.buffers.is_some(), "--buffers", "advise chooses the number of buffers: leave it out"),
            (self.burst.is_some(), "--burst", rate),
            (self.pause.is_some(), "--pause", rate),
            (self.all, "-a", "advise is for messages of one size: give it with -s"),
        ];
        match known.into_iter().find(|(is_given, ..)| *is_given) {
            Some((_, flag, why)) => Err(Usage(format!("{flag}: {why}"))),
            None => Ok(()),
        }
    }
}
