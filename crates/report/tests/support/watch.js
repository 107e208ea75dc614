// Watches a report from before its own scripts run, and writes down its observations once the page
// is ready.
(() => {
  const lines = [];
  const clean = (text) => String(text).replace(/\s+/g, " ");
  const error = (text) => lines.push("error\t" + clean(text));
  addEventListener("error", (e) => error(e.message || "a resource failed to load"), true);
  addEventListener("unhandledrejection", (e) => error("unhandled rejection: " + e.reason));
  addEventListener("securitypolicyviolation", (e) => error("refused: " + e.violatedDirective + " " + e.blockedURI));
  // Opens everything, and writes down the rules that the page breaks with the elements that do.
  const examine = async () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    await new Promise((done) => setTimeout(done, 300));
    const found = await axe.run(document, { resultTypes: ["violations"] });
    for (const { id, impact, nodes } of found.violations) {
      lines.push("violation\t" + clean(`${impact}: ${id}: ${nodes.length}: ${nodes[0].html.slice(0, 150)}`));
    }
    lines.push("rules kept\t" + found.passes.length);
  };
  const report = async () => {
    if (window.axe) await examine();
    const root = document.documentElement;
    for (const name of ["scriptErrors"]) if (root.dataset[name]) error("the page itself reports: " + root.dataset[name]);
    for (const box of document.querySelectorAll(".plot")) {
      const traces = box.querySelectorAll("svg.main-svg .scatterlayer > .trace, svg.main-svg .barlayer > .trace").length;
      lines.push("plot\t" + box.id + "\t" + traces);
    }
    const right = [...document.querySelectorAll(".plot svg.main-svg")]
      .filter((svg) => svg.getBoundingClientRect().right > innerWidth + 1).length;
    lines.push("widths\t" + innerWidth + "\t" + Math.max(root.scrollWidth, document.body.scrollWidth));
    lines.push("plots beyond the window\t" + right);
    lines.push("downloads\t" + document.querySelectorAll(".figure .downloads button").length);
    const [, csv] = document.querySelectorAll(".figure .downloads button");
    if (csv) {
      const made = [];
      const createObjectURL = URL.createObjectURL;
      // A headless browser may not end while it saves a file.
      const click = HTMLAnchorElement.prototype.click;
      HTMLAnchorElement.prototype.click = () => {};
      URL.createObjectURL = (blob) => { made.push(blob); return createObjectURL(blob); };
      csv.click();
      document.querySelector(".surface + .downloads button")?.click();
      URL.createObjectURL = createObjectURL;
      HTMLAnchorElement.prototype.click = click;
      lines.push("csv\t" + made.map((blob) => blob.type + " of " + (blob.size > 100 ? "rows" : "nothing")).join());
    }
    lines.push("background\t" + getComputedStyle(document.body).backgroundColor);
    lines.push("chosen\t" + clean(document.querySelector("#chosen")?.textContent ?? ""));
    lines.push("listed\t" + document.querySelectorAll("#point-list button").length);
    const filter = document.querySelector("#row-filter");
    const rows = () => document.querySelectorAll("#points-table tbody tr").length;
    if (rows()) {
      lines.push("same\t" + clean(document.querySelector("#points-same").textContent));
      const heads = [...document.querySelectorAll("#points-table th[scope=col]")].map((head) => head.textContent);
      lines.push("columns\t" + clean(heads.join(";")));
      filter.value = "failed uc-latency";
      filter.dispatchEvent(new Event("input"));
      lines.push("filtered\t" + rows() + " " + clean(document.querySelector("#rows-shown").textContent));
      filter.value = "";
      filter.dispatchEvent(new Event("input"));
    }
    lines.push("rows\t" + document.querySelectorAll("#points-table tbody tr").length);
    // What is printed is ready when the event has been handled.
    dispatchEvent(new Event("beforeprint"));
    const drawn = [...document.querySelectorAll(".figure .plot svg.main-svg")];
    lines.push("prepared for print\t" + drawn.filter((svg) => svg.hasAttribute("viewBox")).length + " of " + drawn.length);
    lines.push("theme of print\t" + getComputedStyle(document.body).backgroundColor);
    dispatchEvent(new Event("afterprint"));
    lines.push("title\t" + clean(document.title));
    lines.push("ran\t" + String(window.injected ?? "nothing"));
    parent.postMessage(lines.join("\n"), "*");
  };
  const start = Date.now();
  const timer = setInterval(() => {
    const ready = document.documentElement.dataset.ready === "yes";
    if (!ready && Date.now() - start < 25000) return;
    clearInterval(timer);
    if (ready) lines.push("ready\tyes");
    setTimeout(report, 400);
  }, 50);
})();
