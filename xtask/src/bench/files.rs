//! Compares file transfers with other programs that move files on a host. The time of a whole
//! process counts, start-up included; the received files are verified after the time.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::process;
use crate::shell;
use crate::stats::median;

/// Names for `--only`.
pub(super) const NAMES: [&str; 6] = [
    "transfer-memory",
    "transfer-file",
    "transfer-small",
    "transfer-mixed",
    "transfer-busy",
    "transfer-to-memory",
];

/// The number of rounds. In a round, all programs are measured one right after the other.
const ROUNDS: usize = 5;
/// Bytes of the long file.
const LONG_BYTES: u64 = 1 << 30;
/// The directory of the files: in memory, because otherwise the disk would be measured.
const PLACE: &str = "/dev/shm";

/// A program that moves a tree from `$1` to `$2`, or only the long file, `$file`. `$3` is
/// rdmascope, and `$port` is a free port. `is_there` waits until a process listens on it.
#[derive(Clone, Copy)]
struct Mover {
    name: &'static str,
    /// The program that must be installed; `None` for programs of every host.
    needs: Option<&'static str>,
    script: &'static str,
    /// Whether the whole content arrives.
    is_whole: bool,
}

const fn mover(name: &'static str, script: &'static str) -> Mover {
    Mover { name, needs: None, script, is_whole: true }
}

impl Mover {
    const fn of(self, program: &'static str) -> Self {
        Self { needs: Some(program), ..self }
    }
}

const OURS: Mover = mover("verbs", "\"$3\" transfer \"$1/.\" --to \"$2\"");
const TCP: Mover = mover("TCP", "\"$3\" transfer \"$1/.\" --to \"$2\" --over tcp");
const CP: Mover = mover("cp -a", "cp -a \"$1/.\" \"$2\"");
const RSYNC: Mover = mover("rsync -a -W", "rsync -a -W \"$1/\" \"$2/\"").of("rsync");
const TAR: Mover = mover("tar | tar", "tar cf - -C \"$1\" . | tar xf - -C \"$2\"").of("tar");
const TAR_NC: Mover = mover(
    "tar | nc",
    "nc -l 127.0.0.1 $port | tar xf - -C \"$2\" & is_there; tar cf - -C \"$1\" . | nc -N 127.0.0.1 $port; wait $!",
)
.of("nc");
const NC: Mover = mover(
    "nc",
    "nc -l 127.0.0.1 $port > \"$2/$file\" & is_there; nc -N 127.0.0.1 $port < \"$1/$file\"; wait $!",
)
.of("nc");
const SOCAT: Mover = mover(
    "socat",
    "socat -u -b262144 TCP-LISTEN:$port,bind=127.0.0.1 CREATE:\"$2/$file\" & is_there; \
     socat -u -b262144 OPEN:\"$1/$file\" TCP:127.0.0.1:$port; wait $!",
)
.of("socat");
const CURL: Mover = mover(
    "curl, nginx",
    "echo \"daemon off; master_process off; pid nginx.pid; events {} \
     http { access_log off; sendfile on; server { listen 127.0.0.1:$port; root $1; } }\" > \"$2/conf\"; \
     nginx -p \"$2\" -e stderr -c conf & is_there; \
     curl -s -o \"$2/$file\" \"http://127.0.0.1:$port/$file\"; kill $!; wait $! || true; \
     find \"$2\" -mindepth 1 -maxdepth 1 -not -name d0 -exec rm -r {} +",
)
.of("nginx");
/// The server of iperf3 ends before it has written the end of the file.
const IPERF3: Mover = Mover {
    is_whole: false,
    ..mover(
        "iperf3 -F",
        "iperf3 -s -1 -p $port -F \"$2/$file\" > /dev/null & is_there; \
         iperf3 -c 127.0.0.1 -p $port -F \"$1/$file\" -n 1G > /dev/null; wait $!",
    )
    .of("iperf3")
};

/// Definitions for the scripts of movers.
const PRELUDE: &str = "file=d0/f0; port=$4; \
    is_there() { until ss -Hltn \"sport = :$port\" | grep -q .; do kill -0 $! || exit 1; done; }";
/// The longest time to move a tree once, in seconds.
const LIMIT_S: &str = "120";

/// The wall time and the CPU time of a mover, in seconds.
#[derive(Clone, Copy)]
struct Took {
    wall_s: f64,
    cpu_s: f64,
}

/// A goal: the highest ratio of one mover's time to another mover's time.
struct Goal {
    ours: &'static str,
    other: &'static str,
    of: fn(Took) -> f64,
    what: &'static str,
    most: f64,
}

const fn time(ours: &'static str, other: &'static str, most: f64) -> Goal {
    Goal { ours, other, of: |took| took.wall_s, what: "time", most }
}

/// Measures the transfers whose name contains `only`.
pub(super) fn run(scratch: &Path, only: &str, broken: &mut Vec<String>) -> Result<()> {
    let [memory, file, small, mixed, busy, to_memory] = NAMES.map(|name| name.contains(only));
    if !NAMES.iter().any(|name| name.contains(only)) {
        return Ok(());
    }
    if memory {
        from_memory(scratch, broken)?;
    }
    let place = tempfile_in(PLACE)?;
    let result = (|| -> Result<()> {
        if file {
            let from = place.join("long");
            make(&from, &[(1, LONG_BYTES)])?;
            println!(
                "a file of 1 GiB within a file system in memory; writing alone takes {:.3} s",
                stage(&place)?
            );
            let cpu = Goal { of: |took| took.cpu_s, what: "CPU time", ..time("verbs", "TCP", 0.7) };
            let own = [time("verbs", "cp -a", 1.0 / 0.9), time("verbs", "TCP", 1.0 / 1.3), cpu];
            let others = [IPERF3, RSYNC, CURL, NC, SOCAT];
            let of_tcp = others.iter().map(|other| time("TCP", other.name, 1.0));
            let goals: Vec<Goal> = own.into_iter().chain(of_tcp).collect();
            compare(&place, &from, &[&[OURS, TCP, CP][..], &others].concat(), &goals, broken)?;
        }
        if small {
            let from = place.join("small");
            make(&from, &[(10_000, 4096)])?;
            println!("10,000 files of 4 KiB");
            let goals = [time("verbs", "rsync -a -W", 0.8), time("verbs", "tar | nc", 1.0)];
            compare(&place, &from, &[OURS, TCP, CP, RSYNC, TAR, TAR_NC], &goals, broken)?;
        }
        if mixed {
            let from = place.join("mixed");
            make(&from, &[(15_000, 4096), (4_000, 32 << 10), (990, 256 << 10), (10, 8 << 20)])?;
            println!("20,000 files of 4 KiB to 8 MiB, 511 MiB");
            let goals = [time("verbs", "rsync -a -W", 0.65), time("verbs", "tar | nc", 0.65)];
            compare(&place, &from, &[OURS, TCP, CP, RSYNC, TAR, TAR_NC], &goals, broken)?;
        }
        if busy {
            let from = place.join("busy");
            make(&from, &[(1, LONG_BYTES)])?;
            beside_others(&place, &from, broken)?;
        }
        if to_memory {
            to_memory_over_tcp(scratch, &place, broken)?;
        }
        Ok(())
    })();
    fs::remove_dir_all(&place)?;
    result
}

fn tempfile_in(place: &str) -> Result<PathBuf> {
    let path = Path::new(place).join(format!("rdmascope-bench-{}", std::process::id()));
    fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path)
}

/// Makes a tree of files: `of` lists counts and sizes in bytes. A directory has 100 files.
fn make(at: &Path, of: &[(usize, u64)]) -> Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let piece: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(1 << 20)
    .collect();
    let mut number = 0;
    for (count, bytes) in of {
        for _ in 0..*count {
            let directory = at.join(format!("d{}", number / 100));
            fs::create_dir_all(&directory)?;
            let file = File::create(directory.join(format!("f{number}")))?;
            for begin in (0..*bytes).step_by(piece.len()) {
                let part = usize::try_from(*bytes - begin).unwrap_or(usize::MAX).min(piece.len());
                file.write_all_at(&piece[..part], begin)?;
            }
            number += 1;
        }
    }
    Ok(())
}

/// The time in which this process writes a new file by blocks of 256 KiB, in seconds: no receiver
/// can be faster.
fn stage(place: &Path) -> Result<f64> {
    let block = vec![7; 256 << 10];
    let path = place.join("stage");
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let file = File::create_new(&path)?;
        let start = Instant::now();
        for begin in (0..LONG_BYTES).step_by(block.len()) {
            file.write_all_at(&block, begin)?;
        }
        all.push(start.elapsed().as_secs_f64());
        fs::remove_file(&path)?;
    }
    median(&mut all).context("no round")
}

/// Moves a tree once.
fn moved(place: &Path, from: &Path, mover: Mover) -> Result<Took> {
    let to = place.join("to");
    fs::create_dir_all(to.join("d0"))?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let timed = format!("TIMEFORMAT='%R %U %S'; time {{ {}; }} 2>&3", mover.script);
    let mut command = Command::new("timeout");
    command
        .args([LIMIT_S, "bash", "-c", &format!("exec 3>&2; {PRELUDE}; {timed}"), "bash"])
        .args([from, &to]);
    let output = command.arg(process::built("rdmascope")).arg(port).stdout(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{} failed: {said}", mover.name);
    let numbers = said.lines().last().unwrap_or_default().split(' ').map(str::parse::<f64>);
    let [wall_s, user_s, system_s] = numbers.collect::<Result<Vec<_>, _>>().unwrap_or_default()[..] else {
        bail!("{} printed {said} instead of its times", mover.name)
    };
    let is_same =
        !mover.is_whole || shell::works(&["diff", "-r", &from.to_string_lossy(), &to.to_string_lossy()]);
    ensure!(is_same, "{}: the received files differ from the sent files", mover.name);
    fs::remove_dir_all(&to)?;
    Ok(Took { wall_s, cpu_s: user_s + system_s })
}

/// Moves a tree by several movers in turn, and compares their times.
fn compare(
    place: &Path,
    from: &Path,
    movers: &[Mover],
    goals: &[Goal],
    broken: &mut Vec<String>,
) -> Result<()> {
    let (there, missing): (Vec<Mover>, Vec<Mover>) =
        movers.iter().partition(|mover| mover.needs.is_none_or(shell::is_there));
    for mover in missing {
        let program = mover.needs.unwrap_or_default();
        println!("  {:<12} not measured: {program} is not installed", mover.name);
    }
    let mut took: Vec<Vec<Took>> = there.iter().map(|_| Vec::new()).collect();
    // In the first round, the host allocates the memory: it does not count.
    for round in 0..=ROUNDS {
        for (mover, took) in there.iter().zip(&mut took) {
            let one = moved(place, from, *mover)?;
            if round > 0 {
                took.push(one);
            }
        }
    }
    for (mover, took) in there.iter().zip(&took) {
        let of =
            |of: fn(&Took) -> f64| median(&mut took.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN);
        println!("  {:<12} {:.3} s, CPU {:.3} s", mover.name, of(|took| took.wall_s), of(|took| took.cpu_s));
    }
    let of = |name: &str| there.iter().position(|mover| mover.name == name);
    for goal in goals {
        let Some((ours, other)) = of(goal.ours).zip(of(goal.other)) else { continue };
        let ratios =
            took[ours].iter().zip(&took[other]).map(|(ours, other)| (goal.of)(*ours) / (goal.of)(*other));
        let ratio = median(&mut ratios.collect::<Vec<_>>()).context("no round")?;
        let Goal { ours, other, what, most, .. } = goal;
        println!("  {what} of {ours} / {other}: {ratio:.2} (at most {most:.2})");
        if ratio > *most {
            broken.push(format!(
                "the {what} of a transfer over {ours} is {ratio:.2} times the {what} of {other}"
            ));
        }
    }
    fs::remove_dir_all(from)?;
    Ok(())
}

/// Compares the rate while a process on each CPU never sleeps with the rate without these
/// processes.
fn beside_others(place: &Path, from: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut ratios = Vec::new();
    for round in 0..=ROUNDS {
        let alone = moved(place, from, OURS)?;
        let others: Vec<Spinner> = (0..2).map(Spinner::start).collect::<Result<_>>()?;
        let beside = moved(place, from, OURS)?;
        drop(others);
        if round > 0 {
            ratios.push(alone.wall_s / beside.wall_s);
        }
    }
    let ratio = median(&mut ratios).context("no round")?;
    println!(
        "a file of 1 GiB, with a busy process on each CPU: {ratio:.2} of the rate without (at least 0.50)"
    );
    if ratio < 0.5 {
        broken.push(format!("with a busy process on each CPU, a transfer has {ratio:.2} of its rate"));
    }
    Ok(fs::remove_dir_all(from)?)
}

/// A process that keeps a CPU busy until it is dropped.
struct Spinner(Child);

impl Spinner {
    fn start(cpu: usize) -> Result<Self> {
        let script = "while :; do :; done";
        let spawned = Command::new("taskset").args(["-c", &cpu.to_string(), "sh", "-c", script]).spawn();
        spawned.map(Self).context("cannot start taskset")
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Compares a transfer from memory to memory without a checksum with a stream of RDMA Writes that
/// has as many outstanding blocks of the same size.
fn from_memory(scratch: &Path, broken: &mut Vec<String>) -> Result<()> {
    let axes = "endpoint = \"verbs\"\nfile_source = \"memory\"\nsize_bytes = \"4GiB\"\n";
    let plan = plan_to_memory(scratch, "", axes)?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let files = rate(scratch, &["run", &plan])?;
        let flood = ["bw", "write", "--imm", "-s", "256KiB", "-t", "8", "-n", "16384", "--local"];
        ratios.push(files / rate(scratch, &flood)?);
    }
    let ratio = median(&mut ratios).context("no round")?;
    println!("memory to memory: {ratio:.2} of the rate of a stream of RDMA Writes (at least 0.60)");
    if ratio < 0.6 {
        broken.push(format!("a transfer from memory to memory has {ratio:.2} of the rate of RDMA Writes"));
    }
    Ok(())
}

/// Writes a plan of one transfer to memory without a checksum, and returns its path.
fn plan_to_memory(scratch: &Path, settings: &str, axes: &str) -> Result<String> {
    let plan = scratch.join("to-memory.toml");
    let text = format!(
        "name = \"to-memory\"\ntitle = \"To memory\"\n[[experiment]]\nname = \"transfer\"\npattern = \"transfer\"\n\
         {settings}[experiment.axes]\nfile_sink = \"memory\"\nchecksum = \"none\"\n{axes}"
    );
    fs::write(&plan, text)?;
    Ok(plan.to_string_lossy().into_owned())
}

/// The throughput of the one point of a run, in bytes per second.
fn rate(scratch: &Path, words: &[&str]) -> Result<f64> {
    let out = scratch.join("transfer");
    process::rdmascope(words, &out)?;
    let point = process::recorded(&out)?;
    let rate = point.pointer("/throughput/bytes_per_s").and_then(Value::as_f64);
    rate.with_context(|| format!("{} has no throughput: {point}", words.join(" ")))
}

/// Compares a transfer of a file to memory over TCP with iperf3, whose client reads a file and
/// whose server discards the data.
fn to_memory_over_tcp(scratch: &Path, place: &Path, broken: &mut Vec<String>) -> Result<()> {
    if !shell::is_there("iperf3") {
        println!("a file of 1 GiB to memory over TCP: not measured: iperf3 is not installed");
        return Ok(());
    }
    let from = place.join("iperf3");
    make(&from, &[(1, LONG_BYTES)])?;
    let settings = format!("sink_dir = {:?}\n", place.to_string_lossy());
    let plan = plan_to_memory(scratch, &settings, "endpoint = \"tcp\"\nsize_bytes = \"1GiB\"\n")?;
    let mut ratios = Vec::new();
    // In the first round, the host allocates the memory: it does not count.
    for round in 0..=ROUNDS {
        let ours = rate(scratch, &["run", &plan])?;
        let theirs = iperf3(&from.join("d0/f0"))?;
        if round > 0 {
            ratios.push(ours / theirs);
        }
    }
    let ratio = median(&mut ratios).context("no round")?;
    println!("a file of 1 GiB to memory over TCP: {ratio:.2} of the rate of iperf3 -c -F (at least 0.90)");
    if ratio < 0.9 {
        broken.push(format!("a transfer to memory over TCP has {ratio:.2} of the rate of iperf3"));
    }
    Ok(fs::remove_dir_all(from)?)
}

/// The rate at which iperf3's server receives a file, in bytes per second, start-up excluded.
fn iperf3(file: &Path) -> Result<f64> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let script = "iperf3 -s -1 -p $port > /dev/null & is_there; \
                  iperf3 -c 127.0.0.1 -p $port -F \"$1\" -n 1G --json; wait $!";
    let mut command = Command::new("timeout");
    command.args([LIMIT_S, "bash", "-c", &format!("{PRELUDE}; {script}"), "bash"]);
    let output = command.arg(file).args(["", ""]).arg(port).output()?;
    let said: Value = serde_json::from_slice(&output.stdout).context("iperf3 printed no JSON")?;
    let bits_per_s = said.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    Ok(bits_per_s.with_context(|| format!("iperf3 printed no rate: {said}"))? / 8.0)
}
