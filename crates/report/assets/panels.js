// Figures of distributions: the kinds of latency of one series overlaid.
const panelTrace = (panel, series, unit) => {
  const color = seriesColour(series.colour);
  const floor = panel.log_counts ? 0.5 : 0;
  const edge = (index) => (panel.from_ns + index * panel.width_ns) / unit.one;
  const count = series.counts.reduce((sum, one) => sum + one, 0);
  const outside = series.outside ? `, ${grouped(series.outside)} outside, max ${us(series.max_ns)}` : "";
  return {
    type: "scatter", mode: "lines", name: literal(`${series.name}: n ${grouped(count + series.outside)}${outside}`),
    x: [...series.counts, 0].map((_, index) => edge(index)), y: [...series.counts, 0].map((one) => Math.max(one, floor)),
    line: { shape: "hv", color, width: 1.3 }, fill: "tozeroy", fillcolor: faded(color, 0.22), hoverinfo: "text",
    text: [...series.counts.map((one, index) =>
      `${literal(series.name)}: ${grouped(one)} samples<br>${edge(index)} up to ${edge(index + 1)} ${unit.name}`), ""],
  };
};

const drawPanel = async (panel) => {
  const box = byId(panel.id);
  const bins = panel.series[0].counts.length;
  const last = panel.from_ns + bins * panel.width_ns;
  const unit = unitOf(last);
  const layout = baseLayout();
  Object.assign(layout.xaxis, { title: { text: `latency [${unit.name}]` }, type: "linear", exponentformat: "none",
    range: [panel.from_ns / unit.one, last / unit.one] });
  Object.assign(layout.yaxis, { title: { text: "samples per bin" }, exponentformat: "none" });
  if (panel.log_counts) {
    const top = Math.max(1, ...panel.series.flatMap((series) => series.counts));
    Object.assign(layout.yaxis, { type: "log", range: [Math.log10(0.5), Math.log10(top) + 0.1], dtick: 1 });
  } else layout.yaxis.rangemode = "tozero";
  layout.showlegend = true;
  layout.legend.font.size = 11;
  box.querySelector(".waiting")?.remove();
  await Plotly.react(box, panel.series.map((series) => panelTrace(panel, series, unit)), layout, plotConfig());
};
