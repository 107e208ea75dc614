//! A model of a link, for devices that can model one.
//!
//! One text describes a link in plans, flags, environment variables and records: a rate and any of
//! `latency=`, `back=`, `fetch=`, `gap=`, `mtu=`, `header=`, separated by commas, e.g. `4X
//! FDR,latency=700ns`. [`LinkModel`] parses it and prints it.

use std::fmt;
use std::str::FromStr;

/// The properties of a link. A property that is absent is not modelled: without a rate, the rate is
/// unlimited.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkModel {
    /// Rate of the bytes on the link, headers included, after line coding.
    pub rate: Option<LinkRate>,
    /// Time that every packet takes besides its serialization, in ns: wire, switches, adapters.
    pub latency_ns: u64,
    /// The same, in ns, for packets that arrive from the peer, acknowledgements included;
    /// [`latency_ns`](Self::latency_ns) if absent.
    ///
    /// A model describes one side of a link. The peer's side of the same link is
    /// [`seen_from_other_end`](Self::seen_from_other_end); a peer with the same model as this side
    /// sends with `latency_ns`, too.
    pub back_ns: Option<u64>,
    /// Time from the post of a message until the adapter fetches it from memory, in ns: doorbell,
    /// work request, DMA. Until then a program may still change the message; after it, the message
    /// begins to leave.
    ///
    /// Requests without data to fetch skip this time: inline and empty messages (the CPU hands them
    /// over with the doorbell), RDMA Reads and atomics.
    pub fetch_ns: u64,
    /// The least time between the starts of two messages of a port, in ns (g of LogGP).
    pub gap_ns: u64,
    /// The most payload bytes of a packet; the path MTU of the queue pair if absent.
    pub mtu_bytes: Option<u32>,
    /// Bytes of a packet besides the payload; if absent, the usual headers of the link layer and of
    /// the operation.
    pub header_bytes: Option<u32>,
}

/// The rate of a link, as it was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkRate {
    /// Bits per second.
    Bits(u64),
    /// A rate of InfiniBand: lanes, and an entry of [`GENERATIONS`].
    InfiniBand(u8, Generation),
}

/// A signal rate of InfiniBand with its line code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Generation {
    /// e.g. `FDR`.
    pub name: &'static str,
    /// Signalled bits of a lane per second.
    lane_bits_per_s: u64,
    /// The line code: data bits, and the signalled bits that carry them.
    coding: (u64, u64),
}

/// The generations (IBTA vol. 2, chapter 5, and the trade association's roadmap). For those with
/// forward error correction, the data rate is given.
pub const GENERATIONS: [Generation; 8] = [
    Generation { name: "SDR", lane_bits_per_s: 2_500_000_000, coding: (8, 10) },
    Generation { name: "DDR", lane_bits_per_s: 5_000_000_000, coding: (8, 10) },
    Generation { name: "QDR", lane_bits_per_s: 10_000_000_000, coding: (8, 10) },
    Generation { name: "FDR", lane_bits_per_s: 14_062_500_000, coding: (64, 66) },
    Generation { name: "EDR", lane_bits_per_s: 25_781_250_000, coding: (64, 66) },
    Generation { name: "HDR", lane_bits_per_s: 50_000_000_000, coding: (1, 1) },
    Generation { name: "NDR", lane_bits_per_s: 100_000_000_000, coding: (1, 1) },
    Generation { name: "XDR", lane_bits_per_s: 200_000_000_000, coding: (1, 1) },
];

/// Link widths, in lanes (IBTA vol. 1, section 14.2.5.6).
const WIDTHS: [u8; 5] = [1, 2, 4, 8, 12];
/// The default width: every adapter and switch of the last twenty years has it.
const USUAL_WIDTH: u8 = 4;

impl LinkRate {
    /// Returns a link of InfiniBand by the name of its signal rate, with four lanes.
    #[must_use]
    pub fn usual(name: &str) -> Option<Self> {
        GENERATIONS.into_iter().find(|g| g.name == name).map(|g| Self::InfiniBand(USUAL_WIDTH, g))
    }

    /// Data bits per second.
    #[must_use]
    pub fn bits_per_s(self) -> u64 {
        match self {
            Self::Bits(bits) => bits,
            Self::InfiniBand(lanes, generation) => {
                let (data, coded) = generation.coding;
                generation.lane_bits_per_s * u64::from(lanes) * data / coded
            }
        }
    }
}

impl FromStr for LinkRate {
    type Err = String;

    /// Parses `16Gb/s` or `4X DDR`. The default width is four lanes.
    fn from_str(text: &str) -> Result<Self, String> {
        rate(text)
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InfiniBand(lanes, generation) => write!(f, "{lanes}X {}", generation.name),
            Self::Bits(bits) => {
                let (unit, name) =
                    UNITS.into_iter().find(|(unit, _)| bits.is_multiple_of(*unit)).unwrap_or((1, "b/s"));
                write!(f, "{}{name}", bits / unit)
            }
        }
    }
}

/// Units of rates, in descending order.
const UNITS: [(u64, &str); 4] = [(1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1000, "kb/s"), (1, "b/s")];
/// Units of times, in descending order.
const TIMES: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];

impl fmt::Display for LinkModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: u64| {
            let (unit, name) =
                TIMES.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit)).unwrap_or((1, "ns"));
            format!("{}{name}", ns / unit)
        };
        let parts = [
            self.rate.map(|rate| rate.to_string()),
            (self.latency_ns > 0).then(|| format!("latency={}", time(self.latency_ns))),
            self.back_ns.map(|ns| format!("back={}", time(ns))),
            (self.fetch_ns > 0).then(|| format!("fetch={}", time(self.fetch_ns))),
            (self.gap_ns > 0).then(|| format!("gap={}", time(self.gap_ns))),
            self.mtu_bytes.map(|bytes| format!("mtu={bytes}")),
            self.header_bytes.map(|bytes| format!("header={bytes}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// Why a text does not describe a link.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{text}` is not a link: {why}; give a rate such as 4X FDR or 40Gb/s and any of latency=700ns, back=1us, \
     fetch=300ns, gap=50ns, mtu=2048, header=30, separated by commas"
)]
pub struct BadLink {
    text: String,
    why: String,
}

impl FromStr for LinkModel {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        let mut model = Self::default();
        let mut seen = Vec::new();
        let bad = |why: String| BadLink { text: text.to_owned(), why };
        for item in text.split(',').map(str::trim) {
            let (key, value) = item.split_once('=').unwrap_or(("rate", item));
            let key = key.trim();
            let value = value.trim();
            if seen.contains(&key) {
                return Err(bad(format!("{key} is given twice")));
            }
            seen.push(key);
            model.set(key, value).map_err(bad)?;
        }
        Ok(model)
    }
}

impl LinkModel {
    /// Returns the same link from the peer's side: a packet that takes `back` to this side leaves
    /// the peer with that latency.
    #[must_use]
    pub fn seen_from_other_end(self) -> Self {
        match self.back_ns {
            Some(back_ns) => Self { latency_ns: back_ns, back_ns: Some(self.latency_ns), ..self },
            None => self,
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "rate" => self.rate = Some(rate(value)?),
            "latency" => self.latency_ns = time(value).ok_or_else(|| not("a latency up to 1s", value))?,
            "back" => self.back_ns = Some(time(value).ok_or_else(|| not("a latency up to 1s", value))?),
            "fetch" => {
                self.fetch_ns =
                    time(value).ok_or_else(|| not("a time up to 1s until a message is fetched", value))?;
            }
            "gap" => self.gap_ns = time(value).ok_or_else(|| not("a gap up to 1s", value))?,
            "mtu" => {
                let bytes = value.parse().ok().filter(|bytes| MTUS.contains(bytes));
                self.mtu_bytes = Some(bytes.ok_or_else(|| not("an MTU of 64 to 65536 bytes", value))?);
            }
            "header" => {
                let bytes = value.parse().ok().filter(|bytes| HEADERS.contains(bytes));
                self.header_bytes = Some(bytes.ok_or_else(|| not("a header of 0 to 1024 bytes", value))?);
            }
            _ => return Err(format!("a link has no property `{key}`")),
        }
        Ok(())
    }
}

/// The accepted payload of a packet. Below it, a packet is mostly headers; no fabric has more.
const MTUS: std::ops::RangeInclusive<u32> = 64..=65536;
/// The accepted header size of a packet, above every encapsulation in use.
const HEADERS: std::ops::RangeInclusive<u32> = 0..=1024;
/// The accepted rates. A rate slower than a modem, or faster than the resolution of this model, is
/// a typing error.
const RATES_BITS_PER_S: std::ops::RangeInclusive<u64> = 1000..=100_000_000_000_000;
/// The longest accepted latency and gap: no link on Earth is slower.
const LONGEST_NS: u64 = 1_000_000_000;

fn not(what: &str, value: &str) -> String {
    format!("`{value}` is not {what}")
}

fn rate(value: &str) -> Result<LinkRate, String> {
    let wrong = || not("a rate", value);
    if let Some((number, (unit, _))) = with_unit(value, &UNITS) {
        let bits = scaled(number, unit).filter(|bits| RATES_BITS_PER_S.contains(bits));
        return bits.map(LinkRate::Bits).ok_or_else(wrong);
    }
    let (width, name) = match value.split_once(['X', 'x']) {
        Some((width, name)) if !width.is_empty() => (width.trim().parse().map_err(|_| wrong())?, name.trim()),
        _ => (USUAL_WIDTH, value),
    };
    if !WIDTHS.contains(&width) {
        return Err(format!("InfiniBand has no links of {width} lanes"));
    }
    let generation = GENERATIONS.into_iter().find(|g| g.name.eq_ignore_ascii_case(name));
    generation.map(|generation| LinkRate::InfiniBand(width, generation)).ok_or_else(wrong)
}

fn time(value: &str) -> Option<u64> {
    let (number, (unit, _)) = with_unit(value, &[TIMES[3], TIMES[2], TIMES[1], TIMES[0]])?;
    scaled(number, unit).filter(|ns| *ns <= LONGEST_NS)
}

/// Returns a text without its unit, if it ends with one of these.
fn with_unit<'a, 'u>(text: &'a str, units: &'u [(u64, &'u str)]) -> Option<(&'a str, (u64, &'u str))> {
    units.iter().find_map(|unit| Some((text.strip_suffix(unit.1)?.trim(), *unit)))
}

/// Parses a decimal number of units as a whole number; `None` if it is not one.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let scale = 10_u64.pow(fraction.len() as u32);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit);
    if !part.is_multiple_of(u128::from(scale)) {
        return None;
    }
    whole.checked_add(u64::try_from(part / u128::from(scale)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> LinkModel {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn rates_are_those_of_the_specification() {
        for (text, bits) in [
            ("4X SDR", 8_000_000_000),
            ("4X DDR", 16_000_000_000),
            ("4X QDR", 32_000_000_000),
            ("4X FDR", 54_545_454_545),
            ("EDR", 100_000_000_000),
            ("12x qdr", 96_000_000_000),
            ("1XFDR", 13_636_363_636),
            ("4X HDR", 200_000_000_000),
            ("10Gb/s", 10_000_000_000),
            ("2.5 Gb/s", 2_500_000_000),
            ("100Mb/s", 100_000_000),
        ] {
            assert_eq!(model(text).rate.unwrap().bits_per_s(), bits, "{text}");
        }
    }

    #[test]
    fn a_model_reads_what_it_prints() {
        for text in [
            "4X FDR",
            "latency=700ns",
            "40Gb/s,latency=1500ns,gap=50ns,mtu=2048,header=30",
            "1X SDR,latency=1ms",
            "56500Mb/s,header=0",
            "latency=10us,back=30us",
            "4X EDR,back=0s,fetch=300ns,gap=50ns",
        ] {
            assert_eq!(model(text).to_string(), text);
        }
        assert_eq!(model(" FDR , latency = 1.5us ").to_string(), "4X FDR,latency=1500ns");
        assert_eq!(model("latency=2us").latency_ns, 2000);
    }

    #[test]
    fn the_other_end_sends_as_this_one_hears() {
        let link = model("4X FDR,latency=10us,back=30us,fetch=5us");
        assert_eq!(link.seen_from_other_end().to_string(), "4X FDR,latency=30us,back=10us,fetch=5us");
        for text in ["back=30us", "latency=10us,back=30us", "latency=10us", "4X FDR"] {
            let there_and_back = model(text).seen_from_other_end().seen_from_other_end();
            assert_eq!(
                (there_and_back.latency_ns, there_and_back.back_ns),
                (model(text).latency_ns, model(text).back_ns)
            );
            let printed = model(text).seen_from_other_end();
            assert_eq!(model(&printed.to_string()), printed, "{text}");
        }
        assert_eq!(model("latency=10us").seen_from_other_end(), model("latency=10us"));
    }

    #[test]
    fn what_is_no_link_is_refused_with_what_to_say() {
        for (text, why) in [
            ("4X FRD", "`4X FRD` is not a rate"),
            ("3X FDR", "no links of 3 lanes"),
            ("", "`` is not a rate"),
            ("FDR,FDR", "rate is given twice"),
            ("latency=fast", "`fast` is not a latency"),
            ("latency=2s", "`2s` is not a latency up to 1s"),
            ("latency=0.5ns", "`0.5ns` is not a latency"),
            ("back=1", "`1` is not a latency up to 1s"),
            ("back=1us,back=1us", "back is given twice"),
            ("fetch=2s", "`2s` is not a time up to 1s until a message is fetched"),
            ("mtu=0", "`0` is not an MTU"),
            ("header=-1", "`-1` is not a header"),
            ("delay=1us", "a link has no property `delay`"),
            ("0Gb/s", "`0Gb/s` is not a rate"),
            ("1e9b/s", "is not a rate"),
        ] {
            let error = text.parse::<LinkModel>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("give a rate such as 4X FDR"), "{text}: {error}");
        }
    }
}
