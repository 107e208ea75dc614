//! Data and scripts packed into the page: gzip, then base64, which no text of a record can break
//! out of. The page unpacks them with the browser's own `DecompressionStream`.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{Markup, PreEscaped, html};

use crate::error::Error;

/// The bytes as a `<script>` element that is data to the browser, never run as it stands.
pub(super) fn packed(id: &str, bytes: &[u8]) -> Result<Markup, Error> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(6));
    encoder.write_all(bytes)?;
    let text = STANDARD.encode(encoder.finish()?);
    Ok(html! { script type="application/gzip;base64" id=(id) { (PreEscaped(text)) } "\n" })
}
