//! The quantities that figures and findings can name: paths into a point of a record.

use measure::record::{Cpu, Fairness, Latency, LatencyKind, Throughput};

use super::names::{hint_or_all, names_of};

/// Whether a path leads to a number; if not, the nearest one that does, or all.
///
/// `counters.` and `calibration.` are open-ended; the statistics are not.
pub(super) fn check(name: &str) -> Result<(), String> {
    let (group, rest) = name.split_once('.').unwrap_or((name, ""));
    let fits = match group {
        "calibration" | "counters" => !rest.is_empty(),
        "cost" => rest == "ns",
        "pipeline" => PIPELINE.contains(&rest),
        "completed_first_share"
        | "cpu_ns_per_byte"
        | "cpu_ns_per_message"
        | "half_mean_ns"
        | "transactions_per_s"
        | "wall_ns" => rest.is_empty(),
        "fairness" => names_of::<Fairness>().contains(&rest),
        "throughput" | "throughput_total" => names_of::<Throughput>().contains(&rest) && rest != "direction",
        // `cpu.1.user_ns`
        "cpu" => rest
            .split_once('.')
            .is_some_and(|(rank, field)| rank.parse::<u32>().is_ok() && names_of::<Cpu>().contains(&field)),
        // `ends.1.latency.p50_ns`
        "ends" => rest.split_once('.').is_some_and(|(rank, path)| {
            rank.parse::<u32>().is_ok() && path.strip_prefix("latency.").is_some_and(is_statistic)
        }),
        "per_message" => PER_MESSAGE.contains(&rest),
        group => latencies().contains(&group) && is_statistic(rest),
    };
    if fits {
        return Ok(());
    }
    let known = known(group);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(hint_or_all(name, &known))
}

/// What is a [`Latency`]: the headline, every kind, and those of the first messages.
fn latencies() -> Vec<&'static str> {
    ["latency", "first", "with_first"].into_iter().chain(names_of::<LatencyKind>().iter().copied()).collect()
}

/// Whether a latency has this number.
fn is_statistic(field: &str) -> bool {
    match field.split_once('.') {
        Some(("share_above", threshold)) => threshold.parse::<u64>().is_ok(),
        Some(("mavericks", "count")) => true,
        Some(_) => false,
        None => statistics().contains(&field),
    }
}

/// The numbers of a latency. What 80 % of the messages lie within, p90 - p10, stands in no record: the report subtracts.
fn statistics() -> Vec<&'static str> {
    let fields = names_of::<Latency>().iter().copied();
    fields.filter(|field| !NO_NUMBERS.contains(field)).chain(["spread_ns"]).collect()
}

/// Examples of every path that begins as one does, or else of all.
fn known(group: &str) -> Vec<String> {
    let paths = |group: &str, fields: &[&str]| -> Vec<String> {
        fields.iter().map(|field| format!("{group}.{field}")).collect()
    };
    let latency = |group: &str| {
        let mut all = paths(group, &statistics());
        all.push(format!("{group}.share_above.10000"));
        all
    };
    let throughput = |group: &str| paths(group, &["bytes_per_s", "messages_per_s"]);
    match group {
        "throughput" | "throughput_total" => throughput(group),
        "cpu" => paths("cpu.0", names_of::<Cpu>()),
        "ends" => latency("ends.0.latency"),
        "per_message" => paths(group, &PER_MESSAGE),
        "pipeline" => paths(group, &PIPELINE),
        group if latencies().contains(&group) => latency(group),
        _ => {
            let other = [
                "completed_first_share",
                "cost.ns",
                "cpu_ns_per_byte",
                "cpu_ns_per_message",
                "half_mean_ns",
                "per_message.p50_ns",
                "pipeline.missed_share",
                "transactions_per_s",
                "wall_ns",
            ];
            let other = other.map(str::to_owned);
            let first = latencies().into_iter().map(|group| format!("{group}.p50_ns"));
            first.chain(throughput("throughput")).chain(paths("cpu.0", &["user_ns"])).chain(other).collect()
        }
    }
}

/// Fields of a latency that are no number by themselves.
const NO_NUMBERS: [&str; 4] = ["kind", "mavericks", "p50_ci95_ns", "share_above"];

/// The times of a round of one to n that can be divided by n. What they spread over cannot: messages differ as rounds do not.
const PER_MESSAGE: [&str; 8] =
    ["min_ns", "p10_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "mean_ns"];

/// What is known of samples at a fixed rate: how often they were generated, and shares of the steps.
const PIPELINE: [&str; 5] = ["achieved_hz", "alone_share", "busy_share", "lost_share", "missed_share"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_point_has_a_path() {
        for name in [
            "latency.p50_ns",
            "one_way.p999_ns",
            "completion.share_above.10000",
            "one_way_send.spread_ns",
            "rtt_half.mavericks.count",
            "first.p50_ns",
            "with_first.max_ns",
            "completed_first_share",
            "cost.ns",
            "cpu_ns_per_byte",
            "cpu_ns_per_message",
            "half_mean_ns",
            "transactions_per_s",
            "cpu.1.voluntary_switches",
            "ends.0.latency.p10_ns",
            "per_message.mean_ns",
            "throughput_total.messages_per_s",
            "fairness.jain",
            "start_skew.p50_ns",
            "pipeline.lost_share",
            "counters.rnr_waits",
            "calibration.before_ns",
            "wall_ns",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_leads_nowhere_is_refused_with_the_nearest() {
        for (name, near) in [
            ("one_way.p50", "one_way.p50_ns"),
            ("oneway.p50_ns", "one_way.p50_ns"),
            ("completion.share_above", "completion.share_above.10000"),
            ("cpu.0.usr_ns", "cpu.0.user_ns"),
            ("cpu.user_ns", "cpu.0.user_ns"),
            ("completed_first", "completed_first_share"),
            ("cost.n", "cost.ns"),
            ("throughput.direction", "throughput.bytes_per_s"),
            ("per_message.p50", "per_message.p50_ns"),
            ("per_message.stddev_ns", "per_message.mean_ns"),
            ("latency.p50_ci95_ns", "latency.p50_ns"),
        ] {
            assert_eq!(check(name), Err(format!(": did you mean {near:?}?")), "{name}");
        }
        assert!(check("latency.kind").is_err() && check("counters").is_err() && check("").is_err());
    }
}
