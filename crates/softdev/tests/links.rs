//! When things happen on a link that is imitated, as a program sees it that polls.
//!
//! Times are of milliseconds, so that what else the machine does hides none of them.

mod links {
    pub(crate) mod ends;
}

use std::time::{Duration, Instant};

use conformance::runner::{Trial, run};
use links::ends::{Ends, WRITTEN};
use verbs::{SendRequest, Service};

const MS: Duration = Duration::from_millis(1);

/// One after another: they share the process's port.
fn main() {
    let trial = |name: &str, run: fn()| Trial { name: name.to_owned(), skipped: None, run: Box::new(run) };
    run(&[
        trial("an_acknowledgement_takes_the_way_back", an_acknowledgement_takes_the_way_back),
        trial("a_read_goes_there_and_takes_the_way_back", a_read_goes_there_and_takes_the_way_back),
    ]);
}

/// The time from posting a request to its completion.
fn completes_after(ends: &mut Ends, request: SendRequest) -> Duration {
    let start = Instant::now();
    ends.post(request);
    let (wc, after) = ends.completions(start, 1)[0];
    assert!(wc.status().is_success(), "{wc:?}");
    after
}

fn an_acknowledgement_takes_the_way_back() {
    for (service, least, most) in [
        (Service::Rc, 210 * MS, 400 * MS),
        (Service::Uc, Duration::ZERO, 100 * MS),
        (Service::Ud, Duration::ZERO, 100 * MS),
    ] {
        let mut ends = Ends::connected(service, "latency=10ms,back=200ms");
        ends.receive();
        let send = SendRequest::send(1, vec![ends.near.region.sge(0, 8).unwrap()]);
        let after = completes_after(&mut ends, send);
        assert!((least..most).contains(&after), "{service:?}: {after:?}");
    }
}

fn a_read_goes_there_and_takes_the_way_back() {
    let mut ends = Ends::connected(Service::Rc, "latency=10ms,back=200ms");
    ends.far.region.write(WRITTEN, &7_u64.to_ne_bytes()).unwrap();
    let (into, from) = (ends.near.region.sge(0, 8).unwrap(), ends.far.region.remote(WRITTEN).unwrap());
    let after = completes_after(&mut ends, SendRequest::read(1, vec![into], from));
    assert_eq!(ends.near.word(0), 7);
    assert!((210 * MS..400 * MS).contains(&after), "{after:?}");
}
