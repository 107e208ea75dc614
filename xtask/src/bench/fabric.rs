//! fi_pingpong of libfabric over its shm provider.

use anyhow::{Context, Result};

use super::process;
use super::value::Value;

/// The default port of fi_pingpong.
const PORT: u16 = 47592;
/// Round trips of 8 B: they take about 20 ms.
const ROUND_TRIPS: &str = "20000";

/// Runs fi_pingpong once and returns half the mean round trip of 8 B in ns. It prints no median.
pub(super) fn measure(cpus: &[String; 2]) -> Result<Value> {
    let server = ["fi_pingpong", "-p", "shm", "-e", "rdm", "-I", ROUND_TRIPS, "-S", "8"];
    let client: Vec<&str> = server.iter().copied().chain(["127.0.0.1"]).collect();
    read(&process::pair(cpus, &server, PORT, &client)?)
}

/// Finds the number in the output: the column `usec/xfer`, in which a transfer is one way.
fn read(printed: &str) -> Result<Value> {
    let mut lines = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut column = None;
    let row = lines.find(|words| match column {
        None => {
            column = words.iter().position(|word| *word == "usec/xfer");
            false
        }
        Some(_) => !words.is_empty(),
    });
    let word = row.as_ref().zip(column).and_then(|(row, column)| row.get(column));
    let number = word.and_then(|word| word.parse::<f64>().ok()).filter(|number| *number > 0.0);
    Ok(Value::mean(number.context("fi_pingpong printed no usec/xfer")? * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of fi_pingpong 1.17.0, `-p shm -e rdm -I 200000 -S 8 127.0.0.1`.
    const PRINTED: &str = "\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
8       200k    =200k    3m          0.24s     13.33       0.60       1.67
";

    #[test]
    fn the_right_column_is_read() {
        assert_eq!(read(PRINTED).unwrap(), Value::mean(600.0));
        assert!(read(PRINTED.lines().next().unwrap()).is_err());
        assert!(read(&PRINTED.replace("0.60", "0.00")).is_err());
        assert!(read("fi_getinfo(): util/pingpong.c:1452, ret=-61 (No data available)").is_err());
    }
}
