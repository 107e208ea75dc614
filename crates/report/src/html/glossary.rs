//! What every statistic and unit of the page means, in few words.

use std::collections::BTreeSet;

use maud::{Markup, html};
use measure::record::Latency;

use crate::Points;
use crate::link_limit::LinkLimit;

const TERMS: [(&str, &str); 21] = [
    (
        "p-quantile (p10, p50, p90, p99, p99.9)",
        "The smallest sample such that at least the share p of all samples is not above it: the inverse \
         of the empirical distribution function, type 1 of Hyndman and Fan 1996, inverted_cdf in numpy. \
         Always a sample that occurred.",
    ),
    ("median", "The 50 % quantile."),
    (
        "min, max",
        "The smallest and the largest sample. Nothing is dropped before they are taken; a maximum grows \
         with the number of samples, so compare maxima of equal counts only.",
    ),
    ("mean, standard deviation", "Arithmetic mean; sample standard deviation with divisor n - 1."),
    (
        "95 % confidence interval of the median",
        "From order statistics, within one run: it says nothing about the spread between runs.",
    ),
    (
        "within-run spread",
        "The 10 % to 90 % quantiles of the samples of one run; with repetitions, the median of each over them.",
    ),
    (
        "run-to-run spread",
        "The smallest and the largest of the repetitions' numbers. The number shown is their median; of \
         an even number of repetitions, the mean of the middle two.",
    ),
    (
        "repetition",
        "The whole point measured anew, set-up included. Counted from 1 here, from 0 in the record.",
    ),
    (
        "launch",
        "A start of all ranks, by the launcher of MPI or by commands. Where several have measured a point, each counts once: \
         the number of a launch is the median of its repetitions, and spreads and intervals are those of the launches. \
         Counted from 1 here, from 0 in the record.",
    ),
    (
        "divided by n",
        "The latency of a round of one to n, divided by its n: what a message takes as one of n. Throughput of such a round \
         is n messages by its median.",
    ),
    ("share above", "Share of the samples strictly above a threshold."),
    (
        "mavericks",
        "Samples far from the rest by the rule that stands beside their number. They are counted, never removed.",
    ),
    (
        "overflow",
        "Samples beyond the last bin of a histogram, that is above the 99.9 % quantile. They are drawn \
         apart with their number and their maximum.",
    ),
    (
        "cost of a call",
        "The median time of a batch of calls of one verb between two stamps, divided by the calls. It includes one stamp for \
         each batch, whose cost stands beside it and is not taken off.",
    ),
    (
        "throughput",
        "Payload bytes per second, headers not counted. Of traffic both ways at once, one direction and \
         the total of both are told apart.",
    ),
    (
        "not measured",
        "The point cannot be measured on this device or host, for the reason given. No other number takes its place.",
    ),
    ("failed", "The point could have been measured but something went wrong."),
    (
        "unstable",
        "It was measured, but the state of the machine changed around it or its repetitions disagree: do not trust the number.",
    ),
    (
        "shown, not shown",
        "A finding is shown if its figure and all of the figure's 95 % interval lie in the stated range; \"within its \
         error\" means that the figure does but not all of the interval. The interval of one run's median is that of the \
         median, of a share Wilson's; other numbers have none within a run. Fewer than 6 repetitions: from the least to \
         the largest end of theirs; from 6 on: the median of the repetitions' numbers from order statistics. Shares are \
         those of all messages together, their interval at least the one that the spread of the repetitions gives \
         (Student's t). Figures made of several numbers reach over all that these may be. Flat: the largest over x \
         relative to the least. Step: the largest ratio of neighbours over x. Crossover: the first x at which one series \
         exceeds the other by more than their errors. Linear: the share of the variance that a line of least squares over \
         x accounts for, R^2, with Fisher's interval of the correlation. Argmin: the x of the least number; its interval \
         reaches over all x whose number is not surely above another. Agree: the largest of what several \
         programs or devices found relative to the least. Falls: the median over the x from a border on \
         relative to that before it. Spread: p90 - p10.",
    ),
    ("us, ns", "10^-6 s, 10^-9 s. Records hold whole nanoseconds."),
    (
        "Gb/s, MB/s, MiB/s, Mmsg/s, Mpps",
        "10^9 bit/s; 10^6 B/s; 2^20 B/s; 10^6 messages/s. KiB, MiB, GiB: 2^10, 2^20, 2^30 B.",
    ),
];

/// What notes under tables refer to.
const LINK_AT_BEST: &str = "\
    What a link carries of the payload of messages: the time of one is that of all its bytes at the data rate, which is \
    the signal rate times the line code (8b/10b up to QDR, 64b/66b for FDR and EDR; later ones are named by their data \
    rate). A message is cut into packets of up to the MTU (adapters pad the last to a multiple of 4 B). Each has the \
    headers of its layer (InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2 B; RoCE v2: preamble and gap 20, Ethernet 18, IPv4 20 \
    or IPv6 40, UDP 8, BTH 12, ICRC 4 B; RoCE v1: GRH 40 B in place of IP and UDP), and besides DETH 8 B over UD, RETH 16 \
    B in the first of a write, AETH 4 B in the first and the last of a read's answer, immediate data 4 B. The request of a \
    read (RETH 16 B) and of an atomic (AtomicETH 28 B) goes the other way; where both ends ask at once, it counts. \
    Where several ranks send at once, as many links count as there are ports that they send from or receive at, whichever \
    are fewer; each rank has a link of its own where the device imitates one. Of a round of one to n, half of which is shown, \
    the messages out and those back are at best under way at once, so that twice a link counts. \
    Acknowledgements do not, as one may answer many messages; nor do flow control and gaps between packets. So no \
    throughput is above it but by the error of its time. InfiniBand Architecture Specification, vol. 1, chapters 7 and 9, \
    annexes A16 and A17; vol. 2 for rates and codes.";

/// The section of definitions, with the kinds of latency that the run has.
pub(super) fn render(run: Points<'_>) -> Markup {
    let points = run.points;
    let ends = points.iter().flat_map(|p| &p.ends).filter_map(|e| e.latency.as_ref());
    let latencies: Vec<&Latency> = points.iter().filter_map(|p| p.latency.as_ref()).chain(ends).collect();
    let kinds: BTreeSet<_> = latencies.iter().map(|l| l.kind).collect();
    let rules: BTreeSet<&str> = latencies.iter().map(|l| l.mavericks.rule.as_str()).collect();
    let term = |name: &str, text: &str| html! { div { dt { (name) } dd { (text) } } };
    html! {
        section id="glossary" {
            h2 { "Definitions" }
            p { "Kinds of latency are never mixed in one number." }
            dl class="glossary" {
                @for kind in kinds { (term(kind.name(), &format!("Latency: {}.", kind.meaning()))) }
                @for (name, text) in TERMS { (term(name, text)) }
                @if points.iter().any(|point| LinkLimit::of(point, run.devices, run.patterns).is_some()) {
                    div id="link-at-best" { dt { "link at best" } dd { (LINK_AT_BEST) } }
                }
                @if !rules.is_empty() {
                    (term("rule for mavericks in this run", &rules.into_iter().collect::<Vec<_>>().join("; ")))
                }
                @if let Some(width) = latencies.iter().filter_map(|l| l.resolution).reduce(f64::max) {
                    (term("resolution", &format!(
                        "Some statistics come from a histogram; its buckets are at most {:.2} % wide.",
                        width * 100.0
                    )))
                }
            }
        }
    }
}
