// The table of all points, built when it is first opened.
/** The columns, each with its name and what a point has in it. */
const pointColumns = (points) => {
  const places = new Map(points.map((point, place) => [point, place]));
  return page.data.columns.map(({ name, values }) => [name, (point) => values[places.get(point)] ?? undefined]);
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
  const all = page.data.points;
  const columns = pointColumns(all);
  const same = columns.filter(([, of]) => all.length > 1 && all.every((point) => cellText(of(point)) === cellText(of(all[0]))));
  const varying = columns.filter((column) => !same.includes(column));
  byId("points-same").textContent = same.length
    ? "The same in all points: " + same.map(([name, of]) => `${name} ${cellText(of(all[0]))}`).join(", ") + "." : "";
  const body = make("tbody");
  let sorted = all;
  const shown = () => {
    const isShown = filterOf("row-filter");
    return sorted.filter((point) => isShown(columns.map(([, of]) => cellText(of(point))).join(" ")));
  };
  const show = () => {
    const points = shown();
    body.replaceChildren(...points.map((point) => pointRow(point, varying)));
    byId("rows-shown").textContent = `${grouped(points.length)} of ${grouped(all.length)} points.`;
  };
  const heads = varying.map(([name, of]) => {
    const head = make("th", { scope: "col" }, make("button", { type: "button", class: "sort", onclick: () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sorted = [...all].sort((a, b) => {
        const order = compareCells(of(a), of(b));
        const missing = of(a) === undefined || of(b) === undefined;
        return down && !missing ? -order : order;
      });
      show();
    } }, name));
    return head;
  });
  table.append(make("thead", {}, make("tr", {}, ...heads)), body);
  byId("row-filter").addEventListener("input", show);
  byId("save-rows").addEventListener("click", () =>
    save(csv([columns.map(([name]) => name), ...shown().map((point) => columns.map(([, of]) => of(point)))]), "text/csv", "points.csv"));
  show();
};
