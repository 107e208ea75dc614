//! Measures the lower limit of latency and the upper limit of throughput between two CPUs of a
//! host, and softdev's own. `cargo xtask bench` compares softdev with these limits.
//!
//! ```text
//! main.rs ─► link.rs (two pinned processes, shared memory) ─► line.rs | exchange.rs
//!                                                                           └► stream.rs ─► copy.rs | write.rs
//! ```
//!
//! One measurement per run, printed as a line of JSON. The first process measures; it starts the
//! second process, which ends with it. This is a separate program because it needs softdev and an
//! optimised build, and `xtask` does not.

mod copy;
mod exchange;
mod line;
mod link;
mod stream;
mod write;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::copy::Stores;
use self::exchange::Way;
use self::link::{Join, Link, Side};
use self::stream::Reader;

const USAGE: &str = "\
usage: baseline WHAT CPU CPU

Measures between two processes, each on one of the two CPUs, and prints a line of JSON.

  line             half the round trip of a cache line, in ns: mean, nearest and farthest line
  lanes            the same for a message that each process writes to its own next line: median and mean of batches
  worked-lanes     as lanes, but each process works for 40 ns before it answers
  worked-line      as worked-lanes, but on one cache line
  streaming        1 MiB messages, in bytes/s: the process on the first CPU copies them into shared memory with
                   non-temporal stores, and the process on the second CPU reads every word
  cached           as streaming, but with memcpy
  write            as streaming, but by RDMA Write of softdev
  streaming-unread, cached-unread, write-unread
                   the same, but the receiver does not read the messages";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("baseline: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let (what, cpus, join) = match words {
        [what, first, second] => (what, [first, second], None),
        [what, first, second, join, fd, parent] if join == link::JOIN => {
            (what, [first, second], Some(Join { fd: number(fd)?, parent: number(parent)? }))
        }
        _ => bail!("expected WHAT and two CPUs\n{USAGE}"),
    };
    let cpus = [number(cpus[0])? as usize, number(cpus[1])? as usize];
    let name = what;
    let what = What::read(what)?;
    let mut link = match join {
        None => Link::start(name, cpus)?,
        Some(join) => Link::join(&join, cpus)?,
    };
    let printed = match what {
        What::Line => line::run(&link)?,
        What::Exchange(way) => exchange::run(&link, way)?,
        What::Copy(stores, reader) => copy::run(&link, stores, reader)?,
        What::Write(reader) => write::run(&link, reader)?,
    };
    if link.side == Side::First {
        link.finish()?;
        println!("{printed}");
    }
    Ok(())
}

/// The measurement.
#[derive(Clone, Copy, Debug)]
enum What {
    Line,
    Exchange(Way),
    Copy(Stores, Reader),
    Write(Reader),
}

impl What {
    fn read(word: &str) -> Result<Self> {
        let (kind, reader) = match word.strip_suffix("-unread") {
            Some(kind) => (kind, Reader::Idle),
            None => (word, Reader::Reads),
        };
        match (kind, reader) {
            ("line", Reader::Reads) => Ok(Self::Line),
            ("lanes", Reader::Reads) => Ok(Self::Exchange(Way { has_lanes: true, works: false })),
            ("worked-lanes", Reader::Reads) => Ok(Self::Exchange(Way { has_lanes: true, works: true })),
            ("worked-line", Reader::Reads) => Ok(Self::Exchange(Way { has_lanes: false, works: true })),
            ("streaming", _) => Ok(Self::Copy(Stores::streaming(), reader)),
            ("cached", _) => Ok(Self::Copy(Stores::Cached, reader)),
            ("write", _) => Ok(Self::Write(reader)),
            _ => bail!("there is no measurement `{word}`\n{USAGE}"),
        }
    }
}

fn number(word: &str) -> Result<u32> {
    word.parse().with_context(|| format!("`{word}` is not a number"))
}
