//! Writes the samples of points to the record.

use bench::process::sink::{KeptSamples, Source};
use measure::record::Point;
use measure::store::RunWriter;

/// Writes the samples of a point, all or none of them.
pub(super) fn keep_samples(
    writer: &RunWriter,
    point: &mut Point,
    samples: &[KeptSamples],
) -> measure::Result<()> {
    let mut written: Vec<String> = Vec::new();
    for KeptSamples { of, samples_ns } in samples {
        let what = match of {
            Source::End(rank) => rank.to_string(),
            Source::Kind(kind) => kind.name().to_owned(),
        };
        match writer.samples(point.id, &what, samples_ns) {
            Ok(path) => written.push(path),
            Err(error) => {
                written.iter().for_each(|path| writer.remove_samples(path));
                return Err(error);
            }
        }
    }
    for (KeptSamples { of, .. }, path) in samples.iter().zip(written) {
        let entry = match of {
            Source::End(rank) => {
                point.ends.iter_mut().find(|end| end.rank == *rank).map(|end| &mut end.samples)
            }
            Source::Kind(kind) => point
                .kinds
                .iter_mut()
                .find(|timed| timed.latency.kind == *kind)
                .map(|timed| &mut timed.samples),
        };
        if let Some(entry) = entry {
            *entry = Some(path);
        }
    }
    Ok(())
}
