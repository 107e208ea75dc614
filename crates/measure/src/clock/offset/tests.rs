//! Simulated exchanges with known offsets and rates, and two threads of which one has a skewed
//! clock.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::clock::Skew;
use crate::random::Random;

/// A heavy-tailed time (Pareto, index 1.1: its mean is 11 times its minimum, and its variance is
/// infinite), in ns.
fn transit(random: &mut Random, least_ns: f64) -> f64 {
    (least_ns * random.fraction().powf(-1.0 / 1.1)).min(50e6)
}

/// A counter that starts somewhere and runs at its true rate, in millionths of a Hz.
#[derive(Clone, Copy)]
struct Counter {
    micro_hz: i128,
    start: i128,
}

/// A picosecond, in which true time counts.
const PS_PER_S: i128 = 1_000_000_000_000;

impl Counter {
    fn new(hz: f64, drift_ppm: f64, start: i128) -> Self {
        Self { micro_hz: (hz * 1e6 * (1.0 + drift_ppm * 1e-6)) as i128, start }
    }

    /// Its reading, rounded down as counters are.
    fn read(&self, time_ps: i128) -> u64 {
        (self.start + (time_ps * self.micro_hz).div_euclid(1_000_000 * PS_PER_S)) as u64
    }
}

/// Two computers.
struct World {
    random: Random,
    ours: Counter,
    theirs: Counter,
    nominal: (Nominal, Nominal),
    /// Smallest transit time there and back, in ns.
    transit_ns: (f64, f64),
}

fn nominal(tick_hz: f64, drift_ppm: f64) -> Nominal {
    Nominal { tick_hz, drift_ppm, wander_ppm: 0.0 }
}

impl World {
    /// Nominal rates of 24 MHz to 4 GHz, each up to 200 ppm off, the local counter up to a month
    /// old and the remote one up to days off.
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let hz = |random: &mut Random| match random.bits() % 3 {
            0 => 1e9,
            _ => random.magnitude(24e6, 4e9).round(),
        };
        let counter = |random: &mut Random| {
            let hz = hz(random);
            let drift = random.between(-200.0, 200.0);
            let age = random.between(0.0, 30.0 * 86_400.0) * hz;
            (Counter::new(hz, drift, age as i128 + (1 << 40)), nominal(hz, 200.0))
        };
        let (ours, our_nominal) = counter(&mut random);
        let (theirs, their_nominal) = counter(&mut random);
        let transit_ns = (random.magnitude(100.0, 50_000.0), random.magnitude(100.0, 50_000.0));
        Self { random, ours, theirs, nominal: (our_nominal, their_nominal), transit_ns }
    }

    fn exchange(&mut self, start_ps: i128) -> Exchange {
        let ps = |ns: f64| (ns * 1e3) as i128;
        let arrived = start_ps + ps(transit(&mut self.random, self.transit_ns.0));
        let answered = arrived + ps(self.random.magnitude(1.0, 10_000.0));
        let returned = answered + ps(transit(&mut self.random, self.transit_ns.1));
        Exchange {
            sent: self.ours.read(start_ps),
            arrived: self.theirs.read(arrived),
            answered: self.theirs.read(answered),
            returned: self.ours.read(returned),
        }
    }

    fn exchanges(&mut self, count: usize, from_s: f64, to_s: f64) -> Vec<Exchange> {
        let times: Vec<f64> = (0..count).map(|_| self.random.between(from_s, to_s)).collect();
        times.into_iter().map(|time| self.exchange((time * 1e12) as i128)).collect()
    }

    fn offset(&self, exchanges: &[Exchange]) -> Result<Offset, Reason> {
        Offset::of(exchanges, self.nominal.0, self.nominal.1)
    }

    /// Whether the true reading lies inside the interval at an instant.
    fn holds(&self, offset: &Offset, time_s: f64) -> bool {
        let time_ps = (time_s * 1e12) as i128;
        let ours = i128::from(self.ours.read(time_ps));
        let theirs = self.theirs.read(time_ps);
        let Interval { least, largest } = offset.interval(theirs);
        (least..=largest).contains(&ours)
    }
}

/// Makes exchanges before, during or after a measurement from 0 to `point_s`, as `plan` says.
fn around(world: &mut World, count: usize, point_s: f64, plan: u64) -> Vec<Exchange> {
    match plan % 3 {
        0 => world.exchanges(count, -0.1, 0.0),
        1 => {
            let mut both = world.exchanges(count.div_ceil(2), -0.1, 0.0);
            both.extend(world.exchanges(count / 2, point_s, point_s + 0.1));
            both
        }
        _ => world.exchanges(count, 0.0, point_s),
    }
}

#[test]
fn the_truth_lies_inside_in_all_of_2000_runs() {
    for seed in 0..2000 {
        let mut world = World::new(seed);
        let count = world.random.magnitude(3.0, 10_001.0) as usize;
        let point_s = world.random.magnitude(0.01, 10.0);
        let exchanges = around(&mut world, count, point_s, seed);
        let offset = world.offset(&exchanges).unwrap_or_else(|reason| panic!("run {seed}: {reason}"));

        let bound_ns = offset.bound_ns(world.theirs.read(0), world.theirs.read((point_s * 1e12) as i128));
        for at in 0..=40 {
            let time_s = point_s * f64::from(at) / 40.0;
            assert!(world.holds(&offset, time_s), "run {seed} of {count} exchanges at {time_s} s");
            let theirs = world.theirs.read((time_s * 1e12) as i128);
            // From a local stamp up to a millisecond before.
            let truth = world.ours.read((time_s * 1e12) as i128);
            let gap = world.random.bits() % (world.nominal.0.tick_hz / 1e3) as u64;
            let elapsed = offset.elapsed(truth - gap, theirs);
            let error_ns = (elapsed.ns - gap as f64 / world.nominal.0.tick_hz * 1e9).abs();
            assert!(error_ns <= elapsed.bound_ns, "run {seed}: {elapsed:?} is off by {error_ns} ns");
            assert!(elapsed.bound_ns <= bound_ns, "run {seed}: {elapsed:?} is above {bound_ns} ns");
        }
        for time_s in [-100.0, -1.0, 2.0 * point_s, 3600.0, 86_400.0] {
            assert!(world.holds(&offset, time_s), "run {seed} of {count} exchanges, far away at {time_s} s");
        }
        let hz = |counter: Counter, nominal: Nominal| counter.micro_hz as f64 / 1e6 / nominal.tick_hz;
        let drift_ppm = (hz(world.theirs, world.nominal.1) / hz(world.ours, world.nominal.0) - 1.0) * 1e6;
        let (least, largest) = offset.drift_ppm();
        assert!(least <= drift_ppm && drift_ppm <= largest, "run {seed}: {least} {drift_ppm} {largest}");
    }
}

#[test]
fn no_exchange_alone_would_have_given_a_narrower_bound() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        let exchanges = around(&mut world, 3 + (seed as usize % 50), 1.0, seed);
        let offset = world.offset(&exchanges).unwrap();
        for at in 0..10 {
            let theirs = world.theirs.read(PS_PER_S * at / 10);
            let alone = |stamps: &Exchange| {
                // Half the round trip, and the drift since then: both limits of 200 ppm, relative
                // to the nominal rates.
                let rate = world.nominal.0.tick_hz / world.nominal.1.tick_hz;
                let gap = |stamp: u64| theirs.wrapping_sub(stamp).cast_signed().unsigned_abs() as f64 * rate;
                let unexplained = stamps.returned - stamps.sent;
                let inside = (stamps.answered - stamps.arrived) as f64 * rate;
                (unexplained as f64 - inside * (1.0 - 400e-6)) / 2.0
                    + (gap(stamps.arrived) + gap(stamps.answered)) / 2.0 * 400.2e-6
                    + 2.0 * rate.max(1.0)
            };
            let least = exchanges.iter().map(alone).fold(f64::MAX, f64::min);
            let Interval { least: from, largest: to } = offset.interval(theirs);
            let half = (to - from) as f64 / 2.0;
            assert!(half <= least, "run {seed}: {half} ticks instead of {least}");
        }
    }
}

#[test]
fn exchanges_on_both_sides_bound_what_lies_between_by_their_round_trips() {
    // 20 on each side, 10 s apart, of at least 1 us each way: the crystals' 400 ppm alone would add
    // 2 ms.
    let mut world = World::new(7);
    (world.transit_ns, world.ours, world.theirs) =
        ((1e3, 1e3), Counter::new(1e9, 150.0, 0), Counter::new(1e9, -180.0, 1 << 62));
    world.nominal = (nominal(1e9, 200.0), nominal(1e9, 200.0));
    let mut exchanges = world.exchanges(20, -0.1, 0.0);
    let before = world.offset(&exchanges).unwrap();
    exchanges.extend(world.exchanges(20, 10.0, 10.1));
    let both = world.offset(&exchanges).unwrap();
    let span = [0, 10 * PS_PER_S].map(|time| world.theirs.read(time));
    assert!(both.bound_ns(span[0], span[1]) < 3e3, "{} ns", both.bound_ns(span[0], span[1]));
    assert!(before.bound_ns(span[0], span[1]) > 50e3, "{} ns", before.bound_ns(span[0], span[1]));
    // After the last exchange the bound widens by the uncertainty of the drift.
    let widths = [11, 20, 100, 1000].map(|s| both.elapsed(0, world.theirs.read(s * PS_PER_S)).bound_ns);
    assert!(widths.is_sorted_by(|one, other| one < other), "{widths:?}");
    let (least, largest) = both.drift_ppm();
    assert!(least < -329.9 && largest > -330.1 && largest - least < 1.0, "{least} to {largest}");
}

#[test]
fn messages_that_arrive_before_they_are_sent_are_not_explained() {
    // Shows that the tests above can fail: transit times of -20 us and less on the way out, and
    // longer ones back.
    let mut wrong = 0;
    for seed in 0..200 {
        let mut world = World::new(seed);
        world.transit_ns = (300.0, 300.0);
        let hz = world.nominal.1.tick_hz;
        let mut exchanges = around(&mut world, 100, 1.0, seed);
        for stamps in &mut exchanges {
            (stamps.arrived, stamps.answered) =
                (stamps.arrived - (20e-6 * hz) as u64, stamps.answered - (20e-6 * hz) as u64);
        }
        wrong += u32::from(!world.offset(&exchanges).is_ok_and(|offset| world.holds(&offset, 0.5)));
    }
    assert_eq!(wrong, 200);
}

#[test]
fn a_clock_that_is_set_or_changes_its_rate_is_found() {
    for (seed, step_ticks) in [(1, 1_000_000), (2, -1_000_000), (3, 3_600_000_000_000i64)] {
        let mut world = World::new(seed);
        world.transit_ns = (1e3, 2e3);
        let mut exchanges = world.exchanges(100, 0.0, 1.0);
        exchanges.sort_by_key(|stamps| stamps.sent);
        for stamps in &mut exchanges[50..] {
            stamps.arrived = stamps.arrived.wrapping_add_signed(step_ticks);
            stamps.answered = stamps.answered.wrapping_add_signed(step_ticks);
        }
        assert_eq!(world.offset(&exchanges).unwrap_err(), Reason::NotConstant { exchanges: 100 });
    }
    // 100 ppm faster in the second half: at most 50 us, and the round trips are similar.
    let mut world = World::new(4);
    (world.transit_ns, world.theirs) = ((1e3, 1e3), Counter::new(1e9, 50.0, 0));
    world.nominal.1 = nominal(1e9, 200.0);
    let mut exchanges = world.exchanges(50, 0.0, 1.0);
    world.theirs = Counter::new(1e9, 150.0, -100_000);
    exchanges.extend(world.exchanges(50, 1.0, 2.0));
    assert_eq!(world.offset(&exchanges).unwrap_err(), Reason::NotConstant { exchanges: 100 });
}

#[test]
fn a_drift_that_no_crystal_has_is_found() {
    let mut world = World::new(1);
    (world.transit_ns, world.ours, world.theirs) =
        ((1e3, 1e3), Counter::new(1e9, 0.0, 0), Counter::new(1e9, 5000.0, 0));
    world.nominal = (nominal(1e9, 200.0), nominal(1e9, 200.0));
    let exchanges = world.exchanges(100, 0.0, 1.0);
    let reason = world.offset(&exchanges).unwrap_err();
    let Reason::Drift { least_ppm, largest_ppm, limit_ppm } = reason else { panic!("{reason:?}") };
    assert!(least_ppm <= 5000.0 && largest_ppm >= 5000.0 && largest_ppm - least_ppm < 50.0, "{reason:?}");
    assert!((limit_ppm - 400.0).abs() < 1.0, "{reason:?}");
    let text = Reason::Drift { least_ppm: 4999.0, largest_ppm: 5001.26, limit_ppm: 400.08 }.to_string();
    assert_eq!(
        text,
        "the two clocks cannot be compared: they drift by 4999.0 to 5001.3 ppm and at most 400 ppm are credible; wait \
         until whatever slews one of them (chronyd, ntpd, adjtime) is done"
    );
}

/// A clock whose rate changes half way through, with exchanges at the start and the end, 10 s from
/// the change. In the returned world it runs at the rate of the second half, which is true from 0
/// on.
fn wandering(change_ppm: f64, wander_ppm: f64) -> (World, Offset) {
    let mut world = World::new(11);
    (world.transit_ns, world.ours) = ((200.0, 200.0), Counter::new(1e9, 0.0, 1 << 40));
    world.nominal = [0.0, wander_ppm].map(|wander_ppm| Nominal { wander_ppm, ..nominal(1e9, 200.0) }).into();
    world.theirs = Counter::new(1e9, -change_ppm, 1 << 40);
    let mut exchanges = world.exchanges(200, -10.0, -9.9);
    world.theirs = Counter::new(1e9, change_ppm, 1 << 40);
    exchanges.extend(world.exchanges(200, 9.9, 10.0));
    let offset = world.offset(&exchanges).unwrap();
    (world, offset)
}

#[test]
fn a_rate_that_changes_within_its_wander_stays_within_the_bound() {
    // 0.1 ppm for 10 s is 1 us, five times the least transit times.
    let outside = |(world, offset): (World, Offset)| {
        (0..=60).filter(|&s| !world.holds(&offset, f64::from(s) / 2.0)).count()
    };
    assert_eq!(outside(wandering(0.1, 0.1)), 0);
    // Without the wander it does not hold.
    assert!(outside(wandering(0.1, 0.0)) > 20);
}

#[test]
fn wander_widens_by_half_of_it_over_the_span() {
    let (world, steady) = wandering(0.0, 0.0);
    let (_, wandering) = wandering(0.0, 0.5);
    let bound = |offset: &Offset, s: i128| offset.elapsed(0, world.theirs.read(s * PS_PER_S)).bound_ns;
    // A quarter of 0.5 ppm of 20 s is 2.5 us, in the constraints and in the results.
    // Slopes also have an effect.
    let wider = bound(&wandering, 0) - bound(&steady, 0);
    assert!((4_990.0..5_020.0).contains(&wider), "{wider}");
    let beyond = bound(&wandering, 30) - bound(&steady, 30);
    assert!(beyond > 5_000.0 + 20.0 * 1_000.0 - 20.0, "{beyond}");
}

#[test]
fn one_clock_is_not_refuted_and_two_are() {
    let mut world = World::new(3);
    (world.theirs, world.nominal.1) = (world.ours, world.nominal.0);
    let exchanges = world.exchanges(50, 0.0, 1.0);
    assert!(holds_one_clock(&exchanges, 0) && holds_one_clock(&[], 0));
    // 10,000,000 ticks later, as in another time namespace.
    let shifted: Vec<Exchange> = exchanges
        .iter()
        .map(|stamps| Exchange {
            arrived: stamps.arrived + 10_000_000,
            answered: stamps.answered + 10_000_000,
            ..*stamps
        })
        .collect();
    assert!(!holds_one_clock(&shifted, 0) && !holds_one_clock(&shifted, 9_000_000));
    assert!(holds_one_clock(&shifted, 10_000_000));
    // 200 ppm apart and equal at the start.
    let mut world = World::new(5);
    for drift_ppm in [-200.0, 200.0] {
        (world.transit_ns, world.ours, world.theirs) =
            ((1e3, 1e3), Counter::new(1e9, 0.0, 9), Counter::new(1e9, drift_ppm, 9));
        assert!(!holds_one_clock(&world.exchanges(50, 0.0, 1.0), 0));
        assert!(!holds_one_clock(&world.exchanges(50, 0.0, 1.0), 1 << 40), "no shift makes it one");
    }
}

fn one_rate(exchanges: &[Exchange]) -> Offset {
    Offset::of(exchanges, nominal(1e9, 700.0), nominal(1e9, 700.0)).unwrap()
}

#[test]
fn one_exchange_is_enough_and_exact() {
    // 100 out, 50 at rest and 300 back, with the remote clock 1000 ahead.
    let exchange = Exchange { sent: 5000, arrived: 6100, answered: 6150, returned: 5450 };
    let offset = Offset::of(&[exchange], nominal(1e9, 0.0), nominal(1e9, 0.0)).unwrap();
    // The remote clock is ahead by 700 to 1100. The clocks' own ticks add one on either side, and
    // rounding outwards another.
    assert_eq!(offset.interval(6100), Interval { least: 4998, largest: 5402 });
    assert_eq!(offset.interval(7100), Interval { least: 5998, largest: 6402 });
    let elapsed = offset.elapsed(5000, 6100);
    assert_eq!(elapsed.ns, 200.0);
    assert!((elapsed.bound_ns - 202.0).abs() < 1e-9, "{elapsed:?}");
    assert_eq!(offset.elapsed(5250, 6100).ns, -50.0);
}

#[test]
fn counters_may_pass_their_end_between_stamps() {
    let exchange = |ours: u64, theirs: u64| Exchange {
        sent: ours,
        arrived: theirs.wrapping_add(100),
        answered: theirs.wrapping_add(150),
        returned: ours + 300,
    };
    let exchanges = [exchange(1000, u64::MAX - 120), exchange(11_000, 9_879)];
    let offset = one_rate(&exchanges);
    let elapsed = offset.elapsed(1000, 4_999);
    assert!((elapsed.ns - 5_050.0).abs() <= elapsed.bound_ns && elapsed.bound_ns < 140.0, "{elapsed:?}");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let good = Exchange { sent: 0, arrived: 10, answered: 20, returned: 30 };
    let hz = nominal(1e9, 100.0);
    let why =
        |exchanges: &[Exchange], ours, theirs| Offset::of(exchanges, ours, theirs).unwrap_err().to_string();
    assert!(why(&[], hz, hz).contains("no messages were exchanged"));
    assert_eq!(
        why(&[good, Exchange { returned: 0, sent: 1, ..good }], hz, hz),
        "the two clocks cannot be compared: our clock went back during exchange 2; bind the processes to CPUs, or use a \
         clock that is the same on all CPUs"
    );
    assert!(
        why(&[Exchange { answered: 9, ..good }], hz, hz).contains("their clock went back during exchange 1")
    );
    let far = Exchange { arrived: 1 << 62, answered: 1 << 62, ..good };
    assert!(why(&[good, far], hz, hz).contains("stamps of their clock lie more than 2^60 ticks apart"));
    for bad in [f64::NAN, f64::INFINITY, 0.0, -1e9, 1e13] {
        assert!(why(&[good], nominal(bad, 1.0), hz).contains("our clock is said to run at"), "{bad}");
        assert!(
            why(&[good], hz, Nominal { drift_ppm: bad * 1e9 - 1.0, ..hz }).contains("drift by up to"),
            "{bad}"
        );
        assert!(
            why(&[good], hz, Nominal { wander_ppm: bad * 1e9 - 1.0, ..hz }).contains("wander by up to"),
            "{bad}"
        );
    }
}

#[test]
fn a_skewed_clock_of_another_thread_is_found_within_the_bound() {
    const WAIT: Duration = Duration::from_secs(20);
    let clock = Clock::monotonic();
    let skew: Skew = "offset=-7h,drift=137ppm".parse().unwrap();
    let (to, questions) = mpsc::channel::<()>();
    let (answers, from) = mpsc::channel::<(u64, u64)>();
    let other = std::thread::spawn(move || {
        while questions.recv_timeout(WAIT).is_ok() {
            let arrived = clock.now().0;
            let answered = clock.now().0;
            if answers.send((arrived, answered)).is_err() {
                return;
            }
        }
    });
    let skewed = |ticks| skew.apply(ticks, clock.tick_hz());
    let ask = || {
        let sent = clock.now().0;
        to.send(()).unwrap();
        let (arrived, answered) = from.recv_timeout(WAIT).expect("the other thread answers");
        Exchange { sent, arrived: skewed(arrived), answered: skewed(answered), returned: clock.now().0 }
    };
    let mut exchanges: Vec<Exchange> = (0..100).map(|_| ask()).collect();
    let start = clock.now();
    while clock.now().since(start) < 20_000_000 {
        std::thread::yield_now();
    }
    let end = clock.now();
    exchanges.extend((0..100).map(|_| ask()));
    drop(to);
    other.join().unwrap();

    let offset = Offset::of(&exchanges, Nominal::of(&clock), Nominal::of(&clock)).unwrap();
    for at in 0..=20 {
        let truth = start.0 + end.since(start) * at / 20;
        let Interval { least, largest } = offset.interval(skewed(truth));
        assert!(least <= i128::from(truth) && i128::from(truth) <= largest, "{truth}: {least} to {largest}");
    }
    assert!(!holds_one_clock(&exchanges, 1_000_000_000), "it is 7 hours off");
    let (least, largest) = offset.drift_ppm();
    assert!(least <= 137.0 && 137.0 <= largest, "{least} to {largest} ppm");
}
