// The table of all points, built when it is first opened.
const ofKind = (point, kind) => (point.kinds ?? []).find((timed) => timed.latency.kind === kind)?.latency;

/** Kinds of latency that are no headline, in the order in which they appear. */
const otherKinds = (points) => [...new Set(points.flatMap((point) => (point.kinds ?? []).slice(1).map((timed) => timed.latency.kind)))];

const pointColumns = (points) => {
  const axes = [...new Set(points.flatMap((point) => Object.keys(point.axes)))].sort();
  const latency = (name, field) => [name, (point) => point.latency?.[field]];
  return [
    ["point", (point) => point.id], ["experiment", (point) => point.experiment], ["pattern", (point) => point.pattern],
    ...axes.map((name) => [name, (point) => point.axes[name]]),
    ["repetition", (point) => point.repetition + 1], ["status", (point) => point.status.replace("_", " ")],
    ["iterations", (point) => point.iterations], ["latency", (point) => point.latency?.kind],
    latency("samples", "count"), latency("min [ns]", "min_ns"), latency("10 % [ns]", "p10_ns"), latency("median [ns]", "p50_ns"),
    ["median, 95 % low [ns]", (point) => point.latency?.p50_ci95_ns?.[0]], ["median, 95 % high [ns]", (point) => point.latency?.p50_ci95_ns?.[1]],
    latency("90 % [ns]", "p90_ns"), latency("99 % [ns]", "p99_ns"), latency("99.9 % [ns]", "p999_ns"), latency("max [ns]", "max_ns"),
    latency("mean [ns]", "mean_ns"), latency("standard deviation [ns]", "stddev_ns"), ["mavericks", (point) => point.latency?.mavericks.count],
    ...otherKinds(points).map((kind) => [`${kind}, median [ns]`, (point) => ofKind(point, kind)?.p50_ns]),
    ["cost of a call [ns]", (point) => point.cost?.ns], ["calls in a batch", (point) => point.cost?.calls],
    ["cost, 95 % low [ns]", (point) => point.cost?.ci95_ns?.[0]], ["cost, 95 % high [ns]", (point) => point.cost?.ci95_ns?.[1]],
    ["stamp [ns]", (point) => point.cost?.stamp_ns],
    ["completed first [%]", (point) => point.one_way?.completed_first_share && point.one_way.completed_first_share * 100],
    ["bound of two clocks [ns]", (point) => point.one_way?.clocks.bound_ns],
    ["direction of the throughput", (point) => point.throughput?.direction],
    ["throughput [Gb/s]", (point) => point.throughput && point.throughput.bytes_per_s / 1.25e8],
    ["of the link [%]", (point) => page.data.of_link[point.id]],
    ["messages [Mmsg/s]", (point) => point.throughput && point.throughput.messages_per_s / 1e6],
    ["total throughput [Gb/s]", (point) => point.throughput_total && point.throughput_total.bytes_per_s / 1.25e8],
    ["messages lost", (point) => point.counters?.messages_lost],
    ["wall time [s]", (point) => point.wall_ns / 1e9], ["note", (point) => point.reason ?? point.error ?? point.unstable],
  ].filter(([, of]) => points.some((point) => of(point) !== undefined));
};

const cellText = (value) => {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" && !Number.isInteger(value)) return value.toFixed(3);
  return String(value);
};

const compareCells = (a, b) => {
  if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
};

const pointRow = (point, columns) => make("tr", {}, ...columns.map(([name, of], index) => {
  const value = of(point);
  if (index === 0) return make("th", { scope: "row" }, make("a", { href: "#histogram=" + point.id }, String(value)));
  const kind = name === "note" ? "text note" : typeof value === "string" ? "text" : null;
  return make("td", { class: kind }, cellText(value));
}));

const fillPoints = () => {
  const table = byId("points-table");
  if (table.tBodies.length) return;
  const columns = pointColumns(page.data.points);
  const body = make("tbody");
  const show = (points) => body.replaceChildren(...points.map((point) => pointRow(point, columns)));
  const heads = columns.map(([name, of]) => {
    const head = make("th", { scope: "col" }, make("button", { type: "button", class: "sort", onclick: () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...page.data.points].sort((a, b) => {
        const order = compareCells(of(a), of(b));
        const missing = of(a) === undefined || of(b) === undefined;
        return down && !missing ? -order : order;
      });
      show(sorted);
    } }, name));
    return head;
  });
  table.append(make("thead", {}, make("tr", {}, ...heads)), body);
  show(page.data.points);
};
