//! Taking changes back, and finding those that nobody will take back any more.

use std::io;
use std::time::Duration;

use crate::host::Host;
use crate::journal::{Entry, Journal, Open, process};
use crate::pause::pause;
use crate::setting::Setting;

/// The group of facts about a host (`measure::record::Environment`) that are this crate's.
pub const FACTS: &str = "conditions";
/// The fact that says what [`left_behind`] finds.
pub const LEFT_BEHIND: &str = "left_behind";

/// What became of changes that had been left behind.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Restored {
    /// Values that are as they were.
    pub restored: Vec<String>,
    /// Values that somebody else has changed since, and what guards that ended had to say.
    pub left_alone: Vec<String>,
    /// What could not be done, and why.
    pub failed: Vec<String>,
}

/// Changes of runs of which not even the guard is left, in words; and what guards had to say when
/// nobody listened.
pub fn left_behind(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    for journal in Journal::all(host) {
        let book = match journal.read() {
            Ok(book) => book,
            Err(error) => {
                found.push(error.to_string());
                continue;
            }
        };
        let is_left = |entry: &&Entry| !entry.is_only_held() && is_orphan(&journal, entry);
        for entry in book.entries.iter().filter(is_left) {
            let Entry { setting, before, set, holders } = entry;
            let who = holders.first().map_or("a process", |holder| process(holder));
            found
                .push(format!("{setting} was set from {before} to {set} by process {who}, which was killed"));
        }
        found.extend(book.notes);
    }
    found
}

/// Takes back what [`left_behind`] finds.
pub fn restore(host: &Host) -> Restored {
    let mut all = Restored::default();
    for journal in Journal::all(host) {
        let restored = journal.edit(|open| {
            let undone = take_back(host, open, "", |entry| is_orphan(&journal, entry));
            (undone, std::mem::take(&mut open.book.notes))
        });
        match restored {
            Ok((undone, notes)) => {
                undone.into_iter().for_each(|undone| all.add(undone));
                all.left_alone.extend(notes);
            }
            Err(error) => all.failed.push(format!("cannot restore what the journal says: {error}")),
        }
    }
    all
}

impl Restored {
    fn add(&mut self, undone: Undone) {
        match undone {
            Undone::Restored(line) => self.restored.push(line),
            Undone::LeftAlone(line) => self.left_alone.push(line),
            Undone::Failed(line) => self.failed.push(line),
        }
    }
}

/// What became of one change, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Undone {
    /// The value is as it was.
    Restored(String),
    /// Somebody else has changed it since.
    LeftAlone(String),
    /// It could not be set back.
    Failed(String),
}

impl Undone {
    /// What the user has to know.
    pub(crate) fn trouble(self) -> Option<String> {
        match self {
            Self::Restored(_) => None,
            Self::LeftAlone(line) | Self::Failed(line) => Some(line),
        }
    }
}

fn is_orphan(journal: &Journal, entry: &Entry) -> bool {
    !entry.holders.iter().any(|holder| journal.is_alive(holder))
}

/// Waits until no living guard but `own` holds what is not wanted: those of agents that have just
/// been told to go take theirs back. Gives in words what is held all the same.
pub(crate) fn settle(host: &Host, own: &str, is_wanted: impl Fn(&Entry) -> bool) -> Option<String> {
    let mut tries = SETTLE_TRIES;
    loop {
        let mut held = Vec::new();
        for journal in Journal::all(host) {
            // One that cannot be read is told of by `left_behind`.
            for entry in journal.read().unwrap_or_default().entries {
                let is_other = |holder: &&String| *holder != own && journal.is_alive(holder);
                let other = entry.holders.iter().find(is_other).cloned();
                held.extend(other.filter(|_| !is_wanted(&entry)).map(|holder| (entry, holder)));
            }
        }
        let (entry, holder) = held.first()?;
        tries -= 1;
        if tries == 0 {
            let Entry { setting, set, .. } = entry;
            let others = held.len() - 1;
            let more = if others > 0 { format!(" (and {others} more values)") } else { String::new() };
            return Some(format!(
                "process {} of rdmascope holds {setting} at {set}{more}, which was not asked for here",
                process(holder)
            ));
        }
        pause(SETTLE_INTERVAL);
    }
}

/// Five seconds: guards take changes back within milliseconds, tuned within seconds.
const SETTLE_TRIES: u32 = 100;
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

/// Signs a holder out of the changes that `is_meant`, and takes those back, last first, that no
/// living guardian holds. What failed stays in the book.
pub(crate) fn take_back(
    host: &Host,
    open: &mut Open,
    name: &str,
    is_meant: impl Fn(&Entry) -> bool,
) -> Vec<Undone> {
    let mut kept = Vec::new();
    let mut all = Vec::new();
    for mut entry in std::mem::take(&mut open.book.entries).into_iter().rev() {
        if is_meant(&entry) {
            entry.holders.retain(|holder| holder != name && open.is_alive(holder));
            if entry.holders.is_empty() && entry.is_only_held() {
                continue;
            }
            if entry.holders.is_empty() {
                let undone = undo(host, &entry);
                if matches!(undone, Undone::Failed(_)) {
                    kept.push(entry);
                }
                all.push(undone);
                continue;
            }
        }
        kept.push(entry);
    }
    kept.reverse();
    open.book.entries = kept;
    all
}

/// Sets a value back, unless somebody else has changed it.
fn undo(host: &Host, entry: &Entry) -> Undone {
    let Entry { setting, before, set, .. } = entry;
    let restored = || Undone::Restored(format!("{setting} is {before} again"));
    let failed = |error: io::Error| {
        Undone::Failed(format!("{setting} could not be set back from {set} to {before}: {error}"))
    };
    let write = || setting.write(host, before).map_or_else(failed, |()| restored());
    if *setting == Setting::Shield {
        // Nobody else has a group of that name, and a half of it goes as well as a whole.
        return write();
    }
    match setting.read(host) {
        Ok(current) if setting.is_same(&current, before) => restored(),
        Ok(current) if setting.is_same(&current, set) => write(),
        Ok(current) => Undone::LeftAlone(format!(
            "{setting} was changed to {current} by somebody else after rdmascope had set it to {set}, and is left so \
             ({before} before)"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Undone::Restored(format!("{setting} is there no more"))
        }
        Err(error) => failed(error),
    }
}
