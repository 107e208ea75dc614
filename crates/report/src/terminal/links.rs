//! What the links carry that throughputs stand beside, said once below the tables.

use super::plain;
use crate::best::Best;

/// The links of the points so far, in the order in which they appeared.
#[derive(Debug, Default)]
pub(super) struct Links {
    known: Vec<String>,
    /// Whether acknowledgements took some of one.
    is_shared: bool,
}

impl Links {
    pub(super) fn see(&mut self, best: &Best) {
        let link = best.link.to_string();
        self.is_shared |= best.is_shared;
        if !self.known.contains(&link) {
            self.known.push(link);
        }
    }

    /// The paragraph; empty where no link is known.
    pub(super) fn text(&self) -> String {
        if self.known.is_empty() {
            return String::new();
        }
        let mut out = "\n of link: the share of what the link carries at best, after its line code and the headers of the \
                       service and the operation:\n"
            .to_owned();
        for link in &self.known {
            out += &format!("   {}\n", plain(link));
        }
        if self.is_shared {
            out += "   Each direction carries the acknowledgements of the other, too; as an adapter may join them, they are not \
                    counted.\n";
        }
        out
    }
}
