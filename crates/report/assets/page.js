// Unpacking, theme, formats: what all parts of the page's script use.
const root = document.documentElement;
const page = { data: null, points: new Map(), redraw: [] };

const byId = (id) => document.getElementById(id);

/** A new element with attributes and children; texts become text nodes, never markup. */
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

const unpack = async (id) => {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
};

const loadPlotly = async () => {
  const script = make("script");
  script.nonce = page.nonce;
  script.textContent = await unpack("plotly");
  document.head.append(script);
  if (!window.Plotly) throw new Error("the chart library did not start");
};

/** What follows # as settings: #histogram=12&theme=dark. */
const settings = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
const seriesColour = (index) => colour("series-" + ((index % 8) + 1));
const faded = (hex, alpha) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
};

/** Plotly reads some markup in texts; a text of the record must stay text. */
const literal = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\n", "<br>");

const grouped = (number) => Number(number).toLocaleString("en-US");
const us = (ns) => (ns / 1e3).toFixed(3) + " us";
const sizeLabel = (bytes) => {
  for (const [unit, one] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= one && bytes % one === 0) return bytes / one + " " + unit;
  }
  return bytes + " B";
};

/** Whether a text contains all words of an input. */
const filterOf = (id) => {
  const words = byId(id).value.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => words.every((word) => text.toLowerCase().includes(word));
};

/** The look that all charts share, in the colours of the moment. */
const baseLayout = () => {
  const axis = { gridcolor: colour("line"), linecolor: colour("strong-line"), zeroline: false, ticks: "outside",
    tickcolor: colour("strong-line"), ticklen: 4, showline: true, automargin: true };
  return {
    font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: colour("soft") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 60, r: 12, t: 8, b: 44 },
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("strong-line"), font: { color: colour("ink") }, align: "left" },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { color: colour("ink") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("faint"), activecolor: colour("link") },
    hovermode: "closest", separators: ". ", xaxis: { ...axis }, yaxis: { ...axis },
  };
};
const plotConfig = () => ({
  displayModeBar: innerWidth < 900 ? false : "hover", displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
});

/** Axes that readers look for: they are named wherever they vary. */
const SOUGHT = ["endpoint", "operation", "service", "size_bytes"];

/** The axes without which points could not be told apart, and those that readers look for. */
const needed = (points, names) => {
  const kinds = (kept) => new Set(points.map((point) => JSON.stringify([point.experiment, ...kept.map((name) => point.axes[name])]))).size;
  const all = kinds(names);
  for (const name of names.filter((name) => !SOUGHT.includes(name))) {
    const without = names.filter((other) => other !== name);
    if (kinds(without) === all) names = without;
  }
  return names;
};

/** Points are named by the axes that vary in the run; constant ones tell nothing. */
const namePoints = (points) => {
  const values = {};
  for (const point of points) {
    for (const [name, value] of Object.entries(point.axes)) (values[name] ??= new Set()).add(JSON.stringify(value));
  }
  const varying = needed(points, Object.keys(values).filter((name) => values[name].size > 1));
  const repeated = points.some((point) => point.repetition > 0);
  for (const point of points) {
    const words = varying.filter((name) => name in point.axes).map((name) => {
      const value = point.axes[name];
      if (name === "size_bytes") return sizeLabel(value);
      return typeof value === "string" ? value : name + " " + value;
    });
    point.key = [point.experiment, ...words].join(", ");
    point.name = repeated ? point.key + ", repetition " + (point.repetition + 1) : point.key;
    page.points.set(point.id, point);
  }
};
