//! The time of a fleet: how the schedule and the suspects share `--time`.

use std::time::Duration;

use measure::clock::Deadline;
use measure::record::FleetTimeLeft;
use measure::units::format_duration;

use super::arguments::FleetArguments;

/// The share of the time that is kept for measuring suspects, beside the time between their visits.
const FOR_SUSPECTS: u32 = 3;
/// Three visits and what is measured in them fit into the time if each begins this share of it
/// after what was measured before.
const BEFORE_VISIT: u32 = 8;
const VISITS: u32 = 3;

/// The time of a fleet, from its first round on.
pub(super) struct Time {
    /// When the rounds of the schedule end, and when everything does.
    limits: Option<[Deadline; 2]>,
    /// The time between the last round and a visit.
    apart: Duration,
    /// What starting all agents took.
    starting: Duration,
    /// What earlier processes have measured for.
    used: Duration,
}

impl Time {
    /// Begins the time of a fleet, which may have suspects.
    pub(super) fn of(
        arguments: &FleetArguments,
        has_suspects: bool,
        starting: Duration,
        used: Duration,
    ) -> Self {
        let apart = apart(arguments);
        let limits = arguments.time.map(|limit| {
            let kept = limit / FOR_SUSPECTS + VISITS * apart;
            let schedule = if has_suspects { limit.saturating_sub(kept) } else { limit };
            [schedule, limit].map(|limit| Deadline::after(limit.saturating_sub(used)))
        });
        Self { limits, apart, starting, used }
    }

    /// When a visit may begin, if a round ends now.
    pub(super) fn next_visit(&self) -> Deadline {
        Deadline::after(self.apart)
    }

    /// Whether no further round of the schedule may begin.
    pub(super) fn is_schedule_over(&self) -> bool {
        self.limits.is_some_and(|[schedule, _]| schedule.is_over())
    }

    /// The time that is left after so many rounds, in rounds; none without a limit.
    pub(super) fn left(&self, rounds: u64) -> Option<FleetTimeLeft> {
        let [_, end] = self.limits?;
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX).max(1);
        let round = ((self.used + end.elapsed()) / rounds).max(Duration::from_micros(1));
        let fit = |time: Duration| time.as_secs_f64() / round.as_secs_f64();
        // A cast of too much gives the largest number.
        Some(FleetTimeLeft {
            rounds: fit(end.remaining()) as u32,
            before_visit: fit(self.apart + self.starting).ceil() as u32,
        })
    }
}

/// The time between two visits: as asked for, or what `--time` has room for.
fn apart(arguments: &FleetArguments) -> Duration {
    let room = arguments.time.map_or(Duration::MAX, |limit| limit / BEFORE_VISIT);
    arguments.visits_apart.min(room)
}

/// What `--time` costs beside rounds, if it leaves less between visits than was asked for.
pub(super) fn warning(arguments: &FleetArguments) -> Option<String> {
    let apart = apart(arguments);
    (apart < arguments.visits_apart).then(|| {
        format!(
            "--time {} leaves {} between visits of suspects, not {}: a host that is slow for longer than {} may be named",
            format_duration(arguments.time.unwrap_or_default()),
            format_duration(apart),
            format_duration(arguments.visits_apart),
            format_duration(Duration::from_millis((apart / VISITS).as_millis() as u64)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_and_suspects_have_their_part_of_the_time() {
        let scheduled = |words: &str| {
            let time = Time::of(
                &FleetArguments::parsed(words),
                !words.contains("ring"),
                Duration::ZERO,
                Duration::ZERO,
            );
            time.limits.map(|[schedule, _]| schedule.remaining().as_secs_f64().ceil())
        };
        assert_eq!(scheduled("--local 4"), None);
        // 600 s less 3 times 60 s and a third.
        assert_eq!(scheduled("--local 4 --time 10min"), Some(220.0));
        // 120 s less 3 times 15 s and a third.
        assert_eq!(scheduled("--local 4 --time 2min"), Some(35.0));
        assert_eq!(scheduled("--local 4 --time 2min --visits-apart 0"), Some(80.0));
        assert_eq!(scheduled("--local 4 --time 2min --schedule ring"), Some(120.0));
        assert_eq!(warning(&FleetArguments::parsed("--local 4 --time 10min")), None);
        let said = warning(&FleetArguments::parsed("--local 4 --time 2min")).expect("visits are closer");
        assert!(said.contains("--time 120s leaves 15s between visits of suspects, not 60s"), "{said}");
        assert!(said.contains("longer than 5s"), "{said}");
    }

    #[test]
    fn what_is_left_is_counted_in_rounds() {
        let arguments = FleetArguments::parsed("--local 4 --time 100 --visits-apart 5");
        let used = Duration::from_secs(40);
        let time = Time::of(&arguments, true, Duration::from_secs(1), used);
        let left = time.left(80).expect("a limit");
        // A round took half a second; 60 s are left, and 6 s pass before a visit.
        assert!((115..=120).contains(&left.rounds), "{left:?}");
        assert!((11..=12).contains(&left.before_visit), "{left:?}");
        assert!(time.left(0).is_some());
        assert!(Time::of(&arguments, true, Duration::ZERO, Duration::from_secs(200)).is_schedule_over());
    }
}
