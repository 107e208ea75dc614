// The explorer: a list of all points, and the selected one, alone or compared with another.
const LIST_MAX = 400;
const explorer = { id: null, other: null, view: "histogram", logY: null };

/** Opens a point; the part after # tells which, and what is shown of it, so that it can be linked to. */
const select = (id, chosen = {}) => {
  if ("view" in chosen && chosen.view !== explorer.view) explorer.logY = null;
  Object.assign(explorer, chosen);
  const { other, view } = explorer;
  const hash = "#histogram=" + id + (other === null ? "" : "&with=" + other) + "&view=" + view;
  if (location.hash === hash) openPoint(id);
  else location.hash = hash;
};

const fillList = () => {
  const isListed = filterOf("point-filter");
  const matches = page.data.points.filter((point) => isListed(point.name + " " + point.status + " " + JSON.stringify(point.axes)));
  const rows = matches.slice(0, LIST_MAX).map((point) => {
    const has = point.id in page.data.histograms;
    const note = point.status === "measured" ? (point.unstable ? " (unstable)" : "") : " (" + point.status.replace("_", " ") + ")";
    return make("li", {}, make("button", {
      type: "button", class: has ? "" : "without", "data-id": point.id, "aria-current": point.id === explorer.id ? "true" : null,
      onclick: () => select(point.id),
    }, point.name + note));
  });
  if (matches.length > LIST_MAX) rows.push(make("li", { class: "rest" }, `and ${grouped(matches.length - LIST_MAX)} more: narrow the words above`));
  if (!matches.length) rows.push(make("li", { class: "rest" }, "No point has all of these words."));
  byId("point-list").replaceChildren(...rows);
};

/** What two clocks may be apart, beside a time that compares them. */
const bounded = (point, latency) => {
  const bound = point.one_way?.clocks.bound_ns;
  const compares = latency.kind === "one_way" || latency.kind === "one_way_send";
  return (ns) => us(ns) + (bound !== undefined && compares ? ` \u00b1 ${Math.ceil(bound)} ns` : "");
};

/** The latencies of a point: its kinds with the first messages beside them, or what each rank timed. */
const latencies = (point) => {
  const ends = (point.ends ?? []).filter((end) => end.latency);
  if (point.kinds?.length) {
    const first = [["the first messages", point.one_way?.first], ["with the first", point.one_way?.with_first]];
    return [...point.kinds.map((timed) => [timed.latency.kind, timed.latency]), ...first.filter(([, latency]) => latency)];
  }
  return ends.length ? ends.map((end) => ["rank " + end.rank, end.latency]) : point.latency ? [["rank 0", point.latency]] : [];
};

const statisticsRows = (thresholds) => [
  ["latency", (l) => l.kind], ["samples", (l) => grouped(l.count), (l) => l.count], ["min", (l, t) => t(l.min_ns), (l) => l.min_ns],
  ["10 %", (l, t) => t(l.p10_ns), (l) => l.p10_ns], ["median", (l, t) => t(l.p50_ns), (l) => l.p50_ns],
  ["its 95 % interval", (l) => l.p50_ci95_ns ? us(l.p50_ci95_ns[0]).replace(" us", "") + ".." + us(l.p50_ci95_ns[1]) : "–"],
  ["90 %", (l, t) => t(l.p90_ns), (l) => l.p90_ns], ["99 %", (l, t) => t(l.p99_ns), (l) => l.p99_ns],
  ["99.9 %", (l, t) => t(l.p999_ns), (l) => l.p999_ns], ["max", (l, t) => t(l.max_ns), (l) => l.max_ns],
  ["mean", (l, t) => t(l.mean_ns), (l) => l.mean_ns],
  ["standard deviation", (l) => l.stddev_ns === undefined ? "–" : us(l.stddev_ns), (l) => l.stddev_ns],
  ["outliers", (l) => `${grouped(l.mavericks.count)} (${l.mavericks.rule})`],
  ...thresholds.map((threshold) =>
    ["share above " + us(threshold), (l) => threshold in (l.share_above ?? {}) ? (l.share_above[threshold] * 100).toFixed(4) + " %" : "–"]),
];

const ratioText = (ratio) => ratio >= 100 ? grouped(Math.round(ratio)) : ratio >= 0.001 ? ratio.toPrecision(3) : ratio.toFixed(6);

/** How many times a number of one point is that of another. */
const timesText = (one, other) => one > 0 && other > 0 ? ratioText(one / other) + "×" : "–";

/** A table of statistics: a column for each latency of a point; of two points, also the first relative to the second. */
const statistics = (point, other) => {
  const column = (of, letter) => ([name, latency]) => ({ name, title: letter + name, latency, bound: bounded(of, latency) });
  const own = latencies(point).map(column(point, other ? "A: " : ""));
  const others = other ? latencies(other).map(column(other, "B: ")) : [];
  const columns = [...own, ...others];
  if (!columns.length) return null;
  const pairs = own.flatMap((one) => others.filter((two) => two.name === one.name).map((two) => [one, two]));
  const thresholds = [...new Set(columns.flatMap(({ latency }) => Object.keys(latency.share_above ?? {})))];
  const cells = ([name, of, number]) => [
    make("th", { scope: "row" }, name), ...columns.map(({ latency, bound }) => make("td", {}, of(latency, bound))),
    ...pairs.map(([one, two]) => make("td", {}, number ? timesText(number(one.latency), number(two.latency)) : "")),
  ];
  const heads = [...columns.map(({ title }) => title), ...pairs.map(([one]) => pairs.length > 1 ? "A / B: " + one.name : "A / B")];
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Statistics" }, make("table", { class: "numbers stats" },
    make("caption", { class: "hidden" }, "Statistics of " + point.name + (other ? " and of " + other.name : "")),
    make("thead", {}, make("tr", {}, make("td"), ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...statisticsRows(thresholds).map((row) => make("tr", {}, ...cells(row))))));
};

/** The file with every sample of a distribution, if the record has it. */
const samplesFile = (point, name) => {
  const kept = [...(point.kinds ?? []).map((timed) => [timed.latency.kind, timed]), ...(point.ends ?? []).map((end) => ["rank " + end.rank, end])];
  return kept.find(([of]) => of === name)?.[1].samples;
};

/** What the bins of a point leave to say: their source, their width, what is beyond the last. */
const binNotes = (id, letter) => {
  const bins = page.data.histograms[id];
  if (!bins) return null;
  const notes = bins.ends.map((end) => {
    const beyond = end.overflow
      ? `${grouped(end.overflow)} beyond the last bin (above ${us(bins.edges[bins.edges.length - 1])}), the largest ${us(end.max_ns)}`
      : `none beyond the last bin, the largest ${us(end.max_ns)}`;
    const file = samplesFile(page.points.get(id), end.name);
    const source = end.source !== "samples" ? "samples, from a recorded histogram"
      : file ? `samples, all in ${file} in the directory of the run` : "samples";
    return `${letter}${end.name[0].toUpperCase()}${end.name.slice(1)}: ${grouped(end.total)} ${source}; ${beyond}.`;
  });
  const width = letter + (bins.logarithmic ? "Bins grow geometrically." : `Bins are ${grouped(bins.edges[1] - bins.edges[0])} ns wide.`);
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
    type: "button", "aria-pressed": String(other.id === point.id), onclick: () => select(other.id),
    "data-choice": "repetition " + other.repetition,
  }, "repetition " + (other.repetition + 1)));
  const isCompared = explorer.other !== null;
  const compare = make("button", { type: "button", id: "compare", "data-choice": "compare", onclick: () => select(point.id, { other: isCompared ? null : point.id }) },
    isCompared ? "stop comparing" : "compare with another point");
  const ends = shownEnds();
  if (!ends.length) return make("div", { class: "tools" }, ...repetitions, isCompared ? compare : null);
  const names = { histogram: "histogram", percentiles: "percentiles", time: "over time" };
  const drawn = Object.entries(names).filter(([view]) => view !== "time" || ends.some((end) => end.timeline)).map(([view, name]) =>
    make("button", { type: "button", "data-choice": view, "aria-pressed": String(view === explorer.view), onclick: () => select(point.id, { view }) }, name));
  const log = make("button", {
    type: "button", id: "log-y", "aria-pressed": "false",
    onclick: () => {
      explorer.logY = !isLogY();
      drawDistribution();
    },
  }, "logarithmic y");
  return make("div", { class: "tools" }, ...repetitions, ...drawn, log, compare);
};

/** The point that the selected one is compared with, if there are two. */
const comparedWith = (id) => {
  const other = page.points.get(explorer.other);
  return other && other.id !== id ? other : null;
};

/** What is said above the drawing: the name of the point, or of both. */
const headings = (point, other) => {
  if (other) return [make("h3", {}, "A: " + point.name), make("h3", {}, "B: " + other.name)];
  const hint = explorer.other === null ? null : make("p", { class: "hint" }, "Select the point to compare this one with, in the list, a chart or a table.");
  return [make("h3", {}, point.name), hint];
};

const openPoint = async (id) => {
  const point = page.points.get(id);
  if (!point) return;
  const isOther = explorer.id !== id;
  explorer.id = id;
  const other = comparedWith(id);
  if (explorer.view === "time" && !shownEnds().some((end) => end.timeline)) explorer.view = "histogram";
  for (const button of byId("point-list").querySelectorAll("button")) {
    if (Number(button.dataset.id) === id) {
      button.setAttribute("aria-current", "true");
      button.parentElement.parentElement.scrollTop = button.offsetTop - button.parentElement.parentElement.offsetTop - 60;
    } else button.removeAttribute("aria-current");
  }
  const isDrawn = shownEnds().length > 0;
  const trouble = point.reason ?? point.error ?? point.unstable;
  const label = point.reason ? "Not measured: " : point.error ? "Failed: " : "Unstable: ";
  const missing = point.status === "measured" && !(id in page.data.histograms) ? make("p", { class: "hint" }, "The record keeps no distribution of this point.") : null;
  if (byId("histogram")) Plotly.purge("histogram");
  const pressed = document.activeElement?.dataset?.choice;
  const drawing = { class: "plot", id: "histogram", role: "figure", "aria-label": "Distribution of " + point.name + (other ? " and of " + other.name : "") };
  byId("chosen").replaceChildren(...[
    ...headings(point, other), trouble ? make("p", { class: "complaint" }, label + trouble) : null, throughputText(point), tools(point),
    missing, isDrawn ? make("div", drawing) : null, binNotes(id, other ? "A: " : ""), other ? binNotes(other.id, "B: ") : null,
    oneWayNotes(point), statistics(point, other),
  ].filter(Boolean));
  // The button that was pressed is another element now.
  if (pressed) byId("chosen").querySelector(`[data-choice="${pressed}"]`)?.focus({ preventScroll: true });
  await drawDistribution();
  if (isOther) byId("distributions").scrollIntoView({ block: "start" });
};
