//! `rdmascope agent`: the end that measures.

use std::process::ExitCode;

use anyhow::Context;
use bench::process::agent;
use bench::worker::VerbsWorker;
use rustix::thread::CpuSet;

use crate::backends::providers;
use crate::cli::AgentArguments;

/// Serves the coordinator at standard input and output until it goes.
pub(crate) fn serve(arguments: AgentArguments) -> anyhow::Result<ExitCode> {
    let (input, output) = agent::take_stdio()?;
    agent::serve(input, output, worker(arguments)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What measures on this thread from now on.
pub(crate) fn worker(arguments: AgentArguments) -> anyhow::Result<VerbsWorker> {
    // Pinned before anything is allocated, so that memory is where the CPU is.
    if let Some(cpu) = arguments.cpu {
        pin(cpu)?;
    }
    let pinned = arguments.cpu.map(|cpu| vec![cpu]);
    Ok(VerbsWorker::new(
        providers(),
        arguments.device,
        arguments.port.options(),
        pinned,
        arguments.clock_skew,
    ))
}

fn pin(cpu: u32) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    anyhow::ensure!((cpu as usize) < CpuSet::MAX_CPU, "there is no CPU {cpu}");
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set).with_context(|| {
        format!("cannot pin the agent to CPU {cpu}: choose one that is allowed (see taskset -p $$)")
    })
}
