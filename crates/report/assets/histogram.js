// The explorer: a list of all points, and the distribution of the selected one.
const LIST_MAX = 400;
const explorer = { id: null, logY: false };

const fillList = () => {
  const words = byId("point-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = page.data.points.filter((point) => {
    const text = (point.name + " " + point.status + " " + JSON.stringify(point.axes)).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const rows = matches.slice(0, LIST_MAX).map((point) => {
    const has = point.id in page.data.histograms;
    const note = point.status === "measured" ? (point.unstable ? " (unstable)" : "") : " (" + point.status.replace("_", " ") + ")";
    return make("li", {}, make("button", {
      type: "button", class: has ? "" : "without", "data-id": point.id, "aria-current": point.id === explorer.id ? "true" : null,
      onclick: () => { location.hash = "histogram=" + point.id; },
    }, point.name + note));
  });
  if (matches.length > LIST_MAX) rows.push(make("li", { class: "rest" }, `and ${grouped(matches.length - LIST_MAX)} more: narrow the words above`));
  if (!matches.length) rows.push(make("li", { class: "rest" }, "No point has all of these words."));
  byId("point-list").replaceChildren(...rows);
};

/** One end as an outline; zeros are lifted to the floor of a logarithmic axis. */
const endTrace = (bins, end, index, unit) => {
  const color = seriesColour(index);
  const floor = explorer.logY ? 0.5 : 0;
  const last = bins.edges.length - 1;
  return {
    type: "scatter", mode: "lines", name: literal(end.name), legendgroup: end.name,
    x: bins.edges.map((edge) => edge / unit.one), y: [...end.counts, 0].map((count) => Math.max(count, floor)),
    line: { shape: "hv", color, width: 1.4 }, fill: "tozeroy", fillcolor: faded(color, 0.22), hoverinfo: "text",
    text: bins.edges.map((edge, i) => i === last ? "" :
      `${literal(end.name)}: ${grouped(end.counts[i])} samples<br>${edge / unit.one} up to ${bins.edges[i + 1] / unit.one} ${unit.name}`),
  };
};

/** Where the overflow is drawn: a bar of its own, right of the last bin. */
const overflowRange = (bins, unit) => {
  const first = Math.max(bins.edges[0], 1) / unit.one;
  const last = bins.edges[bins.edges.length - 1] / unit.one;
  const at = (share) => bins.logarithmic ? last * (last / first) ** share : last + (last - first) * share;
  return [at(0.02), at(0.05)];
};

const overflowTrace = (bins, end, index, unit) => {
  const color = seriesColour(index);
  const [from, to] = overflowRange(bins, unit);
  const floor = explorer.logY ? 0.5 : 0;
  return {
    type: "scatter", mode: "lines", showlegend: false, legendgroup: end.name, x: [from, from, to, to],
    y: [floor, end.overflow, end.overflow, floor], line: { color, width: 1.4, dash: "dot" }, fill: "tozeroy",
    fillcolor: faded(color, 0.22), hoverinfo: "text",
    text: Array(4).fill(`${literal(end.name)}: ${grouped(end.overflow)} samples beyond the last bin<br>largest ${us(end.max_ns)}`),
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
    if (inside.length <= room) return { tickmode: "array", tickvals: inside, ticktext: inside.map(String) };
  }
  return { dtick: 1 };
};

const drawHistogram = async () => {
  const bins = page.data.histograms[explorer.id];
  const box = byId("histogram");
  if (!bins || !box) return;
  const last = bins.edges[bins.edges.length - 1];
  const unit = last < 10000 ? { one: 1, name: "ns" } : { one: 1000, name: "us" };
  const over = bins.ends.some((end) => end.overflow > 0);
  const traces = bins.ends.map((end, index) => endTrace(bins, end, index, unit));
  bins.ends.forEach((end, index) => { if (end.overflow) traces.push(overflowTrace(bins, end, index, unit)); });
  const layout = baseLayout();
  Object.assign(layout.xaxis, { title: { text: `latency [${unit.name}]` }, type: bins.logarithmic ? "log" : "linear", exponentformat: "none" });
  if (bins.logarithmic) Object.assign(layout.xaxis, logTicks(bins.edges[0] / unit.one, last / unit.one, box.clientWidth - 80));
  Object.assign(layout.yaxis, { title: { text: "samples per bin" }, type: explorer.logY ? "log" : "linear", rangemode: "tozero", exponentformat: "none" });
  if (explorer.logY) {
    const top = Math.max(1, ...bins.ends.flatMap((end) => [...end.counts, end.overflow]));
    Object.assign(layout.yaxis, { range: [Math.log10(0.5), Math.log10(top) + 0.1], dtick: 1 });
  }
  if (over) {
    const middle = overflowRange(bins, unit).reduce((a, b) => a + b) / 2;
    layout.annotations = [{ x: bins.logarithmic ? Math.log10(middle) : middle, y: 1, yref: "paper", yanchor: "bottom", showarrow: false,
      text: "beyond", font: { size: 11, color: colour("faint") } }];
    layout.margin.t = 20;
  }
  await Plotly.react(box, traces, layout, plotConfig());
};

/** What two clocks may be apart, beside a time that compares them. */
const bounded = (point, latency) => {
  const bound = point.one_way?.clocks.bound_ns;
  const compares = latency.kind === "one_way" || latency.kind === "one_way_send";
  return (ns) => us(ns) + (bound !== undefined && compares ? ` \u00b1 ${Math.ceil(bound)} ns` : "");
};

/** The latencies of a point: its kinds with the first messages beside them, or what each end saw. */
const latencies = (point) => {
  const ends = (point.ends ?? []).filter((end) => end.latency);
  if (point.kinds?.length) {
    const first = [["the first messages", point.one_way?.first], ["with the first", point.one_way?.with_first]];
    return [...point.kinds.map((timed) => [timed.latency.kind, timed.latency]), ...first.filter(([, latency]) => latency)];
  }
  return ends.length ? ends.map((end) => ["rank " + end.rank, end.latency]) : point.latency ? [["rank 0", point.latency]] : [];
};

const statistics = (point) => {
  const columns = latencies(point);
  if (!columns.length) return null;
  const rows = [
    ["latency", (l) => l.kind], ["samples", (l) => grouped(l.count)], ["min", (l, t) => t(l.min_ns)], ["10 %", (l, t) => t(l.p10_ns)],
    ["median", (l, t) => t(l.p50_ns)], ["its 95 % interval", (l, t) => l.p50_ci95_ns ? us(l.p50_ci95_ns[0]).replace(" us", "") + ".." + t(l.p50_ci95_ns[1]) : "–"],
    ["90 %", (l, t) => t(l.p90_ns)], ["99 %", (l, t) => t(l.p99_ns)], ["99.9 %", (l, t) => t(l.p999_ns)], ["max", (l, t) => t(l.max_ns)],
    ["mean", (l, t) => t(l.mean_ns)], ["standard deviation", (l) => l.stddev_ns === undefined ? "–" : us(l.stddev_ns)],
    ["outliers", (l) => `${grouped(l.mavericks.count)} (${l.mavericks.rule})`],
  ];
  const thresholds = Object.keys(columns[0][1].share_above ?? {});
  for (const threshold of thresholds) {
    rows.push(["share above " + us(threshold), (l) => threshold in l.share_above ? (l.share_above[threshold] * 100).toFixed(4) + " %" : "–"]);
  }
  return make("div", { class: "scroll" }, make("table", { class: "numbers stats" }, make("caption", { class: "hidden" }, "Statistics of " + point.name),
    make("thead", {}, make("tr", {}, make("td"), ...columns.map(([name]) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rows.map(([name, of]) => make("tr", {}, make("th", { scope: "row" }, name), ...columns.map(([, l]) => make("td", {}, of(l, bounded(point, l)))))))));
};

/** What the bins leave to say: their source, their width, what is beyond the last. */
const binNotes = (bins) => {
  const notes = bins.ends.map((end) => {
    const beyond = end.overflow
      ? `${grouped(end.overflow)} beyond the last bin (above ${us(bins.edges[bins.edges.length - 1])}), the largest ${us(end.max_ns)}`
      : `none beyond the last bin, the largest ${us(end.max_ns)}`;
    const source = end.source === "samples" ? "samples" : "samples, from a recorded histogram";
    return `${end.name[0].toUpperCase()}${end.name.slice(1)}: ${grouped(end.total)} ${source}; ${beyond}.`;
  });
  const width = bins.logarithmic ? "Bins grow geometrically." : `Bins are ${grouped(bins.edges[1] - bins.edges[0])} ns wide.`;
  return make("ul", { class: "notes" }, ...[...notes, width].map((note) => make("li", {}, note)));
};

/** What is known of one-way messages besides their latencies. */
const oneWayNotes = (point) => {
  const notes = page.data.notes[point.id];
  const sentence = (text) => make("li", {}, text[0].toUpperCase() + text.slice(1) + ".");
  return notes ? make("ul", { class: "notes", id: "one-way" }, ...notes.map(sentence)) : null;
};

const throughputText = (point) => {
  const text = (t, what) => t && `${what}: ${(t.bytes_per_s / 1.25e8).toFixed(3)} Gb/s, ${(t.messages_per_s / 1e6).toFixed(6)} Mmsg/s. `;
  const one = point.throughput?.direction === "uni" ? "Throughput" : "Throughput of one direction";
  const all = [text(point.throughput, one), text(point.throughput_total, "Both directions together")].filter(Boolean).join("");
  const ofLink = page.data.of_link[point.id];
  const link = ofLink === undefined ? "" : `${ofLink.toFixed(1)} % of the link limit. `;
  const lost = point.counters?.messages_lost;
  return all ? make("p", {}, all, link, lost === undefined ? "" : `Messages lost: ${grouped(lost)}.`) : null;
};

const tools = (point) => {
  const siblings = page.data.points.filter((other) => other.key === point.key);
  const repetitions = siblings.length < 2 ? [] : siblings.map((other) => make("button", {
    type: "button", "aria-pressed": String(other.id === point.id), onclick: () => { location.hash = "histogram=" + other.id; },
  }, "repetition " + (other.repetition + 1)));
  const log = point.id in page.data.histograms ? make("button", {
    type: "button", id: "log-y", "aria-pressed": String(explorer.logY),
    onclick: (event) => {
      explorer.logY = !explorer.logY;
      event.currentTarget.setAttribute("aria-pressed", String(explorer.logY));
      drawHistogram();
    },
  }, "logarithmic y") : null;
  return make("div", { class: "tools" }, ...repetitions, log);
};

const openPoint = async (id) => {
  const point = page.points.get(id);
  if (!point) return;
  explorer.id = id;
  for (const button of byId("point-list").querySelectorAll("button")) {
    if (Number(button.dataset.id) === id) {
      button.setAttribute("aria-current", "true");
      button.parentElement.parentElement.scrollTop = button.offsetTop - button.parentElement.parentElement.offsetTop - 60;
    } else button.removeAttribute("aria-current");
  }
  const bins = page.data.histograms[id];
  const trouble = point.reason ?? point.error ?? point.unstable;
  const label = point.reason ? "Not measured: " : point.error ? "Failed: " : "Unstable: ";
  const missing = point.status === "measured" && !bins ? make("p", { class: "hint" }, "The record keeps no distribution of this point.") : null;
  if (byId("histogram")) Plotly.purge("histogram");
  byId("chosen").replaceChildren(...[
    make("h3", {}, point.name), trouble ? make("p", { class: "complaint" }, label + trouble) : null, throughputText(point), tools(point),
    bins ? make("div", { class: "plot", id: "histogram", role: "img", "aria-label": "Histogram of " + point.name }) : missing,
    bins ? binNotes(bins) : null, oneWayNotes(point), statistics(point),
  ].filter(Boolean));
  await drawHistogram();
  byId("distributions").scrollIntoView({ block: "start" });
};
