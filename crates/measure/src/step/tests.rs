//! Seeded series: known shifts are found at their places, and noise is not taken for a shift.

use super::*;
use crate::random::Random;

fn false_alarms(trials: usize, blocks: usize, mut noise: impl FnMut(&mut Random) -> f64) -> f64 {
    let mut random = Random(42);
    let mut alarm = || step(&(0..blocks).map(|_| noise(&mut random)).collect::<Vec<_>>()).is_some();
    (0..trials).filter(|_| alarm()).count() as f64 / trials as f64
}

fn share_found(
    trials: usize,
    mut series: impl FnMut(&mut Random) -> Vec<f64>,
    is_right: impl Fn(Step) -> bool,
) -> f64 {
    let mut random = Random(7);
    let mut found = || step(&series(&mut random)).is_some_and(&is_right);
    (0..trials).filter(|_| found()).count() as f64 / trials as f64
}

/// 64 blocks at 140 ns, and at `ratio` times that from `start` to `end`, with normal noise of
/// `noise` of the level.
fn shifted(random: &mut Random, start: usize, end: usize, ratio: f64, noise: f64) -> Vec<f64> {
    let level = |block| if (start..end).contains(&block) { 140.0 * ratio } else { 140.0 };
    (0..64).map(|block| level(block) * (1.0 + noise * random.normal())).collect()
}

#[test]
fn one_step_is_found_where_it_is() {
    let mut blocks = vec![50.0; 64];
    blocks[20..].fill(246.0);
    let expected = Step { at_share: 20.0 / 64.0, back_at_share: None, before_ns: 50.0, after_ns: 246.0 };
    assert_eq!(step(&blocks), Some(expected));
    blocks.reverse();
    let expected = Step { at_share: 44.0 / 64.0, back_at_share: None, before_ns: 246.0, after_ns: 50.0 };
    assert_eq!(step(&blocks), Some(expected));
}

#[test]
fn an_excursion_with_both_ends_agreeing_is_found() {
    let mut blocks = vec![140.0; 64];
    blocks[30..33].fill(550.0);
    let excursion = step(&blocks).expect("three blocks at four times the level");
    assert_eq!((excursion.at_share, excursion.back_at_share), (30.0 / 64.0, Some(33.0 / 64.0)));
    assert_eq!((excursion.before_ns, excursion.after_ns), (140.0, 550.0));
}

#[test]
fn two_blocks_are_not_sustained() {
    let mut blocks = vec![140.0; 64];
    blocks[30..32].fill(550.0);
    assert_eq!(step(&blocks), None);
    blocks[10] = 550.0;
    assert_eq!(step(&blocks), None, "three high blocks, but not in a row");
}

#[test]
fn a_level_that_comes_and_goes_is_found() {
    let blocks: Vec<f64> = (0..64).map(|block| if block / 8 % 2 == 0 { 50.0 } else { 250.0 }).collect();
    let shift = step(&blocks).expect("eight levels in turn");
    assert_eq!((shift.at_share, shift.back_at_share), (8.0 / 64.0, Some(16.0 / 64.0)));
}

#[test]
fn a_shift_below_the_ratio_is_none() {
    let series = |ratio: f64| shifted(&mut Random(1), 32, 64, ratio, 0.0);
    assert_eq!(step(&series(1.19)), None);
    assert!(step(&series(1.21)).is_some());
}

#[test]
fn a_step_is_found_in_spite_of_noise_and_stray_blocks() {
    let near = |share: f64, block: f64| (share * 64.0 - block).abs() <= 2.0;
    let step_at_20 = |step: Step| near(step.at_share, 20.0) && step.back_at_share.is_none();
    let found = share_found(1000, |random| shifted(random, 20, 64, 1.5, 0.05), step_at_20);
    assert!(found > 0.99, "a step to 1.5 with 5 % noise was found in {found} of the series");

    let stray = |random: &mut Random| {
        let mut blocks = shifted(random, 20, 64, 2.0, 0.05);
        for _ in 0..3 {
            blocks[(random.bits() % 64) as usize] *= 1.0 + 100.0 * random.fraction();
        }
        blocks
    };
    let found = share_found(1000, stray, |step| near(step.at_share, 20.0));
    assert!(found > 0.97, "a step to 2.0 among stray blocks was found in {found} of the series");

    let excursion =
        |step: Step| near(step.at_share, 40.0) && step.back_at_share.is_some_and(|at| near(at, 45.0));
    let found = share_found(1000, |random| shifted(random, 40, 45, 3.9, 0.05), excursion);
    assert!(found > 0.99, "an excursion of 5 blocks was found in {found} of the series");
}

#[test]
fn noise_is_not_taken_for_a_step() {
    // At most CHANCE in the long run, 0.0036 over 10^5 trials; the rest allows for the small number
    // of trials. The seed is fixed, so these numbers do not vary.
    let normal =
        |deviation: f64| move |random: &mut Random| 200.0 * (1.0 + deviation * random.normal()).max(0.01);
    let log_normal = |random: &mut Random| 200.0 * random.normal().exp();
    let pareto = |random: &mut Random| 200.0 * random.fraction().powf(-1.0);
    let cauchy = |random: &mut Random| 200.0 + 50.0 * (random.normal() / random.normal()).abs();
    let bimodal =
        |share: f64| move |random: &mut Random| if random.fraction() < share { 550.0 } else { 140.0 };
    for blocks in [5, 8, 12, 20, 40, 64] {
        let alarms = [
            ("normal 5 %", false_alarms(2000, blocks, normal(0.05))),
            ("normal 30 %", false_alarms(2000, blocks, normal(0.3))),
            ("log-normal", false_alarms(2000, blocks, log_normal)),
            ("Pareto", false_alarms(2000, blocks, pareto)),
            ("Cauchy", false_alarms(2000, blocks, cauchy)),
            ("5 % of a second mode", false_alarms(2000, blocks, bimodal(0.05))),
            ("20 % of a second mode", false_alarms(2000, blocks, bimodal(0.2))),
            ("50 % of a second mode", false_alarms(2000, blocks, bimodal(0.5))),
        ];
        for (noise, share) in alarms {
            assert!(share <= 0.008, "{blocks} blocks of {noise} noise: {share} false alarms");
        }
    }
    let alarms = false_alarms(2000, 64, normal(0.05));
    assert_eq!(alarms, 0.0, "levels within 20 % are no step, whatever their order");
}

#[test]
fn a_ramp_is_drift_and_not_a_step() {
    let blocks: Vec<f64> = (0..64).map(|block| 100.0 * 1.03f64.powi(block)).collect();
    assert_eq!(step(&blocks), None);
}

#[test]
fn degenerate_series_have_no_step() {
    for len in 0..=8 {
        assert_eq!(step(&vec![100.0; len]), None);
        let halves: Vec<f64> = (0..len).map(|block| if 2 * block < len { 100.0 } else { 300.0 }).collect();
        assert_eq!(step(&halves), None, "{len} blocks are too few");
    }
    assert_eq!(step(&[0.0; 64]), None);
    let mut blocks = vec![100.0; 64];
    blocks[32..].fill(300.0);
    blocks[3] = f64::NAN;
    assert_eq!(step(&blocks), None);
}

#[test]
fn from_zero_is_a_step() {
    let mut blocks = vec![0.0; 64];
    blocks[32..].fill(300.0);
    assert_eq!(step(&blocks).map(|step| (step.before_ns, step.after_ns)), Some((0.0, 300.0)));
}

/// Every order of a few blocks, counted.
#[test]
fn the_chance_of_runs_is_that_of_counting() {
    for (len, high) in [(8, 4), (10, 3), (12, 6), (12, 1)] {
        let orders: Vec<Vec<bool>> = (0u32..1 << len)
            .filter(|order| order.count_ones() == high)
            .map(|order| (0..len).map(|block| order >> block & 1 == 1).collect())
            .collect();
        for order in orders.iter().step_by(7) {
            let few = orders.iter().filter(|other| runs(other).len() <= runs(order).len()).count();
            let expected = few as f64 / orders.len() as f64;
            let chance = chance_of_runs(order);
            assert!((chance - expected).abs() < 1e-12, "{order:?}: {chance} instead of {expected}");
        }
    }
}

#[test]
fn placement_changes_above_20_percent_either_way() {
    assert!(!placement_changed(100.0, 120.0));
    assert!(!placement_changed(120.0, 100.0));
    assert!(placement_changed(100.0, 120.1));
    assert!(placement_changed(120.1, 100.0));
    assert!(placement_changed(24.0, 246.0));
    assert!(placement_changed(50.0, 24.0));
    assert!(!placement_changed(26.0, 35.0), "one regime");
    assert!(!placement_changed(0.0, 0.0));
}
