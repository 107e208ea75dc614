use super::super::settings::Settings;
use crate::plan::{Options, Plan, resolve};
use crate::point::{PointSpec, Signal, Timer};

fn points(settings: &str, axes: &str) -> Result<Vec<PointSpec>, String> {
    let text = format!(
        "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\npattern = \"pipeline\"\n{settings}\naxes = {{ {axes} }}"
    );
    let plan = Plan::parse(&text, "x.toml", std::path::Path::new(".")).map_err(|error| error.to_string())?;
    Ok(resolve(&plan, &Options::default()).map_err(|error| error.to_string())?.points)
}

#[test]
fn samples_are_as_long_as_their_values_and_inline_up_to_a_length() {
    let points = points("", "values = [1, 8, 13, 14, 64], inline_max_bytes = 128").unwrap();
    let sizes: Vec<_> = points.iter().map(|point| (point.message.size_bytes, point.message.inline)).collect();
    assert_eq!(sizes, [(32, true), (88, true), (128, true), (136, false), (536, false)]);
    assert!(points.iter().all(|point| point.axes["size_bytes"] == point.message.size_bytes));
    let Settings { values, signal, timer, .. } = Settings::of(&points[1]);
    assert_eq!((values, signal, timer), (8, Signal::Random, Timer::Tsc));
    // By default, every Nth send asks for a completion, where N is half of the send queue's depth.
    assert_eq!((points[0].message.tx_depth, points[0].message.signal_interval), (1024, 512));
}

#[test]
fn slow_rates_have_the_time_that_they_take() {
    let points = points("iterations = 250000\nwarmup = 0", "rate_hz = [100, 100000]").unwrap();
    assert!(points.iter().all(|point| point.timeout_s > 2500.0));
}

#[test]
fn what_a_pipeline_cannot_be_is_refused() {
    for (settings, axes, words) in [
        ("", "values = 65", "more than 64 values"),
        ("", "values = 0", "must be at least 1"),
        ("", "size_bytes = 64", "a sample has 24 B, and 8 B for each value"),
        ("", "inline = true", "give inline_max_bytes"),
        ("", "operation = \"send_imm\"", "samples are sent to posted receives"),
        ("", "queue_pairs = 2", "a sample is one element on one queue pair"),
        ("", "rate_hz = 0", "a rate of 0/s"),
        ("iterations = 10000\ntimeout = \"10s\"", "rate_hz = 100", "raise timeout, or measure fewer"),
        ("iterations = 2000000", "rate_hz = 100000", "2000000 steps and 200000 warm-up steps at 100000/s"),
        ("duration = \"60s\"", "rate_hz = \"1M\"", "each step has stamps in memory"),
        ("", "loaders = 1", "it is for the pattern \"open-loop\""),
        ("", "timer = \"hpet\"", "tsc"),
        ("", "rx_filled = \"later\"", "before"),
    ] {
        let error = points(settings, axes).unwrap_err();
        assert!(error.contains(words), "{axes}: {error}");
    }
}
