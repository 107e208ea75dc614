//! Reverts changes, and finds changes that no living guard will revert.

use std::io;
use std::time::Duration;

use crate::host::Host;
use crate::journal::{Entry, Journal, Open, process};
use crate::pause::pause;
use crate::setting::Setting;

/// The group of facts about a host (`measure::record::Environment`) that this crate adds.
pub const FACTS: &str = "conditions";
/// The fact with the changes that [`left_behind`] finds.
pub const LEFT_BEHIND: &str = "left_behind";

/// The result of restoring changes that had been left behind.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Restored {
    /// Settings that have their old value again.
    pub restored: Vec<String>,
    /// Settings that another process has changed since, and messages of guards that ended.
    pub left_alone: Vec<String>,
    /// Changes that could not be reverted, and why.
    pub failed: Vec<String>,
}

/// Describes changes of runs whose guard was killed, too, and messages that guards could not
/// deliver.
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
            let who = holders
                .first()
                .map_or("a process".to_owned(), |holder| format!("process {}", process(holder)));
            found.push(format!("{setting} was set from {before} to {set} by {who}, which was killed"));
        }
        found.extend(book.notes);
    }
    found
}

/// Reverts what [`left_behind`] finds.
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
            Err(error) => all.failed.push(format!("cannot use the journal of changes: {error}")),
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

/// The result of reverting one change, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Undone {
    /// The value is as it was before.
    Restored(String),
    /// Another process has changed the value since.
    LeftAlone(String),
    /// The value could not be restored.
    Failed(String),
}

impl Undone {
    /// Returns the message for the user, if there is one.
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

/// Waits until no living guard except `own` holds a setting that is not wanted: guards of agents
/// that have just ended are reverting their changes. Returns a description of what is held after
/// that.
pub(crate) fn settle(host: &Host, own: &str, is_wanted: impl Fn(&Entry) -> bool) -> Option<String> {
    let mut tries = SETTLE_TRIES;
    loop {
        let mut held = Vec::new();
        for journal in Journal::all(host) {
            // `left_behind` reports a journal that cannot be read.
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
                "process {} of rdmascope holds {setting} at {set}{more}, which this run does not ask for",
                process(holder)
            ));
        }
        pause(SETTLE_INTERVAL);
    }
}

/// 5 s: guards revert changes within milliseconds, tuned within seconds.
const SETTLE_TRIES: u32 = 100;
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

/// Removes holder `name` from the changes that `is_meant` selects, and reverts those that no living
/// guard holds, last change first. A change that could not be reverted stays in the journal.
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

/// Restores a value, unless another process has changed it.
fn undo(host: &Host, entry: &Entry) -> Undone {
    let Entry { setting, before, set, .. } = entry;
    let restored = || Undone::Restored(format!("{setting} is {before} again"));
    let failed = |error: io::Error| {
        Undone::Failed(format!("{setting} could not be set back from {set} to {before}: {error}"))
    };
    let write = || setting.write(host, before).map_or_else(failed, |()| restored());
    if *setting == Setting::Shield {
        // No other program has a group of this name, and removing half of a shield works, too.
        return write();
    }
    match setting.read(host) {
        Ok(current) if setting.is_same(&current, before) => restored(),
        Ok(current) if setting.is_same(&current, set) => write(),
        Ok(current) => Undone::LeftAlone(format!(
            "another process changed {setting} to {current} after rdmascope had set it to {set}; it is left so \
             (originally {before})"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Undone::Restored(format!("{setting} no longer exists"))
        }
        Err(error) => failed(error),
    }
}
