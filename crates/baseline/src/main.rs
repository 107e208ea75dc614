//! What two CPUs of a host can do for each other at most, and what softdev makes of it: the floor
//! and the ceiling that `cargo xtask bench` compares with.
//!
//! ```text
//! main.rs ─► link.rs (two pinned processes, memory that both have mapped) ─► line.rs | exchange.rs
//!                                                                           └► stream.rs ─► copy.rs | write.rs
//! ```
//!
//! One measurement per run, printed as a line of JSON. The first process measures; the second is
//! started by it and ends with it. A program of its own, because it needs softdev and an optimised
//! build, and `xtask` neither.

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

  line             half the round trip of a cache line, in ns: of the mean one, the nearest and the farthest
  lanes            the same of a message that each end puts in the next line of its own: the median and the mean of batches
  worked-lanes     the same where each end does something for 40 ns before it answers
  worked-line      the same on one line
  streaming        1 MiB messages, copied by the process on the first CPU with non-temporal stores into shared memory, and
                   read there, every word, by the one on the second, in bytes/s
  cached           the same with memcpy
  write            the same by RDMA Write of softdev
  streaming-unread, cached-unread, write-unread
                   the same, but that nobody reads what was written";

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
        _ => bail!("it takes what to measure and two CPUs\n{USAGE}"),
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

/// What is measured.
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
            _ => bail!("`{word}` is nothing that can be measured\n{USAGE}"),
        }
    }
}

fn number(word: &str) -> Result<u32> {
    word.parse().with_context(|| format!("`{word}` is no number"))
}
