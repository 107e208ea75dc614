"""ReFrame tests that measure with rdmascope and read its JSON.

    reframe -C settings.py -c rdmascope.py --run --performance-report -n RdmascopeLatency -S device=mlx5_0
    reframe -C settings.py -c rdmascope.py --run -n RdmascopeFleet -S hosts=--local,8

On a partition of Slurm, RdmascopeFleet is a job of as many nodes as `nodes` says, and measures them
all. A site adds references in a subclass, as for any performance test of ReFrame:

    @rfm.simple_test
    class Adapter(RdmascopeLatency):
        device = "mlx5_0"
        reference = {"mycluster:compute": {"p50_8B": (900, None, 0.1, "ns")}}
"""

import json
import math
import os
import shlex

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, sanity_function, variable


class Rdmascope(rfm.RunOnlyRegressionTest):
    """Runs one command of rdmascope."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    # Path of the program.
    program = variable(str, value="rdmascope")
    # Words that end the command, such as --expect,no_loss.
    options = variable(typ.List[str], value=[])

    def words(self):
        """The words of the command, without the program and the options."""
        raise NotImplementedError

    @run_after("setup")
    def set_command(self):
        self.executable = self.program
        self.executable_opts = [shlex.quote(word) for word in self.words() + self.options]

    @run_before("run")
    def start_once(self):
        # rdmascope starts its own agents. The launcher of the partition would start one rdmascope on
        # each node.
        self.job.launcher = getlauncher("local")()

    def complain(self, pattern):
        """Fails with the lines of the output that have this pattern."""
        found = []
        for text in (self.stdout, self.stderr):
            found += sn.extractall(pattern, text, 1)
        return sn.assert_true(not found, "; ".join(found))

    def status(self, *good):
        """Fails if the command ended with another exit status, which says why (--help)."""
        said = sn.extractall(r"^rdmascope: (.*)$", self.stderr, 1)
        told = ": ".join([f"exit status {self.job.exitcode}", *said])
        return sn.assert_true(self.job.exitcode in good, told)


class RdmascopePoints(Rdmascope):
    """A command of rdmascope that prints its points as JSON."""

    # The device, such as mlx5_0. It has no default: without a name, rdmascope measures its software
    # device, softdev0, on a node whose adapter has failed.
    device = variable(str)

    def points(self):
        with open(os.path.join(self.stagedir, sn.evaluate(self.stdout))) as lines:
            return [json.loads(line) for line in lines]

    def value(self, point):
        """The performance variables of a point: pairs of a value and a unit, by names."""
        raise NotImplementedError

    @sanity_function
    def every_point_is_measured(self):
        missing = [point for point in self.points() if point["status"] != "measured"]
        reasons = [str(point.get("reason", point.get("error"))) for point in missing]
        return sn.all(
            [
                self.complain(r"^\s*(\S.*  not met; .*)$"),
                self.status(0),
                sn.assert_true(not reasons, "; ".join(reasons)),
            ]
        )

    @run_before("performance")
    def read_points(self):
        for point in self.points():
            size = f"{point['axes']['size_bytes']}B"
            again = f"_{point['repetition']}" if point["repetition"] else ""
            for name, (value, unit) in self.value(point).items():
                name = f"{name}_{size}{again}"
                if name in self.perf_variables:
                    raise ValueError(f"{name} is of several points: give one value to each option but the sizes")
                self.perf_variables[name] = sn.make_performance_function(sn.defer(value), unit)


@rfm.simple_test
class RdmascopeLatency(RdmascopePoints):
    """Latency between two ranks of this host, over its adapter or the software device."""

    sizes = variable(str, value="8,4KiB")

    def words(self):
        return ["lat", "send", "--local", "-d", self.device, "-s", self.sizes, "-n", "10000", "--json"]

    def value(self, point):
        latency = point["latency"]
        return {"p50": (latency["p50_ns"], "ns"), "p99": (latency["p99_ns"], "ns")}


@rfm.simple_test
class RdmascopeBandwidth(RdmascopePoints):
    """Throughput between two ranks of this host."""

    sizes = variable(str, value="64KiB")

    def words(self):
        return ["bw", "write", "--local", "-d", self.device, "-s", self.sizes, "-n", "5000", "--json"]

    def value(self, point):
        return {"throughput": (point["throughput"]["bytes_per_s"], "B/s")}


@rfm.simple_test
class RdmascopeFleet(Rdmascope):
    """All pairs of many hosts. The test fails if a host, a pair or a group is named."""

    # The hosts, such as --hosts,n[1-8],--via,ssh {host}; empty for the nodes of the job.
    hosts = variable(typ.List[str], value=[])
    nodes = variable(int, value=4)
    # What pairs measure, such as send or tcp: a fleet without a word takes TCP if most adapters have
    # failed.
    subject = variable(str, value="send")
    # Whether a fleet passes of which too little could be measured for a verdict.
    may_be_undecided = variable(bool, value=False)

    @run_after("init")
    def set_nodes(self):
        self.num_tasks = 1 if self.hosts else self.nodes
        self.num_tasks_per_node = 1

    def words(self):
        in_a_job = self.current_partition.scheduler.registered_name != "local"
        hosts = self.hosts or ([] if in_a_job else ["--local", str(self.nodes)])
        return ["fleet", self.subject, *hosts, "--out", "fleet"]

    @sanity_function
    def nothing_is_slow(self):
        good = [0, 1] if self.may_be_undecided else [0]
        return sn.all([self.complain(r"^ ! (.*)$"), self.status(*good)])

    @run_before("performance")
    def read_record(self):
        with open(os.path.join(self.stagedir, "fleet/run.json")) as file:
            examined = json.load(file)["fleet"]["examined"]
        # A cell is the logarithm of a throughput, or of the inverse of a latency.
        cells = {judged["name"]: judged["cells"] for judged in examined["quantities"]}
        for name, quantity, sign, unit in [
            ("largest_latency", "latency", -1, "ns"),
            ("least_throughput", "throughput", 1, "B/s"),
        ]:
            worst = math.exp(sign * min(cell[2] for cell in cells[quantity]))
            self.perf_variables[name] = sn.make_performance_function(sn.defer(worst), unit)
