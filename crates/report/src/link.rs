//! Signal and data rates of links, computed from lane rate, width and coding; and the bytes that a
//! message puts on a link ([`Layer`]).
//!
//! Lane rates and codings are those of the InfiniBand Architecture Specification, vol. 2, as Gamess
//! and Ortiz-Zuazaga 2016 tabulate them (Table 1) up to EDR. All arithmetic is in integers, in
//! bit/s, and exact up to the last division.

mod layer;

pub use layer::Layer;
pub(crate) use layer::Transfer;

/// A generation of InfiniBand links.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Generation {
    /// The name in print, e.g. `FDR`.
    pub name: &'static str,
    /// Signal rate of one lane, in bit/s. Generations after EDR are named by their data rate, which
    /// is stored here: bits for forward error correction are signalled in addition.
    lane_bits_per_s: u64,
    /// The line code: this many data bits in this many signalled bits.
    coding: (u64, u64),
    /// Data rate of an Ethernet lane that adapters call by this name, in Gb/s
    /// (`ib_get_width_and_speed` in drivers/infiniband/core/verbs.c of Linux). `None` for SDR and
    /// DDR, which stand for several rates and for an unknown one.
    ethernet_gbps: Option<u64>,
}

impl Generation {
    /// All generations, slowest first.
    pub const ALL: [Self; 8] = [
        Self::new("SDR", 2_500_000_000, (8, 10), None),
        Self::new("DDR", 5_000_000_000, (8, 10), None),
        Self::new("QDR", 10_000_000_000, (8, 10), Some(10)),
        Self::new("FDR", 14_062_500_000, (64, 66), Some(14)),
        Self::new("EDR", 25_781_250_000, (64, 66), Some(25)),
        Self::new("HDR", 50_000_000_000, (1, 1), Some(50)),
        Self::new("NDR", 100_000_000_000, (1, 1), Some(100)),
        Self::new("XDR", 200_000_000_000, (1, 1), Some(200)),
    ];

    const fn new(
        name: &'static str,
        lane_bits_per_s: u64,
        coding: (u64, u64),
        ethernet_gbps: Option<u64>,
    ) -> Self {
        Self { name, lane_bits_per_s, coding, ethernet_gbps }
    }

    /// The generation with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name == name)
    }

    /// Signal rate of a link with `lanes` lanes, in bit/s.
    pub fn signal_bits_per_s(self, lanes: u64) -> u64 {
        self.lane_bits_per_s * lanes
    }

    /// Data rate of a link with `lanes` lanes, in whole bit/s.
    pub fn data_bits_per_s(self, lanes: u64) -> u64 {
        let (data, coded) = self.coding;
        self.signal_bits_per_s(lanes) * data / coded
    }
}

/// Link widths, in lanes.
pub const WIDTHS: [u64; 4] = [1, 4, 8, 12];

/// Data rate of an InfiniBand link, or of a link model, in bit/s, by its name in records: `4X FDR`
/// or `40Gb/s`. `None` for any other text.
pub fn data_bits_per_s(link: &str) -> Option<u64> {
    for (unit, bits_per_s) in UNITS {
        if let Some(number) = link.strip_suffix(unit) {
            return number.trim().parse::<u64>().ok()?.checked_mul(bits_per_s);
        }
    }
    let (lanes, name) = lanes_and_name(link)?;
    if name == "FDR10" {
        return Some(lanes * FDR10_BITS_PER_S);
    }
    Some(Generation::named(name)?.data_bits_per_s(lanes))
}

/// Data rate of an Ethernet link, in bit/s, by the InfiniBand name that an adapter gives it. The
/// line code is not InfiniBand's. `None` for SDR and DDR.
pub fn ethernet_bits_per_s(link: &str) -> Option<u64> {
    let (lanes, name) = lanes_and_name(link)?;
    if name == "FDR10" {
        return Some(lanes * FDR10_BITS_PER_S);
    }
    Some(lanes * Generation::named(name)?.ethernet_gbps? * 1_000_000_000)
}

fn lanes_and_name(link: &str) -> Option<(u64, &str)> {
    let (lanes, name) = link.split_once("X ")?;
    Some((lanes.parse().ok().filter(|lanes| (1..=12).contains(lanes))?, name))
}

/// Units of rates in records, in bit/s; the last one is also a suffix of the others.
const UNITS: [(&str, u64); 4] = [("Gb/s", 1_000_000_000), ("Mb/s", 1_000_000), ("kb/s", 1000), ("b/s", 1)];
/// Data rate of a lane of FDR10, which is no generation of the specification: 10.3125 Gb/s in
/// 64b/66b, as 10 Gb/s Ethernet.
const FDR10_BITS_PER_S: u64 = 10_000_000_000;

/// Prints a rate in Gb/s: with all of its decimals, at least two, if five are enough; otherwise cut
/// after three, with dots.
pub fn gbps(bits_per_s: u64) -> String {
    let whole = bits_per_s / 1_000_000_000;
    let fraction = bits_per_s % 1_000_000_000;
    if !fraction.is_multiple_of(10_000) {
        return format!("{whole}.{:03}…", fraction / 1_000_000);
    }
    let digits = format!("{:05}", fraction / 10_000);
    let needed = digits.trim_end_matches('0').len().max(2);
    format!("{whole}.{}", &digits[..needed])
}

/// The relation of a printed number to the exact rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Printed {
    /// The same number.
    Exact,
    /// The exact rate cut after the printed digits.
    Cut,
    /// The exact rate rounded up in the last printed digit.
    Rounded,
    /// Another number, or no number.
    Other,
}

/// Compares a printed rate in Gb/s with the exact rate.
pub fn compare(printed: &str, bits_per_s: u64) -> Printed {
    let (whole, fraction) = printed.trim().split_once('.').unwrap_or((printed.trim(), ""));
    let (Ok(whole), true) = (whole.parse::<u64>(), fraction.len() <= 9) else { return Printed::Other };
    let step = 10u64.pow(9 - fraction.len() as u32);
    let fraction = if fraction.is_empty() { Ok(0) } else { fraction.parse::<u64>() };
    let Some(value) = fraction.ok().and_then(|f| whole.checked_mul(1_000_000_000)?.checked_add(f * step))
    else {
        return Printed::Other;
    };
    match bits_per_s {
        exact if exact == value => Printed::Exact,
        exact if exact / step * step == value => Printed::Cut,
        exact if (exact + step / 2) / step * step == value => Printed::Rounded,
        _ => Printed::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Generation {
        Generation::named(name).unwrap()
    }

    const TABLE1: &str = include_str!("../../../plans/reference/gamess-2016/table1_link_rates_gbps.csv");

    #[test]
    fn table_1_is_reproduced_cell_by_cell() {
        let mut seen = Vec::new();
        for line in TABLE1.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let lanes: u64 = cells[1].parse().unwrap();
            assert_eq!(cells[0], format!("{lanes}X"));
            for (generation, printed) in Generation::ALL.into_iter().zip(&cells[3..]) {
                let exact = match cells[2] {
                    "signal" => generation.signal_bits_per_s(lanes),
                    _ => generation.data_bits_per_s(lanes),
                };
                let verdict = compare(printed, exact);
                if verdict != Printed::Exact {
                    seen.push((cells[0], cells[2], generation.name, *printed, verdict));
                }
            }
        }
        // The paper cuts after two digits, except for 1X FDR, which it rounds (13.636 is printed as
        // 13.64).
        let expected = [
            ("1X", "data", "FDR", "13.64", Printed::Rounded),
            ("4X", "data", "FDR", "54.54", Printed::Cut),
            ("8X", "data", "FDR", "109.09", Printed::Cut),
            ("12X", "data", "FDR", "163.63", Printed::Cut),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_signal_rate_is_a_multiple_of_the_lanes_exactly() {
        for generation in Generation::ALL {
            for lanes in WIDTHS {
                assert_eq!(generation.signal_bits_per_s(lanes), lanes * generation.signal_bits_per_s(1));
            }
        }
    }

    #[test]
    fn a_link_is_known_by_its_name() {
        for (name, bits_per_s) in [
            ("4X SDR", Some(8_000_000_000)),
            ("1X EDR", Some(25_000_000_000)),
            ("4X NDR", Some(400_000_000_000)),
            ("4X FDR10", Some(40_000_000_000)),
            ("40Gb/s", Some(40_000_000_000)),
            ("56500Mb/s", Some(56_500_000_000)),
            ("1000b/s", Some(1000)),
            ("width 3 speed 5", None),
            ("0X SDR", None),
            ("4X ODR", None),
            ("4X fdr", None),
            ("99999999999999999999Gb/s", None),
        ] {
            assert_eq!(data_bits_per_s(name), bits_per_s, "{name}");
        }
    }

    #[test]
    fn ethernet_has_its_own_line_code() {
        // mlx4 calls 40 and 10 Gb/s Ethernet QDR; with InfiniBand's line code 40 would leave 32.
        for (name, bits_per_s) in [
            ("4X QDR", Some(40_000_000_000)),
            ("1X FDR10", Some(10_000_000_000)),
            ("4X FDR", Some(56_000_000_000)),
            ("1X EDR", Some(25_000_000_000)),
            ("2X HDR", Some(100_000_000_000)),
            ("1X SDR", None),
            ("4X DDR", None),
            ("40Gb/s", None),
        ] {
            assert_eq!(ethernet_bits_per_s(name), bits_per_s, "{name}");
        }
    }

    #[test]
    fn rates_print_with_the_decimals_that_they_need() {
        assert_eq!(gbps(known("FDR").signal_bits_per_s(1)), "14.0625");
        assert_eq!(gbps(known("EDR").signal_bits_per_s(12)), "309.375");
        assert_eq!(gbps(known("EDR").data_bits_per_s(12)), "300.00");
        assert_eq!(gbps(known("FDR").data_bits_per_s(12)), "163.636…");
        assert_eq!(gbps(known("FDR").data_bits_per_s(8)), "109.090…");
    }

    #[test]
    fn what_is_not_a_number_is_another_number() {
        for text in ["NA", "", "1.2.3", "-4", "99999999999999999999", "1.00000000001", "1.+5", "54.55x"] {
            assert_eq!(compare(text, 54_545_454_545), Printed::Other, "{text}");
        }
        assert_eq!(compare("54.55", 54_545_454_545), Printed::Rounded);
        assert_eq!(compare("54.56", 54_545_454_545), Printed::Other);
    }
}
