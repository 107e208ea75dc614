//! The link limits that throughputs are compared with, printed once below the tables.

use crate::link_limit::Links;
use measure::text::plain;

/// The paragraph; empty where no link is known.
pub(super) fn text(links: &Links) -> String {
    if links.texts.is_empty() {
        return String::new();
    }
    let mut out =
        "\n link: share of the link limit, which is the link's data rate less the headers of all packets:\n"
            .to_owned();
    for link in &links.texts {
        out += &format!("   {}\n", plain(link));
    }
    if links.is_shared {
        out += "   Each direction also carries the acknowledgements of the other. They are not counted, because an adapter may \
                combine them.\n";
    }
    out
}
