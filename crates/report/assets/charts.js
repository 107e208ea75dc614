// The figures of the plan.
const symbols = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star"];

/** Labels thinned out to what fits, the last one kept where there is room. */
const thinTicks = (ticks, width) => {
  const every = Math.max(1, Math.ceil(ticks.length / Math.max(2, Math.floor(width / 58))));
  return ticks.filter((_, index) => index % every === 0);
};

const errorBars = (series, color) => ({
  type: "data", symmetric: false, color, thickness: 1.2, width: 3,
  array: series.high.map((high, i) => high - series.y[i]),
  arrayminus: series.low.map((low, i) => series.y[i] - low),
});

const lineTrace = (chart, series) => {
  const color = seriesColour(series.colour);
  const trace = {
    type: "scatter", name: literal(series.name), x: series.x, y: series.y, text: series.hover.map(literal),
    hoverinfo: "text", line: { color, width: series.published ? 1.6 : 2 + 3 * series.under, dash: series.published ? "dash" : "solid" },
  };
  if (series.at_best) return { ...trace, mode: "lines", line: { color, width: 1.2, dash: "dot" } };
  if (series.published) return { ...trace, mode: "lines", opacity: 0.85 };
  const symbol = series.symbol ?? symbols[series.colour % symbols.length];
  const marker = { color, size: 7 + 4 * series.under, symbol: series.doubtful.map((doubtful) => doubtful ? symbol + "-open" : symbol) };
  const bars = chart.errors === "none" ? {} : { error_y: errorBars(series, color) };
  return { ...trace, ...bars, mode: "lines+markers", marker, customdata: series.ids };
};

/** The link limit, across the bars: a stroke for each x, joined. */
const strokes = (chart, series) => ({ ...lineTrace(chart, series), x: series.x.map(literal), mode: "lines+markers",
  marker: { color: seriesColour(series.colour), size: 22, symbol: "line-ew-open" } });

const barTrace = (chart, series) => {
  if (series.at_best) return strokes(chart, series);
  const color = seriesColour(series.colour);
  const trace = { type: "bar", name: literal(series.name), x: series.x.map(literal), y: series.y,
    text: series.hover.map(literal), textposition: "none", hoverinfo: "text" };
  if (series.published) {
    const pattern = { shape: "/", fgcolor: color, bgcolor: "rgba(0,0,0,0)", size: 6 };
    return { ...trace, marker: { color, pattern, line: { color, width: 1 } } };
  }
  const opacity = series.doubtful.map((doubtful) => doubtful ? 0.45 : 1);
  const bars = chart.errors === "none" ? {} : { error_y: errorBars(series, colour("ink")) };
  return { ...trace, ...bars, marker: { color, opacity }, customdata: series.ids };
};

/** The outline of a histogram: each count holds from its edge to the next one. */
const outlineTrace = (chart, series) => {
  const color = seriesColour(series.colour);
  const name = literal(series.name);
  return {
    type: "scatter", mode: "lines", name, x: series.x, y: series.y.map((count) => Math.max(count, chart.y_ends[0])),
    line: { shape: "hv", color, width: 1.3 }, fill: "tozeroy", fillcolor: faded(color, 0.22), hoverinfo: "text",
    text: series.x.map((edge, i) => i + 1 < series.x.length ? `${name}<br>${grouped(series.y[i])} samples from ${edge} up to ${series.x[i + 1]}, ${literal(chart.x_title)}` : ""),
  };
};

/** How a series of each kind of chart is drawn. */
const traces = { lines: lineTrace, bars: barTrace, histogram: outlineTrace };

const axisTicks = (chart, width) => {
  const ticks = thinTicks(chart.ticks, width);
  const place = ([at]) => chart.x_type === "category" ? literal(at) : at;
  return { tickmode: "array", tickvals: ticks.map(place), ticktext: ticks.map(([, label]) => literal(label)) };
};

/** Powers of ten with small ticks between; over less than two decades, where these say little, numbers between them too. */
const logYTicks = (chart, height) => {
  const [low, high] = chart.y_ends;
  if (high < low * 100) return logTicks(low, high, height * 1.5);
  return { dtick: 1, minor: { ticks: "outside", ticklen: 2, showgrid: false } };
};

const withRoom = (from, to) => {
  const room = 0.05 * (to - from) || 0.5;
  return [from - room, to + room];
};

/** The range of x, which the charts of a figure share. */
const xRange = ({ x_type, ticks }) => {
  if (x_type === "category") return [-0.5, ticks.length - 0.5];
  const places = ticks.map(([at]) => x_type === "log" ? Math.log10(at) : at);
  return withRoom(Math.min(...places), Math.max(...places));
};

/** The range of y, which the charts of a figure share: on a linear axis from 0. */
const yRange = ({ y_type, y_ends }) => {
  if (y_type === "log") return withRoom(...y_ends.map(Math.log10));
  const [from, to] = withRoom(Math.min(y_ends[0], 0), Math.max(y_ends[1], 0));
  return [y_ends[0] < 0 ? from : 0, to];
};

/** Rows as comma-separated values. */
const csv = (rows) => {
  const quoted = (text) => /[,"\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const cell = (value) => {
    const text = String(value ?? "");
    // A spreadsheet must not take a text for a formula.
    return quoted(/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text);
  };
  return rows.map((row) => row.map(cell).join(",") + "\n").join("");
};

/** The numbers of a chart: a row for each mark. */
const chartRows = (chart) => {
  const kind = (series) => series.published ?? (series.at_best ? "link limit" : "measured");
  const marks = (of) => chart.marks_title === null ? [] : [of];
  const rows = chart.series.flatMap((series) => series.x.map((x, i) =>
    [series.name, kind(series), x, series.y[i], series.low[i], series.high[i], ...marks(series.marks[i])]));
  return [["series", "kind", chart.x_title, chart.y_title, "low", "high", ...marks(chart.marks_title)], ...rows];
};

/** Saves a text as a file. */
const save = (text, type, download) => {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

/** A drawing of the page as a file: the page's rules for its class are copied into it. */
const standing = (drawing) => {
  const own = "." + drawing.getAttribute("class") + " ";
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule.selectorText?.startsWith(own)).map((rule) => rule.cssText);
  const copy = drawing.cloneNode(true);
  // A style of HTML would be no style to programs that are no browsers.
  const style = document.createElementNS(drawing.namespaceURI, "style");
  style.textContent = `svg { background: ${colour("surface")}; font-family: Helvetica, Arial, sans-serif; }`
    + rules.join("").replace(/var\(--([\w-]+)\)/g, (_, name) => colour(name));
  copy.prepend(style);
  return new XMLSerializer().serializeToString(copy);
};

/** Buttons below a chart that save it as a drawing, and its numbers. */
const addDownloads = (box, chart) => {
  if (box.nextElementSibling?.classList.contains("downloads")) return;
  const name = chart.id.replace("-plot", "");
  const saveCsv = () => save(csv(chartRows(chart)), "text/csv", name + ".csv");
  const saveSvg = () => chart.kind === "surface" ? save(standing(box), "image/svg+xml", name + ".svg")
    : Plotly.downloadImage(box, { format: "svg", filename: name, width: 900, height: 520 });
  box.after(make("p", { class: "downloads screen" }, "Save as ",
    make("button", { type: "button", onclick: saveSvg, "aria-label": "Save " + name + " as SVG" }, "SVG"), " ",
    make("button", { type: "button", onclick: saveCsv, "aria-label": "Save the numbers of " + name + " as CSV" }, "CSV")));
};

const drawChart = async (chart) => {
  const box = byId(chart.id);
  addDownloads(box, chart);
  // It is drawn without a script.
  if (chart.kind === "surface") return;
  const layout = baseLayout();
  Object.assign(layout.xaxis, { type: chart.x_type, title: { text: literal(chart.x_title) }, ...axisTicks(chart, box.clientWidth - 70) });
  Object.assign(layout.yaxis, { type: chart.y_type, title: { text: literal(chart.y_title) }, range: yRange(chart) });
  if (chart.x_type === "category") Object.assign(layout.xaxis, { categoryorder: "array", categoryarray: chart.ticks.map(([at]) => literal(at)) });
  if (layout.yaxis.type === "log") Object.assign(layout.yaxis, { exponentformat: "none" }, logYTicks(chart, box.clientHeight));
  if (chart.kind === "histogram") layout.showlegend = true;
  if (chart.kind === "lines") layout.xaxis.range = xRange(chart);
  if (chart.kind === "bars") Object.assign(layout, { barmode: "group", bargap: 0.25, bargroupgap: 0.06 });
  box.querySelector(".waiting")?.remove();
  await Plotly.react(box, chart.series.map((series) => traces[chart.kind](chart, series)), layout, plotConfig());
  if (box.dataset.listens) return;
  box.dataset.listens = "yes";
  box.on("plotly_click", (event) => {
    const id = event.points[0]?.customdata;
    if (id !== undefined) select(id);
  });
};
