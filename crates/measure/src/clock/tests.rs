//! Conversions are compared with exact rationals, calibration with made-up counters, and the real
//! clock with the system's within bounds that hold on a disturbed machine too.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::calibration::{Pair, fit};
use super::counter::Source;
use super::*;
use crate::record::Scale;

/// Nearest integer to `ticks * 1e9 / hz / divisor`, ties upwards.
fn ns_exactly(ticks: u64, hz: u64, divisor: u128) -> u128 {
    let numerator = u128::from(ticks) * 1_000_000_000;
    let denominator = u128::from(hz) * divisor;
    (2 * numerator + denominator) / (2 * denominator)
}

#[test]
fn ticks_of_the_monotonic_clock_are_nanoseconds() {
    let clock = Clock::monotonic();
    for ticks in [0, 1, 2, 999, 1 << 53, (1 << 53) + 1, u64::MAX - 1, u64::MAX] {
        assert_eq!(clock.ns(ticks), ticks);
    }
    assert_eq!((clock.name(), clock.tick_hz(), clock.tick_error_ppm()), ("clock_monotonic", 1e9, 0.0));
}

#[test]
fn half_is_taken_before_rounding() {
    // At 4 GHz 7 ticks are 1.75 ns, which would round to 2 and then halve to 1; half of 1.75 is
    // 0.875. 5 ticks are 1.25 ns.
    let clock = Clock::with_rate(Source::Tsc, 4e9, 0.0);
    assert_eq!([5, 6, 7].map(|ticks| clock.ns_scaled(ticks, Scale::Whole)), [1, 2, 2]);
    assert_eq!([1, 2, 3, 5, 7].map(|ticks| clock.ns_scaled(ticks, Scale::Half)), [0, 0, 0, 1, 1]);
    assert_eq!(Clock::monotonic().ns_scaled(3, Scale::Half), 2);
}

#[test]
fn more_nanoseconds_than_fit_saturate() {
    let clock = Clock::with_rate(Source::Tsc, 1e6, 0.0);
    assert_eq!(clock.ns(u64::MAX), u64::MAX);
    assert_eq!(clock.ns(u64::MAX / 1000), u64::MAX / 1000 * 1000);
    assert_eq!(clock.ticks(Duration::MAX), u64::MAX);
}

#[test]
fn durations_become_ticks() {
    let clock = Clock::with_rate(Source::Tsc, 2.5e9, 0.0);
    assert_eq!(clock.ticks(Duration::from_millis(1)), 2_500_000);
    assert_eq!(clock.ticks(Duration::from_nanos(1)), 3);
    assert_eq!(clock.ticks(Duration::from_secs(3600)), 9_000_000_000_000);
    assert_eq!(clock.ns_f64(5), 2.0);
}

#[test]
fn a_counter_that_went_back_counts_as_no_time() {
    assert_eq!(Ticks(5).since(Ticks(3)), 2);
    assert_eq!(Ticks(3).since(Ticks(5)), 0);
}

proptest! {
    #[test]
    fn conversion_rounds_to_the_nearest(hz in 1_000_000u64..100_000_000_000, ticks in 0u64..1 << 50) {
        // The error of the rate's last bit times the ticks stays below the distance to a tie.
        let clock = Clock::with_rate(Source::Tsc, hz as f64, 0.0);
        for (scale, divisor) in [(Scale::Whole, 1), (Scale::Half, 2)] {
            let ns = u128::from(clock.ns_scaled(ticks, scale));
            let exactly = ns_exactly(ticks, hz, divisor);
            // The rate has 53 bits: it may break a tie the other way, and is off by 2^-52 of large
            // values.
            prop_assert!(ns.abs_diff(exactly) <= 1 + (exactly >> 52), "{ns} instead of {exactly}");
            if ticks < 1 << 20 && (2_000_000_000 * u128::from(ticks)) % (u128::from(hz) * divisor) != 0 {
                prop_assert_eq!(ns, exactly);
            }
        }
    }

    #[test]
    fn the_bound_on_the_rate_holds(
        hz in 1e8f64..5e9,
        pairs in prop::collection::vec((50u64..100, 0.0f64..1.0), 20..60),
    ) {
        // The system's clock is read somewhere in each bracket.
        let pair = |(index, &(width, place)): (usize, &(u64, f64))| {
            let start = index as f64 * 1e-3 * hz;
            let ns = (start.floor() + place * width as f64) / hz * 1e9;
            Pair { ticks: start as u64 + width / 2, width, ns: ns as u64 }
        };
        let pairs: Vec<Pair> = pairs.iter().enumerate().map(pair).collect();
        let rate = fit(&pairs).unwrap();
        let error_ppm = (rate.tick_hz / hz - 1.0).abs() * 1e6;
        prop_assert!(error_ppm <= rate.error_ppm, "off by {error_ppm} ppm, bound {}", rate.error_ppm);
        // 50 ns of 20 ms at 1e8 Hz are 500 ns in the worst case: the bound is useful.
        prop_assert!(rate.error_ppm < 3.0 * (100.0 / hz * 1e9 + 2.0) / 20e6 * 1e6);
    }
}

/// Pairs of a counter of 2 GHz, a millisecond apart.
fn even_pairs() -> Vec<Pair> {
    (0..50).map(|i| Pair { ticks: 1 << 63 | (i * 2_000_000), width: 60, ns: 7000 + i * 1_000_000 }).collect()
}

#[test]
fn an_even_counter_is_calibrated() {
    let rate = fit(&even_pairs()).unwrap();
    assert!((rate.tick_hz - 2e9).abs() < 1.0, "{rate:?}");
    assert!(rate.error_ppm < 2.0, "{rate:?}");
}

#[test]
fn the_bound_holds_for_errors_that_look_like_another_rate() {
    // The system's clock is read ever later in its bracket, from its start to its end: no residual
    // shows that.
    let mut pairs = even_pairs();
    pairs.iter_mut().enumerate().for_each(|(i, pair)| {
        pair.width = 6000;
        pair.ns = pair.ns + 3000 * i as u64 / 49 - 1500;
    });
    let rate = fit(&pairs).unwrap();
    let error_ppm = (rate.tick_hz / 2e9 - 1.0).abs() * 1e6;
    assert!(
        error_ppm > 50.0 && error_ppm <= rate.error_ppm,
        "off by {error_ppm} ppm, bound {}",
        rate.error_ppm
    );
}

#[test]
fn wide_pairs_do_not_count() {
    let mut pairs = even_pairs();
    pairs[49].width = 100_000;
    pairs[49].ns += 50_000;
    let rate = fit(&pairs).unwrap();
    assert!((rate.tick_hz - 2e9).abs() < 1.0 && rate.error_ppm < 2.0, "{rate:?}");
}

#[test]
fn an_uneven_counter_has_a_large_error() {
    let mut pairs = even_pairs();
    pairs[25..].iter_mut().for_each(|pair| pair.ticks += 1_000_000);
    assert!(fit(&pairs).unwrap().error_ppm > 1000.0);
}

#[test]
fn a_counter_that_stands_or_runs_backwards_is_refused() {
    let mut standing = even_pairs();
    standing.iter_mut().for_each(|pair| pair.ticks = 5);
    assert!(fit(&standing).is_none());
    let mut backwards = even_pairs();
    backwards.iter_mut().for_each(|pair| pair.ticks = u64::MAX - pair.ticks);
    assert!(fit(&backwards).is_none());
    assert!(fit(&even_pairs()[..3]).is_none());
    assert!(fit(&[]).is_none());
}

#[test]
fn a_counter_that_the_kernel_dropped_is_not_offered() {
    assert!(tsc::kernel_offers_tsc("tsc hpet acpi_pm \n"));
    assert!(!tsc::kernel_offers_tsc("hpet acpi_pm \n"));
    assert!(!tsc::kernel_offers_tsc("hyperv_clocksource_tsc_page acpi_pm \n"));
}

#[test]
fn the_clock_agrees_with_the_system() {
    let clock = Clock::calibrate();
    // The interval lies between the inner and the outer readings, even if this thread is
    // interrupted.
    let outer_start = Instant::now();
    let start = clock.now();
    let inner_start = Instant::now();
    std::thread::sleep(Duration::from_millis(20));
    let inner = inner_start.elapsed();
    let ticks = clock.now().since(start);
    let outer = outer_start.elapsed();
    let slack_ns = 0.001 * clock.ns_f64(ticks);
    assert!(clock.ns_f64(ticks) + slack_ns >= inner.as_nanos() as f64, "{clock:?}");
    assert!(clock.ns_f64(ticks) - slack_ns <= outer.as_nanos() as f64, "{clock:?}");
}

#[test]
fn calibrations_agree() {
    let one = Clock::calibrate();
    let other = Clock::calibrate();
    if one.name() == other.name() {
        let ppm = (one.tick_hz() / other.tick_hz() - 1.0).abs() * 1e6;
        // The bounds, and as much again for time synchronisation, which may slew the system's clock
        // between the two.
        assert!(ppm <= one.tick_error_ppm() + other.tick_error_ppm() + 1000.0, "{one:?} {other:?}");
    }
}

#[test]
fn overheads_are_measured() {
    for clock in [Clock::calibrate(), Clock::monotonic()] {
        let cost = StampCost::measure(&clock);
        assert!(cost.stamp_ns > 0.0 && cost.stamp_ns < 1e5, "{cost:?}");
        assert!(cost.empty_loop_ns > 0.0 && cost.empty_loop_ns < 1e5, "{cost:?}");
    }
}

#[test]
fn a_clock_that_is_read_after_loads_goes_on_as_the_other_reading_does() {
    for clock in [Clock::calibrate(), Clock::monotonic()] {
        let [first, second, third] = [clock.now(), clock.now_after_loads(), clock.now()];
        assert!(first <= second && second <= third, "{first:?} {second:?} {third:?}");
    }
}
