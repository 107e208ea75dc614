// What happens when the page is opened, and when its theme, its width or the part after # changes.
page.nonce = document.currentScript.nonce;

const applyTheme = () => {
  const wanted = settings().get("theme");
  if (wanted === "dark" || wanted === "light") root.dataset.theme = wanted;
};

const redraw = async () => {
  for (const chart of page.data.charts) await drawChart(chart);
  await drawDistribution();
};

const followHash = async () => {
  applyTheme();
  const id = settings().get("histogram");
  if (id !== null && page.data && page.points.has(Number(id))) {
    const [other, view] = [settings().get("with"), settings().get("view")];
    // A link that names only the point keeps what was chosen before.
    if (other !== null || view !== null) explorer.other = /^\d+$/.test(other) && page.points.has(Number(other)) ? Number(other) : null;
    if (Object.hasOwn(views, view)) explorer.view = view;
    await openPoint(Number(id));
  }
  if (location.hash === "#all-points") byId("points-details").open = true;
  if (location.hash === "#trust") byId("trust").open = true;
};

/** Paper is white whatever the screen is, and has another width: the rules for print scale the drawings, which need a view box. */
const prepareForPrint = () => {
  let before;
  const drawings = () => document.querySelectorAll(".plot svg.main-svg");
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    // The browser waits for nothing that is not done when this function returns.
    page.data.charts.forEach((chart) => drawChart(chart));
    for (const svg of drawings()) svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    for (const svg of drawings()) svg.removeAttribute("viewBox");
    redraw();
  });
};

const listen = () => {
  addEventListener("hashchange", followHash);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  byId("point-filter").addEventListener("input", fillList);
  byId("points-details").addEventListener("toggle", fillPoints);
  let timer;
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 200);
  });
  prepareForPrint();
};

const start = async () => {
  applyTheme();
  if (innerWidth < 1152) byId("contents-list").open = false;
  if (typeof DecompressionStream === "undefined" || !Object.hasOwn) {
    showError("This browser is too old to draw the charts: it needs DecompressionStream and Object.hasOwn (Chrome 93, Firefox 113, Safari 16.4 or newer have them).");
    return;
  }
  page.data = JSON.parse(await unpack("data"));
  namePoints(page.data.points);
  fillList();
  listen();
  await loadPlotly();
  await redraw();
  await followHash();
  root.dataset.ready = "yes";
};

start();
