//! A test of perftest: a server and a client.

use std::path::Path;

use anyhow::{Context, Result};

use super::plan::{Part, Point, Quantity};
use crate::process;

/// The default port of perftest.
const PORT: u16 = 18515;

/// Runs the test once and returns the median latency in ns, or messages per second.
pub(super) fn measure(program: &Path, point: &Point, device: &str) -> Result<f64> {
    let size = point.size_bytes.to_string();
    let messages = point.messages.to_string();
    let program = program.to_string_lossy();
    let mut words = if point.part == Part::Native { vec![&*program, "exec"] } else { Vec::new() };
    words.extend([point.test, "-d", device, "-n", &messages, "-F"]);
    if point.test != "ib_atomic_lat" {
        words.extend(["-s", &size]);
    }
    if point.test.contains("send") || point.test.contains("write") {
        words.extend(["-c", point.service]);
    }
    if point.quantity == Quantity::Rate {
        // No peak bandwidth: it needs a stamp for each message, and means nothing for so few.
        words.push("-N");
    }
    if point.has_events {
        words.push("-e");
    }
    let client: Vec<&str> = words.iter().copied().chain(["127.0.0.1"]).collect();
    let printed = process::pair(point.part.cpus(), &words, PORT, &client, true)?;
    read(&printed, point.quantity, point.size_bytes)
}

/// Finds the number in the output. The columns of a latency are `#bytes #iterations t_min t_max
/// t_typical ...` in microseconds. The columns of a bandwidth are `#bytes #iterations peak average
/// MsgRate` in 2^20 bytes per second and millions per second.
fn read(printed: &str, quantity: Quantity, size: u64) -> Result<f64> {
    let mut lines = printed.lines();
    lines.find(|line| line.trim_start().starts_with("#bytes")).context("perftest printed no table")?;
    let row = lines.next().context("perftest printed an empty table")?;
    let numbers: Vec<f64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let number = |index: usize| {
        let number = numbers.get(index).copied().filter(|n| *n > 0.0);
        number.with_context(|| format!("perftest printed a row `{row}`"))
    };
    Ok(match quantity {
        Quantity::Latency | Quantity::MeanLatency => number(4)? * 1e3,
        Quantity::Cost | Quantity::MeanOfRanks => anyhow::bail!("perftest has no such test"),
        // Bandwidth or message rate: the column with more digits.
        Quantity::Rate if size < 1024 => number(4)? * 1e6,
        Quantity::Rate => number(3)? * 1_048_576.0 / size as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_column_is_read() {
        let latency = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                       99% percentile[usec]   99.9% percentile[usec] \n 2       1000          11.94          146.71       \
                       12.54    \t       12.97       \t4.28   \t\t19.23   \t\t146.71 \n-----";
        assert_eq!(read(latency, Quantity::Latency, 2).unwrap(), 12540.0);
        let rate = "---\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      300 \
                    0.00               38.84              0.000621\n";
        assert_eq!(read(rate, Quantity::Rate, 65536).unwrap(), 38.84 * 16.0);
        assert_eq!(read(rate, Quantity::Rate, 2).unwrap(), 621.0);
        assert!(read("Couldn't connect", Quantity::Rate, 2).is_err());
        assert!(read("#bytes\n 2 1000 nonsense", Quantity::Latency, 2).is_err());
    }
}
