//! The definitions of the report's statistics and units, which agree with docs/glossary.md.

use std::collections::BTreeSet;

use maud::{Markup, html};
use measure::record::Latency;

use crate::Points;
use crate::link_limit::LinkLimit;

const TERMS: [(&str, &str); 21] = [
    (
        "percentile (p10, p50, p90, p99, p99.9)",
        "The p-th percentile: the smallest sample with at least p % of all samples not above it. It is always a sample that \
         occurred: the inverse of the empirical distribution function, type 1 of Hyndman and Fan 1996, inverted_cdf in numpy.",
    ),
    ("median", "The 50th percentile."),
    (
        "min, max",
        "The smallest and the largest sample. No sample is dropped. A maximum grows with the number of samples, so compare \
         maxima of equal counts only.",
    ),
    ("mean, standard deviation", "Arithmetic mean; sample standard deviation with divisor n - 1."),
    (
        "95 % confidence interval of the median",
        "The range that covers the true median with 95 % confidence, from order statistics, within one run. It does not \
         show the spread between runs.",
    ),
    (
        "within-run spread",
        "The 10th to 90th percentile of the samples of one run; with repetitions, the median of each over the repetitions.",
    ),
    (
        "run-to-run spread",
        "The smallest to the largest of the repetitions' numbers. The number shown is their median; for an even number of \
         repetitions, the mean of the middle two.",
    ),
    (
        "repetition",
        "The same point measured again, set-up included. Counted from 1 here, from 0 in the record.",
    ),
    (
        "launch",
        "One start of all ranks, by a launcher of MPI or by commands. If several launches measured a point, each counts \
         once: its number is the median of its repetitions, and spreads and intervals are those of the launches. Counted \
         from 1 here, from 0 in the record.",
    ),
    (
        "divided by n",
        "The latency of a round with n peers, divided by n: the time per message. The throughput of such a round is n \
         messages divided by its median.",
    ),
    ("share above", "Share of the samples strictly above a threshold."),
    (
        "outliers",
        "Samples far from the rest, by the rule that is shown with their number. They are counted, never removed.",
    ),
    (
        "overflow",
        "Samples above the last bin of a histogram, which ends at the 99.9th percentile. Their number and their maximum are \
         shown separately.",
    ),
    (
        "cost of a call",
        "The median time of a batch of calls of one verb between two time stamps, divided by the number of calls. It includes \
         the cost of one stamp per batch, which is shown with it and not subtracted.",
    ),
    (
        "throughput",
        "Payload bytes per second, headers not counted. For traffic in both directions at once, one direction and the total \
         of both are separate numbers.",
    ),
    (
        "not measured",
        "The point cannot be measured on this device or host, for the reason given. No other number takes its place.",
    ),
    ("failed", "The point could be measured, but went wrong. The error says why."),
    (
        "unstable",
        "The point was measured, but the state of the machine changed around it or it was disturbed: the number may \
         be wrong. Measure the point again before you use its number.",
    ),
    (
        "reproduced, inconclusive, contradicted",
        "A paper's finding is reproduced if its number and the whole 95 % interval of the number lie in the stated range, \
         contradicted if the whole interval lies outside, and inconclusive if the interval crosses a bound or if there is no \
         interval. \"Same direction, other size\" means that the claim holds, but that the number is not near the published \
         one. A claim that no paper makes is shown or not shown instead. Within one run, the interval of a \
         median is from order statistics and that of a share is Wilson's; other numbers have none. With fewer than 6 \
         repetitions, the interval covers those of all repetitions; from 6 on, it is that of the median of the repetitions' \
         numbers, from order statistics. A share counts all messages together; its interval is at least the one that the \
         spread of the repetitions gives (Student's t). The interval of a number computed from several numbers covers all \
         values that these may have. Flat: the largest number over x relative to the smallest. Step: the largest ratio of \
         neighbours over x. Crossover: the first x at which one series exceeds the other by more than their errors. Linear: \
         the share of the variance that a least-squares line over x explains, R^2, with Fisher's interval of the \
         correlation. Argmin: the x of the smallest number; its interval covers all x whose number is not surely above \
         another. Agree: the largest number of several programs or devices relative to the smallest. Falls: the median over \
         x from a border on relative to the median before it. Spread: p90 - p10.",
    ),
    ("us, ns", "10^-6 s, 10^-9 s. Records hold whole nanoseconds."),
    (
        "Gb/s, MB/s, MiB/s, Mmsg/s, Mpps",
        "10^9 bit/s; 10^6 B/s; 2^20 B/s; 10^6 messages/s. KiB, MiB, GiB: 2^10, 2^20, 2^30 B.",
    ),
];

/// The definition that notes under tables link to.
const LINK_AT_BEST: &str = "\
    The most payload that a link carries: its data rate, less the headers of all packets. The data rate is the signal rate \
    times the line code (8b/10b up to QDR, 64b/66b for FDR and EDR; later generations are named by their data rate). A \
    message is sent in packets of up to the MTU (adapters pad the last one to a multiple of 4 B). Each packet has the \
    headers of its layer (InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2 B; RoCE v2: preamble and gap 20, Ethernet 18, IPv4 20 \
    or IPv6 40, UDP 8, BTH 12, ICRC 4 B; RoCE v1: GRH 40 B in place of IP and UDP). Added to these are DETH 8 B over UD, \
    RETH 16 B in the first packet of a write, AETH 4 B in the first and the last packet of a read response, and immediate \
    data 4 B. The request of a read (RETH 16 B) or of an atomic (AtomicETH 28 B) goes in the other direction; it counts if \
    both ranks send requests at once. If several ranks send at once, the links are as many as the ports that send or the \
    ports that receive, whichever are fewer; with a link model, each rank has its own link. In a round with several peers, \
    of which half is shown, messages out and messages back may be under way at once, so that the link counts twice. \
    Acknowledgements are not counted, because one may answer many messages; nor are flow control and gaps between packets. \
    So only the error of its time lets a throughput exceed the limit. InfiniBand Architecture Specification, vol. 1, \
    chapters 7 and 9, annexes A16 and A17; vol. 2 for rates and codes.";

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
                    div id="link-at-best" { dt { "link limit" } dd { (LINK_AT_BEST) } }
                }
                @if !rules.is_empty() {
                    (term("rule for outliers in this run", &rules.into_iter().collect::<Vec<_>>().join("; ")))
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
