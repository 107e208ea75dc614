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
