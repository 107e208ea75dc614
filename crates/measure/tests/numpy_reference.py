"""Statistics of files of raw samples, by numpy and by exact rationals, as JSON.

Usage: numpy_reference.py DIRECTORY SHARES THRESHOLDS COUNTS

DIRECTORY holds *.u64 files of samples; SHARES is a JSON list of [part, whole], THRESHOLDS a list of ns, and COUNTS
a list of numbers of samples, for each of which the ranks of the median's 95 % interval are computed. Nothing here
follows the Rust code: quantiles, mean and deviation are numpy's, the exact ones come from sorting and fractions, and
the ranks from sums of binomial coefficients as integers.
"""

import json
import math
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import numpy

getcontext().prec = 60


def exact_stddev(values):
    """From the deviations from the mean, all times the count, so that they are integers."""
    count, total = len(values), sum(values)
    if count < 2:
        return None
    squares = sum((count * value - total) ** 2 for value in values)
    return float((Decimal(squares) / Decimal(count**2 * (count - 1))).sqrt())


def statistics(path, shares, thresholds):
    samples = numpy.fromfile(path, dtype="<u8")
    exact = sorted(int(sample) for sample in samples)
    count = len(exact)
    sum_ns = sum(exact)
    wide = samples.astype(numpy.longdouble)
    return {
        "count": count,
        "min": exact[0],
        "max": exact[-1],
        "quantiles": [exact[max(math.ceil(Fraction(*share) * count), 1) - 1] for share in shares],
        "numpy_quantiles": [
            int(numpy.quantile(samples, part / whole, method="inverted_cdf")) for part, whole in shares
        ],
        "mean": float(Fraction(sum_ns, count)),
        "numpy_mean": float(numpy.mean(wide)),
        "stddev": exact_stddev(exact),
        "numpy_stddev": float(numpy.std(wide, ddof=1)) if count > 1 else None,
        "share_above": [float(numpy.count_nonzero(samples > numpy.uint64(ns)) / count) for ns in thresholds],
        "mavericks": sum(sample * count > 2 * sum_ns for sample in exact),
    }


def median_interval(count):
    """The largest rank l, from 1, with 2 P(B < l) <= 5 % for B ~ binomial(count, 1/2), and its mirror image."""
    below, term, rank, orders = 0, 1, 0, 2**count
    while 40 * (below + term) <= orders:
        below += term
        term = term * (count - rank) // (rank + 1)
        rank += 1
    return [rank, count + 1 - rank] if rank else None


def main():
    directory, shares, thresholds, counts = Path(sys.argv[1]), *map(json.loads, sys.argv[2:])
    files = {path.stem: statistics(path, shares, thresholds) for path in sorted(directory.glob("*.u64"))}
    intervals = [[count, median_interval(count)] for count in counts]
    print(json.dumps({"numpy": numpy.__version__, "files": files, "intervals": intervals}))


main()
