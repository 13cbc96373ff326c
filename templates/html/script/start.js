// Chips, tabs, keys, and the start of the page.

const NARROW = matchMedia("(max-width: 760px)");
const MOST_CHIPS = 8;

// Tabs: links to the sections, which all are visible without this script.

const tabs = [...document.querySelectorAll("#tabs a")];
const showTab = () => {
  const wantedTab = tabs.some((tab) => tab.hash === `#${wanted.tab}`) ? wanted.tab : "cases";
  for (const tab of tabs) {
    const isShown = tab.hash === `#${wantedTab}`;
    if (isShown) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    byId(tab.hash.slice(1)).hidden = !isShown;
  }
  document.body.classList.toggle("split", wantedTab === "cases");
};
const openTab = (name) => {
  wanted.tab = name === "cases" ? "" : name;
  remember();
  showTab();
  if (!wanted.tab) {
    bringIntoView(current);
    paint();
  }
};
for (const tab of tabs) {
  tab.addEventListener("click", (event) => {
    event.preventDefault();
    openTab(tab.hash.slice(1));
  });
}

// Chips: the values of each filter with the number of cases that they would show.

const say = (text) => { byId("said").textContent = visible(text); };
const chips = byId("chips");
const tally = (values) => {
  const found = new Map();
  for (const value of values) found.set(value, (found.get(value) ?? 0) + 1);
  return found;
};
const pick = (key, value) => {
  wanted[key] = wanted[key] === value ? "" : value;
  if (key === "metric") wanted.outcome = "";
  draw();
  chips.querySelector(`[data-chip="${CSS.escape(`${key} ${value}`)}"]`)?.focus();
};
const chip = (key, value, text, amount, isOn) => {
  const button = make("button", { type: "button", className: "chip", "aria-pressed": isOn },
    key === "kind" && KINDS[value] ? sign(value) : null, named(` ${short(text, 60)}`), ` ${integer(amount)}`);
  button.dataset.chip = `${key} ${value}`;
  button.addEventListener("click", () => pick(key, value));
  return button;
};
const chipsOf = (key, title, found) => {
  const ordered = [...found].filter(([value, amount]) => amount || value === wanted[key]).sort(([, left], [, right]) => right - left);
  const shownFirst = ordered.filter(([value], place) => place < MOST_CHIPS || value === wanted[key]);
  const rest = ordered.filter((entry) => !shownFirst.includes(entry));
  if (!ordered.length) return [];
  const prefix = { metric: "✗ ", tag: "#", suite: "" }[key];
  const more = make("select", { "aria-label": `More: ${title}` }, new Option(`${integer(rest.length)} more`, ""),
    ...rest.map(([value, amount]) => new Option(`${visible(short(value, 80))} (${integer(amount)})`, value)));
  more.addEventListener("change", () => pick(key, more.value));
  return [make("div", { className: "row", role: "group", "aria-label": title },
    ...shownFirst.map(([value, amount]) => chip(key, value, `${prefix}${value}`, amount, wanted[key] === value)), rest.length ? more : null)];
};
const drawChips = () => {
  const free = (key) => rows.filter((row) => matches(row, key));
  const kinds = tally(free("kind").map((row) => row.kind));
  const calling = [...kinds].filter(([kind]) => KINDS[kind].attention).reduce((sum, [, amount]) => sum + amount, 0);
  const all = [...kinds.values()].reduce((sum, amount) => sum + amount, 0);
  const kind = shownKind();
  const ofKinds = [
    chip("kind", "attention", "needs attention", calling, kind === "attention"),
    ...kindOrder.filter((each) => kinds.get(each) || kind === each)
      .map((each) => chip("kind", each, KINDS[each].words, kinds.get(each) ?? 0, kind === each)),
    chip("kind", "all", "all", all, kind === "all"),
  ];
  const metrics = new Map(), tags = new Map();
  for (const row of free("metric")) {
    for (const found of row.metrics) {
      const name = index.metrics[found[0]];
      if (name === wanted.metric ? saysOutcome(found) : OUTCOMES.failed(found)) metrics.set(name, (metrics.get(name) ?? 0) + 1);
    }
  }
  for (const row of free("tag")) for (const tag of row.tags) tags.set(index.tags[tag], (tags.get(index.tags[tag]) ?? 0) + 1);
  const suites = index.suites.length > 1 ? tally(free("suite").filter((row) => row.suite !== null).map((row) => index.suites[row.suite].path)) : new Map();
  chips.replaceChildren(make("div", { className: "row", role: "group", "aria-label": "Kinds of cases" }, ...ofKinds),
    ...chipsOf("metric", "Metrics that failed", metrics), ...chipsOf("tag", "Tags", tags), ...chipsOf("suite", "Suites", suites));
};
const box = byId("search");
const order = byId("order");
const draw = () => {
  drawChips();
  drawList();
  box.value = wanted.q;
  order.value = wanted.sort;
  byId("count").textContent = `${integer(listed.length)} of ${counted(rows.length, "case")}`;
  remember();
};
let waiting = 0;
box.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    wanted.q = box.value;
    if (box.value.trim()) byId("count").textContent = "Searching…";
    search(box.value, () => draw());
  }, 150);
});
order.addEventListener("change", () => {
  wanted.sort = order.value;
  draw();
});
const clear = () => {
  wanted = { ...DEFAULTS, case: wanted.case, view: wanted.view, keys: wanted.keys };
  show();
};

// Keys. They can be turned off, because they get in the way of some programs that read or type for people.

const HELP = [["j", "next case"], ["k", "previous case"], ["n", "next case that broke"], ["d", "words or texts"], ["e", "against the expected answer"],
  ["i", "next iteration"], ["/", "search"], ["c", "copy the command that runs this case"], ["?", "all keys"], ["Esc", "clear the filters"]];
const help = byId("keys");
const keysLine = () => make("p", { className: "keys-line" }, ...HELP.flatMap(([key, words]) => [make("kbd", { text: key }), ` ${words} `]));
const turnView = (view) => {
  wanted.view = wanted.view === view ? "" : view;
  remember();
  showCase(current);
  say({ texts: "texts without marks", expected: "against the expected answer", "": `against ${BASE}` }[wanted.view]);
};
const ACTIONS = {
  j: () => step(1),
  k: () => step(-1),
  n: nextBroken,
  d: () => turnView("texts"),
  e: () => turnView("expected"),
  i: nextIteration,
  c: copyCommand,
  "/": () => {
    openTab("cases");
    box.focus();
  },
  "?": () => help.showModal(),
  Escape: clear,
};
const switchKeys = byId("keys-switch");
const tellKeys = () => { switchKeys.textContent = wanted.keys === "off" ? "Turn keys on" : "Turn keys off"; };
switchKeys.addEventListener("click", () => {
  wanted.keys = wanted.keys === "off" ? "" : "off";
  remember();
  tellKeys();
});
byId("keys-list").append(...HELP.map(([key, words]) => make("div", {}, make("dt", {}, make("kbd", { text: key })), make("dd", { text: words }))));
byId("keys-close").addEventListener("click", () => help.close());
byId("keys-open").addEventListener("click", () => help.showModal());
document.addEventListener("keydown", (event) => {
  const action = Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key] : null;
  if (!action || help.open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") list.focus();
    return;
  }
  if (wanted.keys === "off") return;
  if (wanted.tab && !["?", "/"].includes(event.key)) return;
  event.preventDefault();
  action();
});

const show = () => {
  tellKeys();
  showTab();
  search(wanted.q, () => {
    const linked = rowOf.get(wanted.case);
    if (linked && !matches(linked)) {
      wanted = { ...DEFAULTS, kind: "all", case: linked.id, view: wanted.view, keys: wanted.keys };
      hits = null;
    }
    current = null;
    draw();
  });
};
// The address of a tab works with and without this script.
const isOfTab = () => tabs.some((tab) => tab.hash === location.hash);
const chosenTab = () => ({ ...wanted, tab: location.hash === "#cases" ? "" : location.hash.slice(1) });
window.addEventListener("hashchange", () => {
  const isTab = isOfTab();
  // Other links inside the page do not change the selection.
  if (location.hash && !location.hash.includes("=") && !isTab) return;
  wanted = isTab ? chosenTab() : read();
  show();
});
new ResizeObserver(() => paint()).observe(list);

if (isOfTab()) wanted = chosenTab();
byId("viewer").hidden = false;
byId("keys-open").hidden = false;
byId("static").hidden = true;
show();
if (wanted.case && !wanted.tab) byId("one-title")?.focus();
