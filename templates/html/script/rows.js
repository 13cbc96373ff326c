// The rows of the data: one for each case, with the kind by which the list groups and counts it.

const index = JSON.parse(byId("index").textContent);
const fullCases = [...document.querySelectorAll("script.full")];
const BASE = visible(index.base);

// Each kind: its symbol, its words, and whether it needs attention.
const ICONS = {
  broke: "✗", failed: "!", error: "⊘", removed: "−", fell: "▼", suspicious: "?", cleared: "≈", changed: "≠", skipped: "»",
  gone: "−", repaired: "▲", new: "+", passed: "✓",
};
const KINDS = Object.fromEntries([...index.kinds, ["passed", "passed", false]]
  .map(([name, words, attention]) => [name, { icon: ICONS[name] ?? "○", words, attention }]));
const sign = (kind) => make("span", { className: `sign ${kind}`, "aria-hidden": "true", text: KINDS[kind].icon });

const rows = [];
fullCases.forEach((_, chunk) => {
  const script = document.querySelectorAll("script.rows")[chunk];
  JSON.parse(script.textContent).forEach((values, place) => {
    const row = { chunk, place, position: rows.length };
    index.row.forEach((name, field) => { row[name] = values[field]; });
    row.status = index.statuses[row.status];
    row.change = row.change === null ? "" : index.changes[row.change];
    row.notes = index.notes.filter((_, bit) => row.notes & (1 << bit));
    row.id = row.id ?? `${index.suites[row.suite].path}::${row.name}`;
    row.kind = row.kind === null ? "passed" : index.kinds[row.kind][0];
    row.cause = null;
    rows.push(row);
  });
});
index.causes.forEach(([, positions], number) => {
  for (const position of positions) rows[position].cause = number;
});
const rowOf = new Map(rows.map((row) => [row.id, row]));
const needsAttention = rows.filter((row) => KINDS[row.kind].attention).length;

// The lines of the chunk that was read last: a reader goes through neighbouring cases.
let linesOfChunk = [-1, []];
const caseOf = (row) => {
  if (linesOfChunk[0] !== row.chunk) linesOfChunk = [row.chunk, fullCases[row.chunk].textContent.split("\n").slice(1, -1)];
  return JSON.parse(linesOfChunk[1][row.place].replace(/,$/, ""));
};
