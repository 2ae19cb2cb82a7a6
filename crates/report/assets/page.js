"use strict";
const { charts, files } = JSON.parse(document.getElementById("page-data").textContent);

for (const [id, csv] of Object.entries(files)) {
  const figure = document.getElementById(id);
  const tools = figure.querySelector(".tools");
  tools.hidden = false;
  tools.querySelector(".save").addEventListener("click", () => save(`${id}.csv`, csv));
  makeSortable(figure.querySelector("table"), makeFoldable(figure));
}

// Interpreted expressions (ast) need no eval, which the page's policy forbids.
const options = {
  renderer: "svg", ast: true, actions: { export: true, source: false, compiled: false, editor: false },
};
for (const [id, spec] of Object.entries(charts)) {
  const place = document.getElementById(id);
  const legend = spec.config?.legend;
  if (legend?.columns) {
    legend.columns = Math.max(1, Math.floor(legend.columns * Math.min(1, place.clientWidth / 900)));
  }
  vegaEmbed(place, spec, options).catch((error) => {
    place.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  });
}

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Shows the first rows of a long table, or all, or those that hold the filter's text. Returns
// the function that does so again after the rows were moved.
function makeFoldable(figure) {
  if (!figure.dataset.rows) return () => {};
  const limit = Number(figure.dataset.rows);
  const body = figure.querySelector("tbody");
  const filter = figure.querySelector("input");
  const more = figure.querySelector(".more");
  let all = false;
  const update = () => {
    const wanted = filter.value.trim().toLowerCase();
    let found = 0;
    for (const row of body.rows) {
      const matches = row.textContent.toLowerCase().includes(wanted);
      found += matches;
      row.hidden = !matches || (!all && found > limit);
    }
    more.hidden = found <= limit;
    more.textContent = all ? `Show the first ${limit} rows` : `Show all ${found.toLocaleString("en")} rows`;
  };
  filter.addEventListener("input", update);
  more.addEventListener("click", () => { all = !all; update(); });
  update();
  return update;
}

// A click on a heading sorts by its column: numbers from the largest, text from A, a second
// click the other way round. What is missing stays last.
function makeSortable(table, sorted) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, index) => heading.firstElementChild.addEventListener("click", () => {
    const number = heading.classList.contains("number");
    const first = number ? "descending" : "ascending";
    const second = number ? "ascending" : "descending";
    const order = heading.ariaSort === first ? second : first;
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const key = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent;
    const compare = number
      ? (a, b) => sign * (a - b)
      : (a, b) => sign * a.localeCompare(b, "en", { numeric: true });
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => (a === "") - (b === "") || (a === "" ? 0 : compare(a, b)));
    body.append(...rows.map(([, row]) => row));
    sorted();
  }));
}
