//! Data and scripts packed into the page: gzip, then base64, so that no text of a record can break
//! out. The page unpacks them with the browser's own `DecompressionStream`.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{Markup, PreEscaped, html};

use crate::error::Error;

/// The charts' library, as it is vendored: compressed once, for the program and for every page.
const PLOTLY: &[u8] = include_bytes!("../../assets/plotly-cartesian.min.js.gz");

/// The bytes as a `<script>` element that the browser treats as data and never runs.
pub(super) fn packed(id: &str, bytes: &[u8]) -> Result<Markup, Error> {
    Ok(element(id, &compress(bytes)?))
}

/// The charts' library, in the same way.
pub(super) fn plotly(id: &str) -> Markup {
    element(id, PLOTLY)
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(6));
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn element(id: &str, gzip: &[u8]) -> Markup {
    html! { script type="application/gzip;base64" id=(id) { (PreEscaped(STANDARD.encode(gzip))) } "\n" }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Read;

    use flate2::read::GzDecoder;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_charts_library_is_the_file_that_its_provenance_names() {
        let mut unpacked = Vec::new();
        GzDecoder::new(PLOTLY).read_to_end(&mut unpacked).unwrap();
        let digest = Sha256::digest(&unpacked).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        });
        let provenance = include_str!("../../assets/PROVENANCE.md");
        assert!(provenance.contains(&digest), "{digest}");
    }
}
