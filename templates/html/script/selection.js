// What the reader has chosen: it is stored in the address, so that every view can be linked.

const DEFAULTS = {
  tab: "", kind: "", q: "", metric: "", outcome: "", tag: "", suite: "", sort: "", case: "", iteration: "", view: "", keys: "",
};
const read = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) ?? value]));
};
let wanted = read();
const addressOf = (choice) => `#${new URLSearchParams(Object.entries(choice).filter(([key, value]) => value !== DEFAULTS[key]))}`;
const remember = () => history.replaceState(null, "", addressOf(wanted));

// Without a choice, the list shows what needs attention; everything if nothing does, or in a search.
const shownKind = () => wanted.kind || (wanted.q.trim() || !needsAttention ? "all" : "attention");

const metricOf = (row) => {
  const place = index.metrics.indexOf(wanted.metric);
  return row.metrics.find(([metric]) => metric === place) ?? null;
};
const scoreOf = (row) => (wanted.metric ? metricOf(row)?.[1] ?? null : row.score);
const beforeOf = (row) => (wanted.metric ? metricOf(row)?.[3] ?? null : row.before);
const changeOf = (row) => (scoreOf(row) === null || beforeOf(row) === null ? null : scoreOf(row) - beforeOf(row));

const OUTCOMES = {
  failed: ([, , outcome]) => index.outcomes[outcome] === "failed" || index.outcomes[outcome] === "error",
  passed: ([, , outcome]) => index.outcomes[outcome] === "passed",
  worse: ([, score, , before]) => score !== null && before !== null && score < before,
  better: ([, score, , before]) => score !== null && before !== null && score > before,
  any: () => true,
};
const saysOutcome = (found) => (OUTCOMES[wanted.outcome] ?? OUTCOMES.failed)(found);

// The positions of the cases that the search found; null without a search.
let hits = null;
const TESTS = {
  kind: (row) => {
    const kind = shownKind();
    return kind === "all" || row.kind === kind || (kind === "attention" && KINDS[row.kind].attention === true);
  },
  metric: (row) => !wanted.metric || row.metrics.some((found) => index.metrics[found[0]] === wanted.metric && saysOutcome(found)),
  tag: (row) => !wanted.tag || row.tags.some((tag) => index.tags[tag] === wanted.tag),
  suite: (row) => !wanted.suite || (row.suite !== null && index.suites[row.suite].path === wanted.suite),
  q: (row) => hits === null || hits.has(row.position),
};
const matches = (row, except = "") => Object.entries(TESTS).every(([key, test]) => key === except || test(row));

// The search reads the cases line by line: a case matches only if the text of its line matches.

const SLICE_MS = 40;
let searches = 0;
const holds = (value, needle) => {
  if (typeof value === "string") return value.toLowerCase().includes(needle);
  return value !== null && typeof value === "object" && Object.values(value).some((item) => holds(item, needle));
};
const search = async (text, show) => {
  const own = ++searches;
  const needle = text.trim().toLowerCase();
  if (!needle) {
    hits = null;
    return show();
  }
  const written = JSON.stringify(text.trim()).slice(1, -1).replace(/[&<>]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
  const pattern = new RegExp(written.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
  const heard = new Set();
  let start = performance.now();
  let position = 0;
  for (const script of fullCases) {
    for (const line of script.textContent.split("\n").slice(1, -1)) {
      if (pattern.test(line) && holds(JSON.parse(line.replace(/,$/, "")), needle)) heard.add(position);
      position += 1;
    }
    if (performance.now() - start > SLICE_MS) {
      await new Promise((done) => { setTimeout(done); });
      if (own !== searches) return undefined;
      start = performance.now();
    }
  }
  hits = heard;
  return show();
};
