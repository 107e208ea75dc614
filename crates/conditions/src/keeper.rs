//! The work of a guard: it writes each change of the host into the journal, makes it, and reverts
//! it.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZero;
use std::thread;

use measure::conditions::{Condition, Outcome, Technique, Wanted};
use measure::environment::distinct;

use crate::host::Host;
use crate::journal::{Book, Entry, Holder, Journal, Open, process};
use crate::place::Ranks;
use crate::refusal::{Found, Refusal, condition, refused};
use crate::restore::{Undone, settle, take_back};
use crate::rights::ROOT;
use crate::setting::Setting;
use crate::shield;
use crate::stress::Stress;
use crate::targets::targets;

/// Changes the settings of a host for one agent.
#[derive(Debug)]
pub(crate) struct Keeper {
    host: Host,
    /// The journal, opened for the first change.
    signed_in: Option<(Journal, Holder)>,
    /// The agent and its previous control group, if it has joined the group of the ranks.
    joined: Option<(u32, String)>,
    /// The applied techniques, with their settings and values.
    applied: Vec<(Condition, Targets)>,
    /// Load on the host, while it is wanted.
    stress: Option<Stress>,
}

/// Settings with the values that are wanted.
type Targets = Vec<(Setting, String)>;

/// The result of applying one technique.
#[derive(Debug, Default)]
struct Done {
    /// The values before, each once.
    before: Vec<String>,
    /// Settings that have the wanted value.
    right: Targets,
    failed: Vec<(Setting, io::Error)>,
    /// Other guards that hold some of them too.
    shared: BTreeSet<String>,
    /// Dead guards that had changed some of them.
    adopted: BTreeSet<String>,
}

/// Why no setting was changed.
enum Stop {
    /// The journal cannot be used.
    Journal(io::Error),
    /// Another guard holds a setting at another value.
    Held(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Journal(error)
    }
}

impl Keeper {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, signed_in: None, joined: None, applied: Vec::new(), stress: None }
    }

    /// Applies the host-wide techniques for the agent `process`. Techniques from before must have
    /// been released.
    pub(crate) fn apply(&mut self, wanted: &Wanted, ranks: &Ranks, process: u32) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for (technique, asked) in wanted.host_wide().techniques() {
            let result = match technique {
                Technique::Stress => self.burden(ranks),
                _ => targets(&self.host, technique, wanted, ranks)
                    .and_then(|targets| self.set(&targets, technique))
                    .and_then(|done| self.join(technique, process).map(|()| done)),
            };
            let (result, right) = match result {
                Ok((found, right)) => (Ok(found), Some(right)),
                Err(refusal) => (Err(refusal), None),
            };
            let condition = condition(0, technique, asked, result);
            self.applied.extend(right.map(|right| (condition.clone(), right)));
            conditions.push(condition);
        }
        conditions
    }

    /// Waits until other guards hold only what is wanted; returns what they still hold after that.
    pub(crate) fn settle(&self, wanted: &Wanted, ranks: &Ranks) -> Option<String> {
        let techniques = wanted.host_wide().techniques().into_iter();
        let all = techniques.filter_map(|(technique, _)| targets(&self.host, technique, wanted, ranks).ok());
        let all: Vec<_> = all.flatten().collect();
        let is_wanted = |entry: &Entry| {
            all.iter().any(|(setting, value)| *setting == entry.setting && setting.is_same(value, &entry.set))
        };
        let own = self.signed_in.as_ref().map_or("", |(_, holder)| holder.name.as_str());
        settle(&self.host, own, is_wanted)
    }

    /// Checks what was applied; returns the techniques that are no longer in force.
    pub(crate) fn verify(&self) -> Vec<Condition> {
        let differs = |(setting, value): &(Setting, String)| match setting.read(&self.host) {
            Ok(current) if setting.is_same(&current, value) => None,
            Ok(current) => Some(format!("{setting}: {current}")),
            Err(error) => Some(format!("{setting}: {error}")),
        };
        let lost = self.applied.iter().filter_map(|(condition, targets)| {
            let reason = targets.iter().find_map(differs)?;
            let reason =
                format!("it was applied, but another process changed it during the point ({reason})");
            Some(Condition { outcome: Outcome::NotApplied, reason: Some(reason), ..condition.clone() })
        });
        lost.collect()
    }

    /// Reverts everything that no other guard holds; returns what could not be reverted, and why.
    pub(crate) fn release(&mut self) -> Vec<String> {
        self.applied.clear();
        self.stress = None;
        if let Some((process, was)) = self.joined.take() {
            shield::leave(&self.host, process, &was);
        }
        let Some((journal, holder)) = &self.signed_in else { return Vec::new() };
        let is_mine = |entry: &Entry| entry.holders.contains(&holder.name);
        match journal.edit(|open| take_back(&self.host, open, &holder.name, is_mine)) {
            Ok(undone) => undone.into_iter().filter_map(Undone::trouble).collect(),
            Err(error) => {
                vec![format!("the environment could not be reverted: {error}; see `rdmascope doctor`")]
            }
        }
    }

    /// Reverts the changes of dead guards.
    pub(crate) fn restore(&self, dead: &[u32]) -> Vec<String> {
        let mut said = Vec::new();
        for journal in Journal::all(&self.host) {
            let is_dead = |holder: &String| dead.iter().any(|dead| dead.to_string() == process(holder));
            let is_theirs = |entry: &Entry| entry.holders.iter().any(is_dead);
            match journal.edit(|open| take_back(&self.host, open, "", is_theirs)) {
                Ok(undone) => said.extend(undone.into_iter().filter_map(Undone::trouble)),
                Err(error) => said.push(format!(
                    "the changes of a killed guard could not be reverted: {error}; see `rdmascope doctor`"
                )),
            }
        }
        said
    }

    /// Keeps messages in the journal when no agent is left to receive them.
    pub(crate) fn note(&self, said: Vec<String>) {
        let Some((journal, _)) = self.signed_in.as_ref().filter(|_| !said.is_empty()) else { return };
        // Without the note, the settings are the same.
        let _ = journal.edit(|open| {
            open.book.notes.extend(said);
            let more = open.book.notes.len().saturating_sub(NOTES_MAX);
            open.book.notes.drain(..more);
        });
    }

    /// Applies a technique. Returns the outcome, and the settings that have the wanted value.
    fn set(
        &mut self,
        targets: &[(Setting, String)],
        technique: Technique,
    ) -> Result<(Found, Targets), Refusal> {
        let done = self.try_set(targets).map_err(|stop| match stop {
            Stop::Journal(error) => {
                let (outcome, why) = refused("keep a journal of changes in /run/rdmascope", &error, ROOT);
                (outcome, format!("{why}; without a journal, rdmascope changes nothing"))
            }
            Stop::Held(why) => (Outcome::NotApplied, why),
        })?;
        // An interrupt that the kernel does not move says nothing about the others; a missing right
        // does.
        // does.
        let is_forbidden = |setting: &Setting| {
            let kind = self.host.refuses(&setting.path()).map(|error| error.kind());
            matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
        };
        let forbidden = done.failed.iter().find(|(setting, _)| is_forbidden(setting));
        let count = done.right.len();
        let some_will_do = technique == Technique::IrqAffinity && count > 0 && forbidden.is_none();
        let mut reasons = Vec::new();
        if let Some((setting, error)) = forbidden.or(done.failed.first()) {
            let (outcome, why) = refused(&format!("set {setting}"), error, ROOT);
            let share = format!("{count} of {}", targets.len());
            if !some_will_do {
                let rest = if count > 0 { format!(" ({share} were set)") } else { String::new() };
                return Err((outcome, why + &rest));
            }
            reasons.push(format!(
                "{share} interrupts: the kernel does not move the others ({setting}: {error})"
            ));
        }
        if technique == Technique::IrqAffinity && self.host.is_running("irqbalance") {
            reasons
                .push("irqbalance is running and may move them back: systemctl stop irqbalance".to_owned());
        }
        if !done.shared.is_empty() {
            reasons.push(format!("also held by process {} of rdmascope", processes(&done.shared)));
        }
        if !done.adopted.is_empty() {
            reasons.push(format!(
                "process {} of rdmascope was killed before it reverted this: the value from before that will be restored",
                processes(&done.adopted)
            ));
        }
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok((Found { before: distinct(done.before.into_iter()), reason }, done.right))
    }

    fn try_set(&mut self, targets: &[(Setting, String)]) -> Result<Done, Stop> {
        if self.signed_in.is_none() {
            let journal = Journal::of(&self.host)?;
            let holder = journal.hold()?;
            self.signed_in = Some((journal, holder));
        }
        let Some((journal, holder)) = &self.signed_in else { return Ok(Done::default()) };
        let mut open = unheld(journal, &holder.name, targets)?;
        let mut done = Done::default();
        let mut to_write = Vec::new();
        for (setting, value) in targets {
            match enter(&self.host, &mut open, &holder.name, *setting, value, &mut done) {
                Ok(true) => to_write.push((*setting, value)),
                Ok(false) => done.right.push((*setting, value.clone())),
                Err(error) => done.failed.push((*setting, error)),
            }
        }
        // On disk before anything is changed.
        open.save()?;
        for (setting, value) in to_write {
            match setting.write(&self.host, value) {
                Ok(()) => done.right.push((setting, value.clone())),
                Err(error) => {
                    // A write that failed may have changed the setting.
                    forget_unchanged(&self.host, &mut open.book, setting);
                    done.failed.push((setting, error));
                }
            }
        }
        if !done.failed.is_empty() {
            open.save()?;
        }
        Ok(done)
    }

    /// Starts this rank's share of the load on the host.
    fn burden(&mut self, ranks: &Ranks) -> Result<(Found, Targets), Refusal> {
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = cpus.div_ceil(ranks.count.max(1));
        let stress = Stress::start(threads).map_err(|error| {
            (Outcome::NotApplied, format!("cannot start {threads} threads for load: {error}"))
        })?;
        self.stress = Some(stress);
        let reason =
            Some(format!("one thread for each of the {cpus} CPUs; this rank's guard runs {threads} of them"));
        Ok((Found { before: None, reason }, Targets::new()))
    }

    /// Moves the ranks into the group of the shielded CPUs, if there is one.
    fn join(&mut self, technique: Technique, process: u32) -> Result<(), Refusal> {
        if technique != Technique::Cpuset {
            return Ok(());
        }
        let was = shield::join(&self.host, process)
            .map_err(|error| refused("join the control group of the shielded CPUs", &error, ROOT))?;
        self.joined = was.map(|was| (process, was));
        Ok(())
    }
}

/// Opens the journal, unless a living guard holds one of the settings at another value.
fn unheld(journal: &Journal, name: &str, targets: &[(Setting, String)]) -> Result<Open, Stop> {
    let open = journal.open()?;
    let is_other = |holder: &&String| *holder != name && open.is_alive(holder);
    let held = open.book.entries.iter().find_map(|entry| {
        let is_wanted = |target: &&(Setting, String)| {
            target.0 == entry.setting && !entry.setting.is_same(&target.1, &entry.set)
        };
        targets.iter().find(is_wanted)?;
        Some((entry.setting, entry.set.clone(), entry.holders.iter().find(is_other)?.clone()))
    });
    match held {
        None => Ok(open),
        Some((setting, set, holder)) => {
            let process = process(&holder);
            Err(Stop::Held(format!("process {process} of rdmascope holds {setting} at {set}")))
        }
    }
}

/// Enters a change into the journal; returns whether the value has to be written.
fn enter(
    host: &Host,
    open: &mut Open,
    name: &str,
    setting: Setting,
    value: &str,
    done: &mut Done,
) -> io::Result<bool> {
    let mut current = setting.read(host)?;
    if let Some(at) = open.book.entries.iter().position(|entry| entry.setting == setting) {
        let holders = open.book.entries[at].holders.clone();
        let (living, dead): (Vec<_>, Vec<_>) =
            holders.into_iter().partition(|holder| holder == name || open.is_alive(holder));
        let entry = &mut open.book.entries[at];
        let is_as_set = setting.is_same(&current, &entry.set);
        if is_as_set && setting.is_same(&entry.set, value) {
            done.before.push(entry.before.clone());
            done.shared.extend(living.iter().filter(|holder| *holder != name).cloned());
            if living.is_empty() {
                done.adopted.extend(dead);
            }
            entry.holders = living;
            if !entry.holders.iter().any(|holder| holder == name) {
                entry.holders.push(name.to_owned());
            }
            return Ok(false);
        }
        // A dead guard left another value, or another process has changed the value since: go back
        // to the value before the guard, or keep the process's value.
        if is_as_set {
            setting.write(host, &entry.before)?;
            current.clone_from(&entry.before);
            done.adopted.extend(dead);
        }
        open.book.entries.remove(at);
    }
    done.before.push(current.clone());
    let is_right = setting.is_same(&current, value);
    let holders = vec![name.to_owned()];
    open.book.entries.push(Entry { setting, before: current, set: value.to_owned(), holders });
    Ok(!is_right)
}

/// Removes a change that was not made from the journal.
fn forget_unchanged(host: &Host, book: &mut Book, setting: Setting) {
    let Ok(current) = setting.read(host) else { return };
    book.entries.retain(|entry| entry.setting != setting || !setting.is_same(&current, &entry.before));
}

fn processes(holders: &BTreeSet<String>) -> String {
    holders.iter().map(|holder| process(holder)).collect::<Vec<_>>().join(" and ")
}

/// The last notes are enough for a reader.
const NOTES_MAX: usize = 20;
