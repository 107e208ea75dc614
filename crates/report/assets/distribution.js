// The distribution of the selected point, and of a second one that it is compared with, in three views.

/** The steps of a spectrum in which the share of the samples above it halves (`bins.rs`). */
const STEPS_PER_HALF = 4;

/** The distributions to draw: those of the selected point, then those of the other one. */
const shownEnds = () => {
  const ids = [...new Set([explorer.id, explorer.other])].filter((id) => id in page.data.histograms);
  const letter = (at) => ids.length > 1 ? "AB"[at] + ": " : "";
  return ids.flatMap((id, at) => page.data.histograms[id].ends.map((end) =>
    ({ ...end, id, bins: page.data.histograms[id], label: letter(at) + end.name }))).map((end, index) => ({ ...end, index }));
};

/** Whether y is logarithmic, as the button says. */
const isLogY = () => byId("log-y").getAttribute("aria-pressed") === "true";
const showLogY = (is) => byId("log-y").setAttribute("aria-pressed", String(is));

/** The unit of times up to this many ns: numbers of at most four digits before the point. */
const unitOf = (largest) => [{ one: 1, name: "ns" }, { one: 1e3, name: "us" }, { one: 1e6, name: "ms" }, { one: 1e9, name: "s" }]
  .find(({ one, name }) => largest < 10000 * one || name === "s");

/** The heights of bins: the samples of each. Two points have different bins, so theirs are shares per ns. */
const binHeights = (end, compares) => end.counts.map((count, i) =>
  compares ? count / end.total / (end.bins.edges[i + 1] - end.bins.edges[i]) : count);

/** One end as an outline; zeros are lifted to the floor of a logarithmic axis. */
const endTrace = (end, heights, unit, floor) => {
  const bins = end.bins;
  const color = seriesColour(end.index);
  const last = bins.edges.length - 1;
  return {
    type: "scatter", mode: "lines", name: literal(end.label), legendgroup: end.label,
    x: bins.edges.map((edge) => edge / unit.one),
    y: [...heights, 0].map((height) => Math.max(height, floor)),
    line: { shape: "hv", color, width: 1.4 }, fill: "tozeroy", fillcolor: faded(color, 0.22), hoverinfo: "text",
    text: bins.edges.map((edge, i) => i === last ? "" :
      `${literal(end.label)}: ${grouped(end.counts[i])} samples<br>${edge / unit.one} up to ${bins.edges[i + 1] / unit.one} ${unit.name}`),
  };
};

/** Where the overflow is drawn: a bar of its own, right of the last bin. */
const overflowRange = (bins, unit) => {
  const first = Math.max(bins.edges[0], 1) / unit.one;
  const last = bins.edges[bins.edges.length - 1] / unit.one;
  const at = (share) => bins.logarithmic ? last * (last / first) ** share : last + (last - first) * share;
  return [at(0.02), at(0.05)];
};

const overflowTrace = (end, unit, floor) => {
  const color = seriesColour(end.index);
  const [from, to] = overflowRange(end.bins, unit);
  return {
    type: "scatter", mode: "lines", showlegend: false, legendgroup: end.label, x: [from, from, to, to],
    y: [floor, end.overflow, end.overflow, floor], line: { color, width: 1.4, dash: "dot" }, fill: "tozeroy",
    fillcolor: faded(color, 0.22), hoverinfo: "text",
    text: Array(4).fill(`${literal(end.label)}: ${grouped(end.overflow)} samples beyond the last bin<br>largest ${us(end.max_ns)}`),
  };
};

/** Ticks of a logarithmic axis, each with its whole number, as many as there is room for. */
const logTicks = (from, to, width) => {
  const low = Math.max(from, 1e-3);
  const room = Math.max(2, Math.floor(width / 52));
  for (const steps of [[1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9], [1, 1.5, 2, 3, 4, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const values = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(to); power += 1) {
      values.push(...steps.map((step) => Number((step * 10 ** power).toPrecision(3))));
    }
    const inside = values.filter((value) => value >= low * 0.97 && value <= to);
    // Between two neighbouring ticks, evenly spaced numbers say more.
    if (inside.length < 2) break;
    if (inside.length <= room) return { tickmode: "array", tickvals: inside, ticktext: inside.map(String) };
  }
  if (to >= low * 10) return { dtick: 1 };
  const even = [0, 1, 2, 3].map((third) => Number((low + (to - low) * third / 3).toPrecision(4)));
  return { tickmode: "array", tickvals: even, ticktext: even.map(String) };
};

const histogramView = (ends, width) => {
  const compares = new Set(ends.map((end) => end.id)).size > 1;
  showLogY(explorer.logY ?? false);
  const heights = ends.map((end) => binHeights(end, compares));
  const above = heights.flat().filter((height) => height > 0);
  const lowest = compares ? Math.min(...above, 1) / 2 : 0.5;
  const floor = isLogY() ? lowest : 0;
  const all = ends.map((end) => end.bins);
  const [first, last] = [Math.min(...all.map((bins) => bins.edges[0])), Math.max(...all.map((bins) => bins.edges.at(-1)))];
  const logarithmic = all.some((bins) => bins.logarithmic);
  const unit = unitOf(last);
  const over = compares ? [] : ends.filter((end) => end.overflow > 0);
  const traces = [...ends.map((end, i) => endTrace(end, heights[i], unit, floor)), ...over.map((end) => overflowTrace(end, unit, floor))];
  const layout = baseLayout();
  Object.assign(layout.xaxis, { title: { text: `latency [${unit.name}]` }, type: logarithmic ? "log" : "linear", exponentformat: "none" });
  if (logarithmic) Object.assign(layout.xaxis, logTicks(first / unit.one, last / unit.one, width));
  const title = compares ? "share of samples per ns" : "samples per bin";
  Object.assign(layout.yaxis, { title: { text: title }, type: isLogY() ? "log" : "linear", rangemode: "tozero", exponentformat: compares ? "power" : "none" });
  if (isLogY()) {
    const top = Math.max(2 * lowest, ...above, ...over.map((end) => end.overflow));
    Object.assign(layout.yaxis, { range: [Math.log10(lowest), Math.log10(top) + 0.1], dtick: 1 });
  }
  if (over.length) {
    const middle = overflowRange(all[0], unit).reduce((a, b) => a + b) / 2;
    layout.annotations = [{ x: logarithmic ? Math.log10(middle) : middle, y: 1, yref: "paper", yanchor: "bottom", showarrow: false,
      text: "beyond", font: { size: 11, color: colour("faint") } }];
    layout.margin.t = 20;
  }
  return [traces, layout];
};

/** The scale of an axis of latencies: what the reader chose, otherwise logarithmic where a few would hide all others. */
const latencyAxis = (layout, unit, values, height) => {
  Object.assign(layout.yaxis, { title: { text: `latency [${unit.name}]` }, exponentformat: "none", rangemode: "tozero" });
  const above = values.filter((value) => value > 0).sort((a, b) => a - b);
  showLogY(explorer.logY ?? above.at(-1) > 20 * above[above.length >> 1]);
  if (isLogY() && above.length) {
    Object.assign(layout.yaxis, { type: "log" }, logTicks(above[0], above.at(-1), height * 1.5));
  }
};

/** The share of the samples in print, rounded down, with the digits that tell it from all of them. */
const shareText = (above) => {
  const scale = 10 ** Math.ceil(-Math.log10(above));
  return Math.floor(100 * (1 - above) * scale + 1e-6) / scale + " %";
};

/** The latency that a share of the samples does not exceed, over the share: each decade of the axis is a nine more. */
const percentileView = (ends, width, height) => {
  const unit = unitOf(Math.max(...ends.flatMap((end) => end.spectrum)));
  const above = (step) => 2 ** (-step / STEPS_PER_HALF);
  const traces = ends.map((end) => ({
    type: "scatter", mode: "lines", name: literal(end.label), line: { color: seriesColour(end.index), width: 1.8, shape: "hv" },
    x: end.spectrum.map((_, step) => 1 / above(step)), y: end.spectrum.map((ns) => ns / unit.one), hoverinfo: "text",
    text: end.spectrum.map((ns, step) => step === end.spectrum.length - 1 ? `${literal(end.label)}: the largest is ${us(ns)}`
      : step === 0 ? `${literal(end.label)}: the smallest is ${us(ns)}` : `${literal(end.label)}: ${shareText(above(step))} of the samples are at most ${us(ns)}`),
  }));
  const decades = Math.ceil(Math.log10(Math.max(...ends.map((end) => 1 / above(end.spectrum.length - 1)), 10)));
  const places = [1, 2, ...Array.from({ length: decades }, (_, power) => 10 ** (power + 1))];
  const every = Math.max(1, Math.ceil(places.length * 64 / Math.max(width, 64)));
  const ticks = places.filter((_, index) => index % every === 0);
  const layout = baseLayout();
  Object.assign(layout.xaxis, { title: { text: "share of the samples" }, type: "log", tickmode: "array",
    tickvals: ticks, ticktext: ticks.map((place) => shareText(1 / place)) });
  latencyAxis(layout, unit, traces.flatMap((trace) => trace.y), height);
  return [traces, layout];
};

/** The middle of each window of a timeline, as the number of a sample. */
const windowsOf = (end) => end.timeline.medians.map((_, window) => Math.round((window + 0.5) * end.total / end.timeline.medians.length));

/** The largest sample of a rank, and others that are above 99.9 % of all. */
const peakTrace = (end, unit) => {
  const level = end.spectrum[10 * STEPS_PER_HALF] ?? end.spectrum.at(-1);
  const peaks = end.timeline.peaks.filter(([, ns], rank) => rank === 0 || ns > level);
  return { type: "scatter", mode: "markers", showlegend: false, hoverinfo: "text", x: peaks.map(([at]) => at), y: peaks.map(([, ns]) => ns / unit.one),
    marker: { color: seriesColour(end.index), size: 9, symbol: "circle-open" },
    text: peaks.map(([at, ns]) => `${literal(end.label)}, sample ${grouped(at)}: ${us(ns)}`) };
};

/** The largest sample of a rank and, if the record says so, for how long a rank was preempted during it. */
const largestMark = (end, unit) => {
  const [x, ns] = end.timeline.peaks[0];
  const known = end.name === "one_way" ? page.points.get(end.id).one_way?.largest?.gaps_ns : null;
  const preempted = Object.entries(known ?? {}).filter(([, gap]) => gap > 0).map(([rank, gap]) => `, rank ${rank} preempted for ${us(gap)}`);
  const at = ns / unit.one;
  const isLate = x > end.total / 2;
  return { x, y: isLogY() ? Math.log10(at) : at, text: us(ns) + preempted.join(""), showarrow: true, arrowcolor: colour("faint"),
    ax: isLate ? -40 : 40, ay: 24, xanchor: isLate ? "right" : "left", font: { size: 11, color: colour("ink") } };
};

/** Where the level of a rank had shifted: a band with its name. */
const shiftMarks = (end) => {
  const [from, to] = end.timeline.shift.map((share) => share * end.total);
  const color = seriesColour(end.index);
  return { shape: { type: "rect", xref: "x", yref: "paper", x0: from, x1: to, y0: 0, y1: 1, line: { width: 0 }, fillcolor: faded(color, 0.1) },
    annotation: { x: from, y: 1, yref: "paper", xanchor: "left", yanchor: "top", showarrow: false, text: literal(`${end.label}: the level shifted`),
      font: { size: 11, color: colour("ink") } } };
};

/** The median and the largest latency of windows of consecutive messages, with marks of what disturbed them. */
const timelineView = (ends, width, height) => {
  const followed = ends.filter((end) => end.timeline);
  const unit = unitOf(Math.max(...followed.flatMap((end) => end.timeline.largest)));
  const lines = (end) => {
    const x = windowsOf(end);
    const color = seriesColour(end.index);
    const line = (name, values, style) => ({ type: "scatter", mode: "lines", name: literal(`${end.label}, ${name}`), x, y: values.map((ns) => ns / unit.one),
      line: { color, ...style }, hoverinfo: "text", text: values.map((ns, window) => `${literal(end.label)}, ${name} near sample ${grouped(x[window])}: ${us(ns)}`) });
    return [line("median", end.timeline.medians, { width: 2 }), line("largest", end.timeline.largest, { width: 1, dash: "dot" }), peakTrace(end, unit)];
  };
  const traces = followed.flatMap(lines);
  const layout = baseLayout();
  Object.assign(layout.xaxis, { title: { text: "number of the sample" }, rangemode: "tozero", exponentformat: "none" });
  latencyAxis(layout, unit, traces.flatMap((trace) => trace.y), height);
  const shifts = followed.filter((end) => end.timeline.shift).map(shiftMarks);
  layout.shapes = shifts.map(({ shape }) => shape);
  layout.annotations = [...followed.map((end) => largestMark(end, unit)), ...shifts.map(({ annotation }) => annotation)];
  return [traces, layout];
};

const views = { histogram: histogramView, percentiles: percentileView, time: timelineView };

const drawDistribution = async () => {
  const box = byId("histogram");
  const ends = shownEnds();
  if (!ends.length || !box) return;
  const [traces, layout] = views[explorer.view](ends, box.clientWidth - 80, box.clientHeight);
  await Plotly.react(box, traces, layout, plotConfig());
};
