//! Fits against the certified results of the NIST Statistical Reference Datasets, and against the
//! true parameters of synthetic data.

use super::*;
use crate::random::Random;

/// A dataset of NIST for nonlinear regression: the observations, and the certified parameters with
/// their standard deviations.
struct Dataset {
    observed: &'static [(f64, f64)],
    certified: &'static [(f64, f64)],
    sum: f64,
    model: fn(&[f64], f64) -> f64,
    start: &'static [f64],
}

/// <https://www.itl.nist.gov/div898/strd/nls/data/misra1a.shtml>, lower difficulty.
const MISRA1A: Dataset = Dataset {
    observed: &[
        (77.6, 10.07),
        (114.9, 14.73),
        (141.1, 17.94),
        (190.8, 23.93),
        (239.9, 29.61),
        (289.0, 35.18),
        (332.8, 40.02),
        (378.4, 44.82),
        (434.8, 50.76),
        (477.3, 55.05),
        (536.8, 61.01),
        (593.1, 66.40),
        (689.1, 75.47),
        (760.0, 81.78),
    ],
    certified: &[(2.3894212918E+02, 2.7070075241E+00), (5.5015643181E-04, 7.2668688436E-06)],
    sum: 1.2455138894E-01,
    model: |b, x| b[0] * (1.0 - (-b[1] * x).exp()),
    start: &[500.0, 0.0001],
};

/// <https://www.itl.nist.gov/div898/strd/nls/data/mgh09.shtml>, higher difficulty.
const MGH09: Dataset = Dataset {
    observed: &[
        (4.0, 1.957E-01),
        (2.0, 1.947E-01),
        (1.0, 1.735E-01),
        (5.0E-01, 1.6E-01),
        (2.5E-01, 8.44E-02),
        (1.67E-01, 6.27E-02),
        (1.25E-01, 4.56E-02),
        (1.0E-01, 3.42E-02),
        (8.33E-02, 3.23E-02),
        (7.14E-02, 2.35E-02),
        (6.25E-02, 2.46E-02),
    ],
    certified: &[
        (1.9280693458E-01, 1.1435312227E-02),
        (1.9128232873E-01, 1.9633220911E-01),
        (1.2305650693E-01, 8.0842031232E-02),
        (1.3606233068E-01, 9.0025542308E-02),
    ],
    sum: 3.0750560385E-04,
    model: |b, x| b[0] * (x * x + x * b[1]) / (x * x + x * b[2] + b[3]),
    start: &[0.25, 0.39, 0.415, 0.39],
};

fn is_near(found: f64, certified: f64) -> bool {
    (found / certified - 1.0).abs() < 1e-5
}

#[test]
fn parameters_and_their_intervals_are_the_certified_ones() {
    for dataset in [MISRA1A, MGH09] {
        let residuals =
            |at: &[f64]| dataset.observed.iter().map(|(x, y)| (dataset.model)(at, *x) - y).collect();
        let fit = Fit::least_squares(dataset.start, residuals).unwrap();
        assert_eq!(fit.degrees, dataset.observed.len() - dataset.certified.len());
        assert!(is_near(fit.sum, dataset.sum), "{fit:?}");
        let student = StudentsT::new(0.0, 1.0, fit.degrees as f64).unwrap().inverse_cdf(0.975);
        for (found, (value, deviation)) in fit.parameters.iter().zip(dataset.certified) {
            assert!(is_near(found.value, *value), "{found:?} for {value}");
            assert!(
                is_near((found.high - found.low) / 2.0 / student, *deviation),
                "{found:?} for {deviation}"
            );
        }
    }
}

/// A line as for latencies: the sizes are powers of two, and errors are shares of the latency.
#[test]
fn the_truth_lies_in_95_of_100_intervals() {
    let sizes: Vec<f64> = (2..=23).map(|power| f64::from(1 << power)).collect();
    let truth = [1000.0, 0.17];
    let mut random = Random(2006);
    let mut inside = [0; 2];
    for _ in 0..1000 {
        let seen: Vec<f64> =
            sizes.iter().map(|size| (truth[0] + truth[1] * size) * (0.02 * random.normal()).exp()).collect();
        let residuals = |at: &[f64]| {
            sizes.iter().zip(&seen).map(|(size, ns)| (at[0] + at[1] * size).ln() - ns.ln()).collect()
        };
        let fit = Fit::least_squares(&[seen[0], seen[21] / sizes[21]], residuals).unwrap();
        for ((inside, truth), found) in inside.iter_mut().zip(truth).zip(&fit.parameters) {
            *inside += u32::from((found.low..=found.high).contains(&truth));
        }
    }
    assert!(inside.iter().all(|inside| (930..=970).contains(inside)), "{inside:?}");
}

#[test]
fn what_the_observations_do_not_determine_has_no_number() {
    let observed: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
    let by = |model: fn(&[f64], f64) -> f64, start: &[f64]| {
        let residuals = |at: &[f64]| (0..).zip(observed).map(|(x, y)| model(at, f64::from(x)) - y).collect();
        Fit::least_squares(start, residuals)
    };
    assert_eq!(by(|b, x| b[0] + b[1] * x + b[2] * x, &[1.0, 1.0, 1.0]), Err(Unfit::Undetermined(2)));
    assert_eq!(by(|b, _| b[0], &[1.0, 1.0]), Err(Unfit::Undetermined(1)));
    assert_eq!(by(|b, _| b[0], &[1.0; 4]), Err(Unfit::TooFew { residuals: 4, parameters: 4 }));
    assert_eq!(by(|b, _| b[0].ln() / 0.0, &[1.0]), Err(Unfit::Endless));
    let exact = by(|b, x| b[0] + b[1] * x, &[1.0, 2.0]).unwrap();
    assert!((exact.parameters[0].value - 1.0).abs() < 1e-9 && (exact.parameters[1].value - 1.0).abs() < 1e-9);
}

#[test]
fn the_chance_is_that_of_the_sum() {
    // The 5 % point of the distribution with two degrees of freedom is -2 ln 0.05.
    let fit = Fit { parameters: Vec::new(), sum: -2.0 * 0.05f64.ln(), degrees: 2 };
    assert!((fit.chance() - 0.05).abs() < 1e-9, "{}", fit.chance());
}
