//! Data and scripts packed into the page: gzip, then base64, which no text of a record can break
//! out of. The page unpacks them with the browser's own `DecompressionStream`.

use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{Markup, PreEscaped, html};

use crate::error::Error;

/// The charts' library, packed once for all pages that a process writes.
static PLOTLY: LazyLock<io::Result<String>> =
    LazyLock::new(|| pack(include_bytes!("../../assets/plotly-cartesian.min.js")));

/// The bytes as a `<script>` element that is data to the browser, never run as it stands.
pub(super) fn packed(id: &str, bytes: &[u8]) -> Result<Markup, Error> {
    Ok(element(id, &pack(bytes)?))
}

/// The charts' library, in the same way.
pub(super) fn plotly(id: &str) -> Result<Markup, Error> {
    let text = PLOTLY.as_ref().map_err(|error| io::Error::from(error.kind()))?;
    Ok(element(id, text))
}

fn pack(bytes: &[u8]) -> io::Result<String> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(6));
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

fn element(id: &str, text: &str) -> Markup {
    html! { script type="application/gzip;base64" id=(id) { (PreEscaped(text)) } "\n" }
}
