//! Packets through a pipeline: what a message waits for one after the other, and what it waits for
//! at the same time.
//!
//! The first packet of a message goes through everything in turn: the host that writes or the
//! adapter that fetches it, and the link. So its bytes take the times of all stages, and what
//! surrounds the payload takes time on the link too. The packets after it follow in the pipeline,
//! as far apart as the slowest stage needs: the link, or what is no link and does not know its
//! rate. Up to some size the host hands the payload over with the request; beyond it the adapter
//! fetches it, which takes a step more.
//!
//! With n the size, f = min(n, MTU), and w the time that the link's data rate gives a byte (`link`:
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
    /// The smallest size of which it is known that the adapter fetches it.
    pub(super) fetched: u64,
    pub(super) fit: Fit,
}

/// What a parameter is, in the order of [`Fit::parameters`].
pub(super) const PARAMETERS: [(&str, &str); 7] = [
    ("base", "ns"),
    ("carried", "B"),
    ("line", ""),
    ("host", "ns/B"),
    ("step", "ns"),
    ("fetch", "ns/B"),
    ("least", "ns/B"),
];

/// The place of `least`, which not every table determines.
const LEAST: usize = 6;

impl Packets {
    /// The model with the least sum of squared logarithms' errors, over all sizes up to which
    /// payloads may be handed over.
    pub(super) fn of(columns: &[&Column], packing: Packing) -> Result<Self, Unfit> {
        let sizes = sizes(columns);
        let pairs = sizes.windows(2).filter(|pair| pair[1] < packing.mtu);
        let too_few = Unfit::TooFew { residuals: sizes.len(), parameters: PARAMETERS.len() };
        Self::best(pairs.map(|pair| Self::with(columns, packing, pair[0], pair[1]))).unwrap_or(Err(too_few))
    }

    /// The model with the least sum, or why the last of them is none; `None` without any.
    fn best(models: impl Iterator<Item = Result<Self, Unfit>>) -> Option<Result<Self, Unfit>> {
        models.reduce(|best, model| match (&best, &model) {
            (Ok(least), Ok(other)) if other.fit.sum >= least.fit.sum => best,
            (Ok(_), Err(_)) => best,
            _ => model,
        })
    }

    /// The best of the models in which the packets that follow wait for the link, but at the so
    /// many fastest rates for what is no link; only such count that do not contradict themselves.
    pub(super) fn with(
        columns: &[&Column],
        packing: Packing,
        inline: u64,
        fetched: u64,
    ) -> Result<Self, Unfit> {
        let mut rates: Vec<Generation> = columns.iter().filter_map(|column| column.generation).collect();
        rates.sort_by_key(|rate| rate.data_bits_per_s(LANES));
        let models = (0..=rates.len()).map(|free| {
            let (waiting, limited) = rates.split_at(free);
            let model = Self { packing, inline, fetched, fit: fit(columns, packing, inline, limited)? };
            let least = model.fit.parameters.get(LEAST).map(|least| least.value);
            let link = |rate: &Generation| link_ns(&model.values(), *rate, packing);
            let holds = waiting.iter().all(|rate| least.is_none_or(|least| least <= link(rate)))
                && limited.iter().all(|rate| least.is_some_and(|least| least > link(rate)));
            holds.then_some(model).ok_or(Unfit::Endless)
        });
        // The plainest of them, that of a link that is always waited for, is the last and says why
        // there is none.
        Self::best(models).unwrap_or(Err(Unfit::Endless))
    }

    /// What it says of a size at a rate, in ns.
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

/// The parameters where further packets wait for the link, but at some rates for what is no link.
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

/// The time that the data rate of a link gives a byte, in ns.
fn byte_ns(rate: Generation) -> f64 {
    8e9 / rate.data_bits_per_s(LANES) as f64
}

/// The time that a link takes for a byte of full packets, in ns.
fn link_ns(at: &[f64], rate: Generation, packing: Packing) -> f64 {
    at[2] * byte_ns(rate) * (1.0 + packing.header_bytes as f64 / packing.mtu as f64)
}

/// The time of a message whose packets after the first take `further` ns for each byte; see the
/// head of this module.
fn time(at: &[f64], rate: Generation, size: u64, mtu: u64, inline: u64, further: f64) -> f64 {
    let [base, carried, line, host, step, fetch] = [at[0], at[1], at[2], at[3], at[4], at[5]];
    let first = size.min(mtu) as f64;
    let beside = if size <= inline { host * first } else { step + fetch * first };
    base + (carried + line * first) * byte_ns(rate) + beside + further * size.saturating_sub(mtu) as f64
}

/// Lanes of the links that are modelled: all published ones, and those that softdev imitates.
pub(super) const LANES: u64 = 4;
