//! Parametrised round trips: a burst of messages with pauses, and the answer to the last.

use measure::table::Presentation;

pub(super) static SHOWN: Presentation = Presentation { pattern: "prtt", ..Presentation::PLAIN };
