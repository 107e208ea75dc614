//! Packets through a pipeline: a message waits for some stages one after the other, and for others
//! at the same time.
//!
//! The first packet of a message goes through everything in turn: the host that writes or the
//! adapter that fetches it, and the link. So its bytes take the time of all stages, and the bytes
//! around the payload take time on the link too. Further packets follow in the pipeline, with the
//! distance that the slowest stage needs: the link, or another stage that does not depend on the
//! link's rate. Up to some size the host hands the payload over with the request. Beyond that size
//! the adapter fetches it, which takes a further step.
//!
//! With n the size, f = min(n, MTU), and w the time of a byte at the link's data rate (`link`:
//! after the line code):
//!
//! ```text
//! t = base + (carried + line f) w + up to `inline`: host f;  beyond: step + fetch f
//!          + (n - f) max(line w (MTU + headers) / MTU, least)
//! ```

use measure::stats::fit::{Fit, Unfit};

use super::column::{Cell, Column, Packing, sizes};
use crate::link::Generation;

/// The model, fitted to columns of several rates.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) packing: Packing,
    /// The largest size that the host hands over.
    pub(super) inline: u64,
    /// The smallest size that the adapter is known to fetch.
    pub(super) fetched: u64,
    pub(super) fit: Fit,
}

/// The names and units of the parameters, in the order of [`Fit::parameters`].
pub(super) const PARAMETERS: [(&str, &str); 7] = [
    ("base", "ns"),
    ("carried", "B"),
    ("line", ""),
    ("host", "ns/B"),
    ("step", "ns"),
    ("fetch", "ns/B"),
    ("least", "ns/B"),
];

/// The index of `least`, which not every table determines.
const LEAST: usize = 6;

impl Packets {
    /// Finds the model with the smallest sum of squared errors of logarithms, over all sizes up to
    /// which payloads may be handed over.
    pub(super) fn of(columns: &[&Column], packing: Packing) -> Result<Self, Unfit> {
        let sizes = sizes(columns);
        let pairs = sizes.windows(2).filter(|pair| pair[1] < packing.mtu);
        let too_few = Unfit::TooFew { residuals: sizes.len(), parameters: PARAMETERS.len() };
        Self::best(pairs.map(|pair| Self::with(columns, packing, pair[0], pair[1]))).unwrap_or(Err(too_few))
    }

    /// The model with the smallest sum, or the error of the last one if all fail; `None` without
    /// any.
    fn best(models: impl Iterator<Item = Result<Self, Unfit>>) -> Option<Result<Self, Unfit>> {
        models.reduce(|best, model| match (&best, &model) {
            (Ok(least), Ok(other)) if other.fit.sum >= least.fit.sum => best,
            (Ok(_), Err(_)) => best,
            _ => model,
        })
    }

    /// The best of the models in which further packets wait for the link, except that at some of
    /// the fastest rates they wait for another stage. Models that contradict themselves do not
    /// count.
    pub(super) fn with(
        columns: &[&Column],
        packing: Packing,
        inline: u64,
        fetched: u64,
    ) -> Result<Self, Unfit> {
        let mut rates: Vec<Generation> = columns.iter().filter_map(|column| column.generation).collect();
        rates.sort_unstable_by_key(|rate| rate.data_bits_per_s(LANES));
        let models = (0..=rates.len()).map(|free| {
            let (waiting, limited) = rates.split_at(free);
            let model = Self { packing, inline, fetched, fit: fit(columns, packing, inline, limited)? };
            let least = model.fit.parameters.get(LEAST).map(|least| least.value);
            let link = |rate: &Generation| link_ns(&model.values(), *rate, packing);
            let holds = waiting.iter().all(|rate| least.is_none_or(|least| least <= link(rate)))
                && limited.iter().all(|rate| least.is_some_and(|least| least > link(rate)));
            holds.then_some(model).ok_or(Unfit::Endless)
        });
        // The simplest model, in which packets always wait for the link, is the last; its error is
        // the reason if all models fail.
        Self::best(models).unwrap_or(Err(Unfit::Endless))
    }

    /// Its value for a size at a rate, in ns.
    pub(super) fn at(&self, rate: Generation, size: u64) -> f64 {
        let values = self.values();
        let link = link_ns(&values, rate, self.packing);
        let further = values.get(LEAST).map_or(link, |least| link.max(*least));
        time(&values, rate, size, self.packing.mtu, self.inline, further)
    }

    fn values(&self) -> Vec<f64> {
        self.fit.parameters.iter().map(|parameter| parameter.value).collect()
    }
}

/// Fits the parameters where further packets wait for the link, except at the rates in `limited`.
fn fit(columns: &[&Column], packing: Packing, inline: u64, limited: &[Generation]) -> Result<Fit, Unfit> {
    let rated = columns.iter().filter_map(|column| Some((column.generation?, &column.cells)));
    let cells: Vec<(Generation, Cell)> =
        rated.flat_map(|(rate, cells)| cells.iter().map(move |cell| (rate, *cell))).collect();
    let base = cells.iter().map(|(_, cell)| cell.ns).fold(f64::INFINITY, f64::min);
    let least = limited.first().map_or(0.0, |rate| byte_ns(*rate));
    let start = [base, 100.0, 1.0, 1.0, base, 1.0, least];
    let count = if limited.is_empty() { LEAST } else { PARAMETERS.len() };
    Fit::least_squares(&start[..count], |at| {
        let error = |(rate, cell): &(Generation, Cell)| {
            let further = if limited.contains(rate) { at[LEAST] } else { link_ns(at, *rate, packing) };
            time(at, *rate, cell.size, packing.mtu, inline, further).ln() - cell.ns.ln()
        };
        cells.iter().map(error).collect()
    })
}

/// The time of a byte at the data rate of a link, in ns.
fn byte_ns(rate: Generation) -> f64 {
    8e9 / rate.data_bits_per_s(LANES) as f64
}

/// The time of a byte of full packets on a link, in ns.
fn link_ns(at: &[f64], rate: Generation, packing: Packing) -> f64 {
    at[2] * byte_ns(rate) * (1.0 + packing.header_bytes as f64 / packing.mtu as f64)
}

/// The time of a message whose packets after the first take `further` ns for each byte; see the
/// documentation of this module.
fn time(at: &[f64], rate: Generation, size: u64, mtu: u64, inline: u64, further: f64) -> f64 {
    let [base, carried, line, host, step, fetch] = [at[0], at[1], at[2], at[3], at[4], at[5]];
    let first = size.min(mtu) as f64;
    let beside = if size <= inline { host * first } else { step + fetch * first };
    base + (carried + line * first) * byte_ns(rate) + beside + further * size.saturating_sub(mtu) as f64
}

/// Lanes of the modelled links: all published ones, and the link models of softdev.
pub(super) const LANES: u64 = 4;
