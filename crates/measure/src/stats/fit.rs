//! Least squares: the parameters of a model that fit the observations best, each with its 95 %
//! interval.

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

use super::shape::Estimate;

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters in their order. Their intervals are those of Student's t over the model's
    /// linearisation at the minimum (Seber and Wild, Nonlinear Regression, section 5.1). They are
    /// right if the residuals are independent and of one size, and the model is true.
    pub parameters: Vec<Estimate>,
    /// The smallest sum of squared residuals.
    pub sum: f64,
    /// The number of residuals minus the number of parameters.
    pub degrees: usize,
}

/// Why a fit failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// An interval needs more residuals than parameters.
    #[error("{residuals} observations are too few for {parameters} parameters")]
    TooFew {
        /// The number of residuals.
        residuals: usize,
        /// The number of parameters.
        parameters: usize,
    },
    /// The observations do not depend on a parameter, or depend on it only together with those
    /// before it.
    #[error("the observations do not determine parameter {0}")]
    Undetermined(usize),
    /// The model has no number where the search starts, or the search does not end.
    #[error("the search for the least squares did not end")]
    Endless,
}

impl Fit {
    /// Finds the parameters near `start` that minimise the sum of the squares of `residuals`, by
    /// the method of Levenberg and Marquardt (Marquardt 1963, SIAM Journal 11, 431-441). `start`
    /// holds each parameter's order of magnitude and is nowhere zero. Where the model has no
    /// number, `residuals` returns an infinite one or NaN.
    ///
    /// # Errors
    ///
    /// If the residuals do not determine the parameters.
    pub fn least_squares(start: &[f64], residuals: impl Fn(&[f64]) -> Vec<f64>) -> Result<Self, Unfit> {
        let scales: Vec<f64> = start.iter().map(|start| start.abs()).collect();
        let mut at = start.to_vec();
        let mut here = residuals(&at);
        let rows = here.len();
        let parameters = at.len();
        if rows <= parameters {
            return Err(Unfit::TooFew { residuals: rows, parameters });
        }
        let mut sum = squares(&here);
        let mut damping = DAMPING;
        for _ in 0..ROUNDS_MAX {
            if !sum.is_finite() || damping > DAMPING_MAX {
                break;
            }
            let columns = slopes(&residuals, &at, &scales);
            let step = damped(&columns, &here, damping);
            let next: Vec<f64> =
                at.iter().zip(&step).zip(&scales).map(|((at, step), scale)| at - step * scale).collect();
            let there = residuals(&next);
            let next_sum = squares(&there);
            if next_sum.is_nan() || next_sum > sum {
                damping *= HARDER;
                continue;
            }
            let is_done = sum - next_sum <= ENOUGH * sum && squares(&step) <= ENOUGH;
            (at, here, sum, damping) = (next, there, next_sum, damping / SOFTER);
            if is_done {
                return Self::at(&at, &scales, &slopes(&residuals, &at, &scales), sum);
            }
        }
        // At the limit of floating point, no step lowers the sum any more.
        match sum.is_finite() && damping > DAMPING_MAX {
            true => Self::at(&at, &scales, &slopes(&residuals, &at, &scales), sum),
            false => Err(Unfit::Endless),
        }
    }

    /// Standard deviation of the residuals about the model.
    pub fn deviation(&self) -> f64 {
        (self.sum / self.degrees as f64).sqrt()
    }

    /// The probability of a sum of squares as large or larger, if the model is true and the
    /// residuals are in units of their standard deviation. A small probability shows that the model
    /// does not fit (Pearson's test, with the remaining degrees of freedom).
    pub fn chance(&self) -> f64 {
        ChiSquared::new(self.degrees as f64).map_or(f64::NAN, |squares| squares.sf(self.sum))
    }

    fn at(at: &[f64], scales: &[f64], columns: &[Vec<f64>], sum: f64) -> Result<Self, Unfit> {
        let rows = columns.first().map_or(0, Vec::len);
        let triangle = Triangle::of(columns.to_vec(), vec![0.0; rows]);
        let degrees = rows - at.len();
        let student = StudentsT::new(0.0, 1.0, degrees as f64).map_err(|_| Unfit::Endless)?;
        let quantile = student.inverse_cdf(0.975);
        let variance = sum / degrees as f64;
        let variances = triangle.variances()?;
        let estimate = |((at, scale), of_one): ((&f64, &f64), f64)| {
            let half = quantile * (of_one * variance).sqrt() * scale;
            Estimate { value: *at, low: at - half, high: at + half }
        };
        let parameters = at.iter().zip(scales).zip(variances).map(estimate).collect();
        Ok(Self { parameters, sum, degrees })
    }
}

/// The slope of each residual in each parameter, in units of its scale: a column for each
/// parameter.
fn slopes(residuals: impl Fn(&[f64]) -> Vec<f64>, at: &[f64], scales: &[f64]) -> Vec<Vec<f64>> {
    let slope = |(index, scale): (usize, &f64)| {
        let beside = |sign: f64| {
            let mut beside = at.to_vec();
            beside[index] += sign * NEAR * scale;
            residuals(&beside)
        };
        beside(1.0).iter().zip(beside(-1.0)).map(|(above, below)| (above - below) / (2.0 * NEAR)).collect()
    };
    scales.iter().enumerate().map(slope).collect()
}

/// The step of Levenberg and Marquardt, in units of the scales.
fn damped(columns: &[Vec<f64>], here: &[f64], damping: f64) -> Vec<f64> {
    let norms: Vec<f64> = columns.iter().map(|column| squares(column).sqrt()).collect();
    let extended = columns.iter().zip(&norms).enumerate().map(|(index, (column, norm))| {
        let mut column = column.clone();
        column.extend((0..columns.len()).map(|row| if row == index { damping.sqrt() * norm } else { 0.0 }));
        column
    });
    let mut right = here.to_vec();
    right.resize(here.len() + columns.len(), 0.0);
    Triangle::of(extended.collect(), right).solve()
}

/// A tall system after Householder's reflections: an upper triangle, and its right side (Golub and
/// Van Loan, Matrix Computations, 4th ed., sections 5.1 and 5.3).
struct Triangle {
    /// The triangle by columns.
    columns: Vec<Vec<f64>>,
    right: Vec<f64>,
    /// The original length of each column.
    norms: Vec<f64>,
}

impl Triangle {
    fn of(mut columns: Vec<Vec<f64>>, mut right: Vec<f64>) -> Self {
        let norms = columns.iter().map(|column| squares(column).sqrt()).collect();
        for pivot in 0..columns.len() {
            let mut mirror = columns[pivot][pivot..].to_vec();
            mirror[0] += squares(&mirror).sqrt().copysign(mirror[0]);
            let length = squares(&mirror);
            if length == 0.0 {
                continue;
            }
            for column in columns[pivot..].iter_mut().chain([&mut right]) {
                let product: f64 = mirror.iter().zip(&column[pivot..]).map(|(a, b)| a * b).sum();
                let twice = 2.0 * product / length;
                column[pivot..].iter_mut().zip(&mirror).for_each(|(cell, mirror)| *cell -= twice * mirror);
            }
        }
        Self { columns, right, norms }
    }

    /// The solution; zero for parameters that nothing determines.
    fn solve(&self) -> Vec<f64> {
        let count = self.columns.len();
        let mut solution = vec![0.0; count];
        for row in (0..count).rev() {
            let known: f64 = (row + 1..count).map(|other| self.columns[other][row] * solution[other]).sum();
            let pivot = self.columns[row][row];
            solution[row] = if pivot == 0.0 { 0.0 } else { (self.right[row] - known) / pivot };
        }
        solution
    }

    /// The diagonal of the inverse of the normal matrix: the variance of each parameter for
    /// residuals with variance one.
    fn variances(&self) -> Result<Vec<f64>, Unfit> {
        let count = self.columns.len();
        let is_determined = |index: &usize| self.columns[*index][*index].abs() > TOLD * self.norms[*index];
        if let Some(index) = (0..count).find(|index| !is_determined(index)) {
            return Err(Unfit::Undetermined(index));
        }
        // Computes a row of the triangle's inverse at a time: that matrix times its transpose is
        // the inverse of the normal matrix.
        let mut variances = vec![0.0; count];
        for end in 0..count {
            let mut inverse = vec![0.0; end + 1];
            inverse[end] = 1.0 / self.columns[end][end];
            for row in (0..end).rev() {
                let known: f64 = (row + 1..=end).map(|other| self.columns[other][row] * inverse[other]).sum();
                inverse[row] = -known / self.columns[row][row];
            }
            variances.iter_mut().zip(&inverse).for_each(|(variance, cell)| *variance += cell * cell);
        }
        Ok(variances)
    }
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

const ROUNDS_MAX: usize = 1000;
const DAMPING: f64 = 1e-3;
const DAMPING_MAX: f64 = 1e16;
const HARDER: f64 = 4.0;
const SOFTER: f64 = 3.0;
/// The distance, in units of a parameter's scale, over which the slope is measured: the third root
/// of what a double resolves.
const NEAR: f64 = 1e-5;
/// A step is the last one if it is shorter than the root of this and lowers the sum by no more than
/// this share of it.
const ENOUGH: f64 = 1e-18;
/// The part of a column that is independent of the others must be more than this share of it.
const TOLD: f64 = 1e-7;

#[cfg(test)]
mod tests;
