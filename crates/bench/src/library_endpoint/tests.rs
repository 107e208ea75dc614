use crate::plan::{Options, Plan, resolve};
use crate::point::{Carrier, Protocol, Service};

fn refusal(pattern: &str, axes: &str) -> Result<Vec<crate::point::PointSpec>, String> {
    let text = format!(
        "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\npattern = \"{pattern}\"\naxes = {{ {axes} }}"
    );
    let plan = Plan::parse(&text, "x.toml", std::path::Path::new(".")).map_err(|error| error.to_string())?;
    Ok(resolve(&plan, &Options::default()).map_err(|error| error.to_string())?.points)
}

#[test]
fn what_libraries_do_not_carry_is_refused() {
    for (pattern, axes, words) in [
        (
            "stream",
            "endpoint = \"zeromq\"",
            "message libraries carry \"one-way\", \"ping-pong\", \"pipeline\"",
        ),
        ("fan-out", "endpoint = \"nng\"", "message libraries carry"),
        ("ping-pong", "endpoint = \"nanomsg\", size_bytes = 3", "the number of a message takes 4 bytes"),
        (
            "ping-pong",
            "endpoint = \"tcp\", protocol = \"pair\", size_bytes = 4",
            "this axis is for other endpoints",
        ),
        ("one-way", "endpoint = \"zeromq\", protocol = \"push\"", "pub_sub"),
    ] {
        let error = refusal(pattern, axes).unwrap_err();
        assert!(error.contains(words), "{axes}: {error}");
    }
    let axes = "endpoint = [\"zeromq\", \"verbs\"], protocol = [\"pair\", \"pub_sub\"]";
    let points = refusal("pipeline", axes).unwrap();
    let found: Vec<_> = points
        .iter()
        .map(|point| (point.message.endpoint, point.message.socket.protocol, point.message.service))
        .collect();
    // A publisher may drop messages, so the service is unreliable.
    let expected = [
        (Carrier::Zeromq, Protocol::Pair, Service::Rc),
        (Carrier::Zeromq, Protocol::PubSub, Service::Ud),
        (Carrier::Verbs, Protocol::PubSub, Service::Rc),
    ];
    assert_eq!(found, expected);
}
