//! The result of a transfer, as text or as JSON.

use bench::point::Carrier;
use measure::record::{Point, Status};
use serde_json::{Value, json};

use crate::failure::harmless;

/// The result of a transfer.
pub(super) struct Summary<'a> {
    point: &'a Point,
    carrier: Carrier,
    command: &'a [String],
}

impl<'a> Summary<'a> {
    pub(super) fn of(point: &'a Point, carrier: Carrier, command: &'a [String]) -> Self {
        Self { point, carrier, command }
    }

    fn end(&self, end: &str) -> Option<&Value> {
        self.point.own.get("transfer")?.get(end)
    }

    fn counts(&self, end: &str) -> Option<&Value> {
        self.end(end)?.get("counts")
    }

    fn count(&self, end: &str, name: &str) -> u64 {
        self.counts(end).and_then(|counts| counts.get(name)?.as_u64()).unwrap_or(0)
    }

    fn ns(&self, end: &str, name: &str) -> f64 {
        self.end(end).and_then(|end| end.get(name)?.as_f64()).unwrap_or(0.0)
    }

    fn sentences(&self, name: &str) -> Vec<String> {
        let of = |end: &str| {
            let all = self.counts(end).and_then(|counts| counts.get(name)?.as_array().cloned());
            all.unwrap_or_default().into_iter().filter_map(|text| text.as_str().map(str::to_owned))
        };
        of("source").chain(of("sink")).collect()
    }

    /// Whether everything has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.point.status == Status::Measured
    }

    /// Prints on standard error what has not arrived, and other remarks.
    pub(super) fn complain(&self) {
        for remark in self.sentences("remarks").into_iter().chain(self.notes()) {
            eprintln!("rdmascope: {}", harmless(&remark));
        }
        let failures = self.sentences("failures");
        for failure in &failures {
            eprintln!("rdmascope: {}", harmless(failure));
        }
        let failed = self.count("source", "failed") + self.count("sink", "failed");
        if failed > failures.len() as u64 {
            eprintln!("rdmascope: and {} more", failed - failures.len() as u64);
        }
        match &self.point.status {
            Status::Failed { error } if failures.is_empty() => eprintln!("rdmascope: {}", harmless(error)),
            Status::NotMeasured { reason } => eprintln!("rdmascope: {}", harmless(reason)),
            _ => {}
        }
    }

    fn notes(&self) -> Vec<String> {
        let of = |(end, name): (&str, &str)| {
            let notes =
                self.end(end).and_then(|end| end.get("notes")?.as_object().cloned()).unwrap_or_default();
            let name = name.to_owned();
            notes.into_iter().map(move |(_, note)| format!("{name}: {}", note.as_str().unwrap_or_default()))
        };
        [("source", "source"), ("sink", "sink")].into_iter().flat_map(of).collect()
    }

    /// Returns the result as text.
    pub(super) fn text(&self) -> String {
        if self.end("sink").is_none() {
            return String::new();
        }
        let bytes = self.count("sink", "bytes") as f64;
        let seconds = self.ns("source", "wall_ns") / 1e9;
        let rate = if seconds > 0.0 { bytes / seconds } else { 0.0 };
        let plural = |count: u64, one: &str, many: &str| {
            if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
        };
        let mut what = vec![plural(self.count("sink", "files"), "file", "files")];
        for (name, one, many) in [("directories", "directory", "directories"), ("links", "link", "links")] {
            let count = self.count("sink", name);
            if count > 0 {
                what.push(plural(count, one, many));
            }
        }
        let mut lines = format!(
            "{}: {} in {seconds:.3} s over {}, {}/s\n",
            what.join(", "),
            size(bytes),
            self.carrier.name(),
            size(rate)
        );
        let present = self.count("sink", "present");
        if present > 0 {
            lines += &format!("{} there already\n", plural(present, "file was", "files were"));
        }
        let resumed = self.count("sink", "resumed_bytes");
        if resumed > 0 {
            lines += &format!("{} of interrupted files were there already\n", size(resumed as f64));
        }
        let cpu = |end: &str| (self.ns(end, "user_ns") + self.ns(end, "system_ns")) / 1e9;
        lines += &format!("CPU time: {:.3} s to send, {:.3} s to receive\n", cpu("source"), cpu("sink"));
        lines
    }

    /// Returns the result as JSON.
    pub(super) fn json(&self) -> String {
        let (status, words) = match &self.point.status {
            Status::Measured => ("complete", None),
            Status::Failed { error } => ("failed", Some(error)),
            Status::NotMeasured { reason } => ("not_possible", Some(reason)),
        };
        let all = json!({
            "status": status,
            "error": words,
            "over": self.carrier.word(),
            "command": self.command,
            "source": self.end("source"),
            "sink": self.end("sink"),
        });
        format!("{all:#}\n")
    }
}

/// Formats a number of bytes with a suitable unit.
fn size(bytes: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.iter().find(|(_, shift)| bytes >= f64::from(1 << *shift));
    unit.map_or_else(
        || format!("{bytes:.0} B"),
        |(name, shift)| format!("{:.2} {name}", bytes / f64::from(1 << *shift)),
    )
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_the_unit_that_suits() {
        assert_eq!(
            [0.0, 1023.0, 1024.0, 1.5 * 1048576.0, 3e12].map(size),
            ["0 B", "1023 B", "1.00 KiB", "1.50 MiB", "2793.97 GiB"]
        );
    }
}
