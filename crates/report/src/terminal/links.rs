//! What the links carry that throughputs stand beside, said once below the tables.

use crate::link_limit::Links;
use measure::text::plain;

/// The paragraph; empty where no link is known.
pub(super) fn text(links: &Links) -> String {
    if links.texts.is_empty() {
        return String::new();
    }
    let mut out = "\n of link: the share of what the link carries at best, after its line code and the headers of the service \
                   and the operation:\n"
        .to_owned();
    for link in &links.texts {
        out += &format!("   {}\n", plain(link));
    }
    if links.is_shared {
        out += "   Each direction carries the acknowledgements of the other, too; as an adapter may join them, they are not \
                counted.\n";
    }
    out
}
