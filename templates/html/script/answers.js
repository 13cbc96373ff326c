// The answers of a suite's analysis, and the cases of several runs: filters and sorting. Without this script the table
// stays as it is.
const arrange = (table, controls) => {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const [search, shown] = [byId("search"), byId("shown")];
  // Each filter is named as what it looks at in the data of a row.
  const filters = [...controls.querySelectorAll("select")];

  const personas = [...new Set(rows.map((row) => row.dataset.persona))].sort();
  for (const name of personas) byId("persona")?.add(new Option(name, name));
  controls.hidden = false;

  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden =
        filters.some(({ id, selectedIndex, value }) => selectedIndex > 0 && row.dataset[id] !== value) ||
        (wanted !== "" && !row.textContent.toLowerCase().includes(wanted));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${integer(count)} of ${integer(rows.length)} shown`;
  };

  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent.trim().toLowerCase() : value === "" ? -Infinity : Number(value);
  };
  const sort = (header) => {
    const rising = header.getAttribute("aria-sort") !== "ascending";
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const column = header.cellIndex;
    const keyed = rows.map((row) => [key(row, column), row]);
    keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (rising ? 1 : -1));
    keyed.forEach(([, row], place) => { rows[place] = row; });
    body.append(...rows);
  };

  for (const header of table.tHead.rows[0].cells) {
    const button = make("button", { type: "button", className: "plain" }, ...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
  }
  for (const control of [search, ...filters]) control.addEventListener("input", filter);
  filter();
};
if (byId("controls")) arrange(byId("answers"), byId("controls"));
