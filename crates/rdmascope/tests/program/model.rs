//! `rdmascope model` on published numbers and on measured ones.

use report::link::{Generation, data_bits_per_s};
use verbs::LinkRate;

use crate::support::Scratch;

#[test]
fn published_tables_are_modelled_from_two_of_their_columns() {
    let text = Scratch::new().succeed(&["model", "gamess-2016"]);
    for title in ["Table 2: RC Send latency", "Table 3: UC Send latency", "Table 4: UD Send latency"] {
        let section = &text[text.find(title).unwrap_or_else(|| panic!("no {title} in {text}"))..];
        assert!(section.contains("fitted to SDR and FDR"), "{section}");
        assert!(section.contains(" unseen: "), "{section}");
    }
}

#[test]
fn a_run_is_modelled_from_its_record() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-s", "2..64KiB", "-n", "200", "--out", "run"]);
    let text = scratch.succeed(&["model", "run"]);
    assert!(text.contains("\nmeasured\n") && text.contains("t = t0 + n/r"), "{text}");
    assert!(text.contains("none,\n as it takes columns of two rates"), "{text}");
}

#[test]
fn the_plan_of_models_measures_what_all_of_them_need() {
    let scratch = Scratch::on_one_cpu();
    let few = ["iterations=20", "repetitions=1", "warmup=1", "bytes_max=64KiB"];
    let mut words = vec!["run", "models", "--quick", "-d", "softdev0", "--out", "run"];
    words.extend(few.iter().flat_map(|set| ["--set", set]));
    scratch.succeed(&words);
    let (run, points) = scratch.record("run");
    assert_eq!(points.len() as u64, run.points_planned);
    let text = scratch.succeed(&["model", "run"]);
    for part in ["t = t0 + n/r (Hockney", " LogGP from ", " LogfP ", " fan_half [us] "] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains("LogGP from parametrised round trips: none, as\n a burst and a single"), "{text}");
}

#[test]
fn a_throughput_is_below_what_the_link_carries() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&[
        "bw",
        "write",
        "--local",
        "--link",
        "1X SDR",
        "-s",
        "1KiB..64KiB",
        "-n",
        "200",
        "--out",
        "run",
    ]);
    let text = scratch.succeed(&["model", "run"]);
    assert!(text.contains("and the link limit (1X SDR: 2.00 Gb/s, 82 B around each"), "{text}");
    let shares: Vec<f64> =
        text.lines().filter_map(|line| line.strip_suffix(" %")?.rsplit(' ').next()?.parse().ok()).collect();
    assert_eq!(shares.len(), 7, "{text}");
    assert!(shares.iter().all(|share| (1.0..=100.0).contains(share)), "{text}");
}

/// The two crates must not depend on each other, so both have the table of link generations.
#[test]
fn links_have_the_same_rates_where_they_are_imitated_and_where_they_are_reported() {
    assert_eq!(verbs::GENERATIONS.map(|known| known.name), Generation::ALL.map(|known| known.name));
    for (imitated, reported) in verbs::GENERATIONS.into_iter().zip(Generation::ALL) {
        for lanes in [1, 2, 4, 8, 12] {
            let rate = LinkRate::InfiniBand(lanes, imitated);
            assert_eq!(rate.bits_per_s(), reported.data_bits_per_s(lanes.into()), "{rate}");
            assert_eq!(data_bits_per_s(&rate.to_string()), Some(rate.bits_per_s()), "{rate}");
        }
    }
    for bits_per_s in [40_000_000_000, 56_500_000_000, 1_000_001_000, 999] {
        let rate = LinkRate::Bits(bits_per_s);
        assert_eq!(data_bits_per_s(&rate.to_string()), Some(bits_per_s), "{rate}");
    }
}

#[test]
fn what_cannot_be_modelled_is_wrong_usage() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "100", "--out", "run"]);
    for (arguments, words) in [
        (&["model", "run"][..], "nothing to model"),
        (&["model", "gamess-2016", "--fit", "HDR,SDR"], "no table has a column 'HDR'"),
        (&["model", "nowhere"], "nowhere"),
    ] {
        let ended = scratch.run(arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}
