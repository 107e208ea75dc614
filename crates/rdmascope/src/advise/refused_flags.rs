//! Flags of `rdmascope one-way` that are no conditions of an advice: it finds them itself, or has
//! another one for them.

use clap::Args;

use crate::failure::Usage;

/// Taken only so that each is refused by its name.
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
    /// Refuses the first that is given.
    pub(super) fn refuse(&self) -> Result<(), Usage> {
        let polls = "how completions are waited for is found by advise itself: leave it out";
        let rate =
            "how messages follow each other is said by --rate: give a rate, `asap` for a flood, or none";
        let known = [
            (self.poll.is_some(), "--poll", polls),
            (self.send_poll.is_some(), "--send-poll", polls),
            (self.events, "-e", polls),
            (
                self.inline_size.is_some(),
                "-I",
                "whether to send inline is found by advise itself: leave it out",
            ),
            (self.cq_mod.is_some(), "-Q", "how often to signal is found by advise itself: leave it out"),
            (
                self.buffers.is_some(),
                "--buffers",
                "how many buffers to have is found by advise itself: leave it out",
            ),
            (self.burst.is_some(), "--burst", rate),
            (self.pause.is_some(), "--pause", rate),
            (self.all, "-a", "an advice is for messages of one size: give it with -s"),
        ];
        match known.into_iter().find(|(is_given, ..)| *is_given) {
            Some((_, flag, why)) => Err(Usage(format!("{flag}: {why}"))),
            None => Ok(()),
        }
    }
}
