//! The earlier sessions from which follows how much one session differs from the next although
//! nothing was changed.

use measure::text::{counted, plain};

use super::asked::{Asked, Order, Session};
use super::differences::{self, Difference, HOST};

/// The runs of a history.
#[derive(Default)]
pub(super) struct History<'a> {
    /// The runs of whole sessions, in the order of their start.
    pub(super) runs: Vec<Session<'a>>,
    /// Sessions, of as many runs each as a side has.
    pub(super) sessions: usize,
    /// Runs that were left out, and why.
    pub(super) left_out: Vec<String>,
}

impl<'a> History<'a> {
    /// Chooses the runs that resemble the base's, and makes sessions of them that resemble the
    /// sides: the distance between two sessions and the noise of their medians depend on their
    /// runs.
    pub(super) fn of(asked: &Asked<'a>, order: Order) -> Self {
        let mut history = Self::default();
        if asked.history.is_empty() {
            return history;
        }
        if order != Order::Sessions {
            history.left_out.push("all runs: sides that were measured in turns need no history".to_owned());
            return history;
        }
        let base = runs(asked.sides[0]);
        let first = asked.sides[0].iter().map(Session::start).min().unwrap_or_default();
        for session in by_start(asked.history) {
            // A later session may have what the new side has.
            if session.start() > first {
                history
                    .left_out
                    .push(format!("{}: this session started after the base", plain(session.name)));
                continue;
            }
            // A session of another machine or of other settings says nothing about these.
            let differences = differences::between([&base, &[session.run]], &[]);
            let differs = |difference: &&Difference| difference.matters || difference.what == HOST;
            match differences.iter().find(differs) {
                Some(difference) => history.left_out.push(format!("{}: {difference}", plain(session.name))),
                None => history.runs.push(*session),
            }
        }
        let [of_base, of_new] = asked.sides.map(<[Session<'_>]>::len);
        let runs_of_session = of_base.max(1);
        if of_base != of_new {
            history.runs.clear();
            history.left_out.push(format!(
                "all other runs: a session has as many runs as each side, and these have {of_base} and {of_new}"
            ));
        }
        let rest = history.runs.len() % runs_of_session;
        let of_side = counted(runs_of_session as u64, "run");
        let rest = history.runs.drain(..rest).map(|session| plain(session.name));
        let line = |name| format!("{name}: a session has {of_side}, as each side, and the oldest lacks some");
        history.left_out.extend(rest.map(line));
        history.sessions = history.runs.len() / runs_of_session;
        history
    }
}

/// The runs of sessions.
pub(super) fn runs<'a>(sessions: &[Session<'a>]) -> Vec<&'a measure::record::Run> {
    sessions.iter().map(|session| session.run).collect()
}

/// Sessions in the order of their start.
pub(super) fn by_start<'s, 'a>(sessions: &'s [Session<'a>]) -> Vec<&'s Session<'a>> {
    let mut sorted: Vec<&Session<'_>> = sessions.iter().collect();
    sorted.sort_by_key(|session| session.start());
    sorted
}
