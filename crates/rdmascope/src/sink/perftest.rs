//! The file of perftest's `--out_json`: scripts that read perftest's also read this one.
//!
//! Its keys and their nesting are those of `write_test_info_to_file`, `write_bw_report_to_file` and
//! `write_report_lat_to_file` in perftest's perftest_parameters.c. Keys for what rdmascope does not
//! know, such as `PCIe_relax_order`, are absent. perftest replaces its file at each size, so that
//! only the last one is left; here `results` is a list if the run has several points.

use std::path::Path;

use bench::PATTERNS;
use measure::figure::Unit;
use measure::record::{Device, LatencyKind, Point, Run, Status};
use serde_json::{Map, Value, json};

use crate::report::output::Output;

/// The results of a run in the terms of perftest.
#[derive(Debug)]
pub(super) struct PerftestFile {
    output: Output,
    /// The unit of `BW_average`.
    bandwidth: Unit,
    points: Vec<Point>,
}

impl PerftestFile {
    /// Writes the file without results, so that a path that cannot be used is known before anything
    /// is measured.
    pub(super) fn create(path: &Path, bandwidth: Unit, run: &Run) -> anyhow::Result<Self> {
        let file = Self { output: Output::named(path)?, bandwidth, points: Vec::new() };
        if matches!(file.output, Output::File(_)) {
            file.write(run)?;
        }
        Ok(file)
    }

    /// Adds a point.
    pub(super) fn add(&mut self, point: Point) {
        self.points.push(point);
    }

    /// Writes the file with all points.
    pub(super) fn write(&self, run: &Run) -> anyhow::Result<()> {
        let whole = whole(run.devices.first(), &self.points, self.bandwidth);
        self.output.write(|out| Ok(writeln!(out, "{whole:#}")?))
    }
}

/// Returns the content of the file. What differs between points stands with their results.
fn whole(device: Option<&Device>, points: &[Point], bandwidth: Unit) -> Value {
    let infos: Vec<Map<String, Value>> = points.iter().map(|point| info(device, point)).collect();
    let (common, own): (Map<_, _>, Map<_, _>) = (infos.first().cloned().unwrap_or_default().into_iter())
        .partition(|(key, value)| infos.iter().all(|info| info.get(key) == Some(value)));
    let with_own = |(point, info): (&Point, Map<String, Value>)| {
        let own = info.into_iter().filter(|(key, _)| own.contains_key(key) || !common.contains_key(key));
        results(point, bandwidth).into_iter().chain(own).collect::<Map<_, _>>()
    };
    let mut results: Vec<Map<String, Value>> = points.iter().zip(infos.clone()).map(with_own).collect();
    let results = if results.len() == 1 { json!(results.remove(0)) } else { json!(results) };
    json!({ "test_info": common, "results": results })
}

/// Returns how a point was measured.
fn info(device: Option<&Device>, point: &Point) -> Map<String, Value> {
    let axis = |name: &str| point.axes.get(name).filter(|value| !value.is_null()).cloned();
    let attribute = |name: &str| device?.attributes.get(name).cloned();
    let is_setup_by_cm = axis("setup").is_some_and(|setup| setup == "rdma_cm");
    let operation = axis("operation").unwrap_or_default();
    let is_read = ["read", "fetch_add", "compare_swap"].iter().any(|word| operation == *word);
    let is_verbs = axis("endpoint").is_none_or(|endpoint| endpoint == "verbs");
    let is_stream = point.throughput.is_some() && point.latency.is_none();
    let link = attribute("link_layer").map(|layer| if layer == "InfiniBand" { json!("IB") } else { layer });
    let of_verbs = [
        ("Device", device.map(|device| json!(device.name))),
        ("Dual_port", Some(json!("OFF"))),
        ("Using_SRQ", Some(json!("OFF"))),
        ("Link_type", link),
        ("GID_index", attribute("gid_index")),
        ("Mtu", axis("mtu_bytes").filter(Value::is_number).or_else(|| attribute("active_mtu_bytes"))),
        ("CQ_Moderation", axis("signal_interval").filter(|_| is_stream)),
        ("Outstand_reads", axis("outstanding_reads").filter(|_| is_read)),
        ("rdma_cm_QPs", Some(json!(if is_setup_by_cm { "ON" } else { "OFF" }))),
        ("Data_ex_method", Some(json!(if is_setup_by_cm { "rdma_cm" } else { "Ethernet" }))),
    ];
    let of_axes = AXES.iter().map(|(key, name)| (*key, axis(name)));
    let all = of_verbs.into_iter().chain(of_axes).filter(|_| is_verbs).chain([("test", test(point))]);
    all.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Keys whose values are those of an axis.
const AXES: [(&str, &str); 5] = [
    ("Connection_type", "service"),
    ("Number_of_qps", "queue_pairs"),
    ("Post_List", "post_list"),
    ("RX_depth", "rx_depth"),
    ("TX_depth", "tx_depth"),
];

/// Returns the name of the test, such as `RDMA_Write_BW_Test`; none for what perftest does not
/// measure.
fn test(point: &Point) -> Option<Value> {
    let operation = point.axes.get("operation")?;
    let (_, words) = OPERATIONS.iter().find(|(word, _)| operation == *word)?;
    let is_both = point.axes.get("direction").is_some_and(|direction| direction == "bi");
    let has_list = point.axes.get("post_list").and_then(Value::as_u64).is_some_and(|posts| posts > 1);
    let kind = match (&point.latency, &point.throughput) {
        (Some(_), _) => "Latency_",
        (None, Some(_)) => "BW_",
        (None, None) => return None,
    };
    let multicast = if operation == "multicast" { "Multicast_" } else { "" };
    let parts = [
        (true, *words),
        (is_both, "Bidirectional_"),
        (has_list && kind == "BW_", "Post_List_"),
        (true, kind),
        (true, multicast),
        (true, "Test"),
    ];
    Some(parts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, part)| part).collect::<String>().into())
}

/// Operations, with their parts of the name of a test.
const OPERATIONS: [(&str, &str); 8] = [
    ("compare_swap", "Atomic_CMP_AND_SWAP_"),
    ("fetch_add", "Atomic_FETCH_AND_ADD_"),
    ("multicast", "Send_"),
    ("read", "RDMA_Read_"),
    ("send", "Send_"),
    ("send_imm", "Send_imm_"),
    ("write", "RDMA_Write_"),
    ("write_imm", "RDMA_Write_imm_"),
];

/// Returns the numbers of a point; without numbers, why it has none.
fn results(point: &Point, bandwidth: Unit) -> Map<String, Value> {
    let number = |path: &str| PATTERNS.find_at(point, path)?.number(point);
    let mut all = Map::new();
    all.extend(point.axes.get("size_bytes").map(|size| ("MsgSize".to_owned(), size.clone())));
    let counted = point.latency.as_ref().map(|latency| latency.count);
    all.extend(point.iterations.or(counted).map(|count| ("n_iterations".to_owned(), count.into())));
    if let Status::Failed { error: why } | Status::NotMeasured { reason: why } = &point.status {
        all.insert("error".to_owned(), why.as_str().into());
        return all;
    }
    let mut add =
        |key: &str, value: Option<f64>| all.extend(value.map(|value| (key.to_owned(), value.into())));
    TIMES_US.iter().for_each(|(key, path)| add(key, number(path).map(|ns| ns / 1e3)));
    // perftest counts round trips per second if it measures for a time.
    let latency = point.latency.as_ref().filter(|_| point.iterations.is_none());
    let messages = |kind| if kind == LatencyKind::RttHalf { 2.0 } else { 1.0 };
    add("tps_average", latency.map(|latency| 1e9 / latency.mean_ns / messages(latency.kind)));
    let rate =
        |name: &str| number(&format!("throughput_total.{name}")).or(number(&format!("throughput.{name}")));
    if point.latency.is_none() {
        add("BW_average", rate("bytes_per_s").map(|rate| rate / bandwidth.one()));
        add("MsgRate", rate("messages_per_s").map(|rate| rate / 1e6));
        // rdmascope measures no peak: a number here would be another one under its name.
        all.extend(point.throughput.as_ref().map(|_| ("BW_peak".to_owned(), Value::Null)));
    }
    all
}

/// Times in us, with their paths.
const TIMES_US: [(&str, &str); 7] = [
    ("percentile_99", "latency.p99_ns"),
    ("percentile_99.9", "latency.p999_ns"),
    ("t_avg", "latency.mean_ns"),
    ("t_max", "latency.max_ns"),
    ("t_min", "latency.min_ns"),
    ("t_stdev", "latency.stddev_ns"),
    ("t_typical", "latency.p50_ns"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn point(more: &Value) -> Point {
        let mut json = json!({
            "id": 0, "experiment": "e", "pattern": "p", "status": "measured", "repetition": 0, "wall_ns": 1,
            "iterations": 100,
            "axes": {
                "operation": "write", "service": "RC", "size_bytes": 64, "queue_pairs": 2, "tx_depth": 128, "post_list": 1,
                "signal_interval": 100, "mtu_bytes": "active", "endpoint": "verbs", "setup": "exchange",
            },
        });
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(json).unwrap()
    }

    fn stream(size: u64) -> Point {
        let mut point = point(&json!({
            "throughput": { "bytes_per_s": 2e9, "messages_per_s": 4e6, "direction": "bi_one" },
            "throughput_total": { "bytes_per_s": 3e9, "messages_per_s": 6e6, "direction": "bi_total" },
        }));
        point.axes.insert("size_bytes".to_owned(), size.into());
        point.axes.insert("direction".to_owned(), "bi".into());
        point
    }

    fn device() -> Device {
        let attributes = json!({ "link_layer": "InfiniBand", "active_mtu_bytes": 4096, "gid_index": 3 });
        serde_json::from_value(json!({ "rank": 0, "name": "d0", "provider": "p", "attributes": attributes }))
            .unwrap()
    }

    #[test]
    fn a_throughput_has_the_keys_of_perftest() {
        let file = whole(Some(&device()), &[stream(64)], Unit::GbPerS);
        let info = json!({
            "CQ_Moderation": 100, "Connection_type": "RC", "Data_ex_method": "Ethernet", "Device": "d0", "Dual_port": "OFF",
            "GID_index": 3, "Link_type": "IB", "Mtu": 4096, "Number_of_qps": 2, "Post_List": 1, "TX_depth": 128,
            "Using_SRQ": "OFF", "rdma_cm_QPs": "OFF", "test": "RDMA_Write_Bidirectional_BW_Test",
        });
        let results = json!({ "MsgSize": 64, "n_iterations": 100, "BW_peak": null, "BW_average": 24.0, "MsgRate": 6.0 });
        assert_eq!(file, json!({ "test_info": info, "results": results }));
    }

    #[test]
    fn a_latency_has_the_keys_of_perftest_in_us() {
        let samples: Vec<u64> = (1..=1000).map(|i| i * 10).collect();
        let latency = measure::stats::latency(LatencyKind::RttHalf, &samples, &[]);
        let mut timed = Point { latency, ..point(&json!({})) };
        let results = results(&timed, Unit::MiBPerS);
        let keys = [
            "MsgSize",
            "n_iterations",
            "percentile_99",
            "percentile_99.9",
            "t_avg",
            "t_max",
            "t_min",
            "t_stdev",
            "t_typical",
        ];
        assert_eq!(results.keys().collect::<Vec<_>>(), keys);
        let of = |key: &str| results[key].as_f64().unwrap();
        assert_eq!([of("t_min"), of("t_typical"), of("percentile_99"), of("t_max")], [0.01, 5.0, 9.9, 10.0]);
        // With -D, perftest counts round trips.
        timed.iterations = None;
        let results = super::results(&timed, Unit::MiBPerS);
        assert_eq!(
            (&results["n_iterations"], &results["tps_average"]),
            (&json!(1000), &json!(1e9 / 5005.0 / 2.0))
        );
        assert_eq!(test(&timed), Some(json!("RDMA_Write_Latency_Test")));
    }

    #[test]
    fn several_points_are_a_list_and_what_differs_stands_with_each() {
        let mut other = stream(128);
        other.axes.insert("service".to_owned(), "UC".into());
        let failed = point(&json!({ "status": "failed", "error": "the peer is gone" }));
        let file = whole(Some(&device()), &[stream(64), other, failed], Unit::MiBPerS);
        assert_eq!(file["test_info"]["Number_of_qps"], 2);
        assert_eq!(file["test_info"].get("Connection_type"), None);
        let all: Vec<_> = (0..3)
            .map(|at| &file["results"][at])
            .map(|one| (&one["MsgSize"], &one["Connection_type"]))
            .collect();
        assert_eq!(
            all,
            [(&json!(64), &json!("RC")), (&json!(128), &json!("UC")), (&json!(64), &json!("RC"))]
        );
        assert_eq!(file["results"][2]["error"], "the peer is gone");
        assert_eq!(whole(None, &[], Unit::GbPerS), json!({ "test_info": {}, "results": [] }));
    }

    #[test]
    fn what_perftest_does_not_measure_has_no_name_of_a_test() {
        let mut socket = stream(64);
        socket.axes = serde_json::from_value(json!({ "endpoint": "tcp", "size_bytes": 64 })).unwrap();
        assert_eq!(info(Some(&device()), &socket), Map::new());
    }
}
