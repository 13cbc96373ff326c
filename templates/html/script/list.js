// The list on the left: groups by cause, and of long lists only the rows that can be seen.

const MOST_DRAWN = 200; // rows up to which all are drawn
const AROUND = 600; // pixels that are drawn above and below what is visible
const HEIGHTS = { row: 2.1, group: 2.1, reason: 3.2, long: 4.3 }; // in rem, as in run.css
const LONG_REASON = 42; // characters from which a reason takes two lines
const list = byId("list");

const kindOrder = Object.keys(KINDS);
const KEYS = {
  name: (row) => row.name.toLowerCase(),
  score: scoreOf,
  change: changeOf,
  time: (row) => row.ms,
  cost: (row) => row.cost,
};
const sorted = (chosen) => {
  const key = KEYS[wanted.sort.replace(/^-/, "")];
  const sign = wanted.sort.startsWith("-") ? -1 : 1;
  return chosen.map((row) => [key(row), row]).sort(([left], [right]) => {
    if (left === null || right === null) return (left === null) - (right === null);
    return left < right ? -sign : left > right ? sign : 0;
  }).map(([, row]) => row);
};
// Groups in the order of their kinds, then the largest first.
const groupsOf = (chosen) => {
  const groups = new Map();
  for (const row of chosen) {
    const key = `${row.kind} ${row.cause ?? ""}`;
    if (!groups.has(key)) groups.set(key, { kind: row.kind, reason: row.cause === null ? "" : index.causes[row.cause][0], rows: [] });
    groups.get(key).rows.push(row);
  }
  return [...groups.values()].sort((left, right) =>
    kindOrder.indexOf(left.kind) - kindOrder.indexOf(right.kind) || (left.reason === "") - (right.reason === "") || right.rows.length - left.rows.length);
};

const sizeOf = ({ reason }) => (!reason ? "group" : reason.length > LONG_REASON ? "long" : "reason");

let listed = [];
let entries = [];
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const arrangeEntries = () => {
  const chosen = rows.filter((row) => matches(row));
  const groups = KEYS[wanted.sort.replace(/^-/, "")] ? [{ rows: sorted(chosen) }] : groupsOf(chosen);
  const found = groups.flatMap((group) => [
    ...(group.kind ? [{ group, height: HEIGHTS[sizeOf(group)] }] : []),
    ...group.rows.map((row) => ({ row, height: HEIGHTS.row })),
  ]);
  listed = groups.flatMap((group) => group.rows);
  let top = 0;
  entries = found.map((entry) => {
    const placed = { ...entry, top };
    top += entry.height;
    return placed;
  });
};

// What the list is ordered by, else the tries.
const tries = (row) => {
  const order = wanted.sort.replace(/^-/, "");
  if (order === "time") return time(row.ms);
  if (order === "cost") return row.cost === null ? "–" : money(row.cost);
  if (!row.iterations || wanted.metric || order === "score" || order === "change") {
    const [was, now] = [beforeOf(row), scoreOf(row)];
    return was === null ? number(now) : `${number(was)} → ${now === null ? "–" : number(now)}`;
  }
  const now = `${row.passes}/${row.iterations}`;
  return row.was ? `${row.was[0]}/${row.was[1]} → ${now}` : now;
};
const groupLine = (group) => {
  const { kind, reason, rows: members } = group;
  const many = members.length > 1 ? ` · ${integer(members.length)}${reason && kind !== "fell" ? " for one reason" : ""}` : "";
  return make("div", { className: `group ${sizeOf(group)}`, role: "presentation" },
    make("strong", {}, sign(kind), ` ${KINDS[kind].words}${many}`), reason ? named(reason) : null);
};
const caseLine = (row) => make("div", {
  className: "case", id: `case-${row.position}`, role: "option", "aria-selected": row === current,
  "aria-posinset": row.listPlace + 1, "aria-setsize": listed.length,
}, sign(row.kind), make("span", { className: "unseen", text: `${KINDS[row.kind].words}: ` }), named(short(row.name, 120), "name"), make("span", { className: "tries", text: tries(row) }));

const paint = () => {
  const unit = rem();
  const isLong = entries.length > MOST_DRAWN;
  const from = isLong ? (list.scrollTop - AROUND) / unit : -Infinity;
  const until = isLong ? (list.scrollTop + list.clientHeight + AROUND) / unit : Infinity;
  const seen = entries.filter((entry) => entry.top + entry.height >= from && entry.top <= until);
  const height = (value) => {
    const spacer = make("div", { className: "spacer", role: "presentation" });
    spacer.style.height = `${value}rem`;
    return spacer;
  };
  const end = entries.length ? entries.at(-1).top + entries.at(-1).height : 0;
  const last = seen.at(-1);
  list.replaceChildren(...(seen.length ? [height(seen[0].top)] : []),
    ...seen.map((entry) => (entry.group ? groupLine(entry.group) : caseLine(entry.row))),
    ...(last ? [height(end - last.top - last.height)] : []));
  const isDrawn = current && byId(`case-${current.position}`);
  if (isDrawn) list.setAttribute("aria-activedescendant", isDrawn.id);
  else list.removeAttribute("aria-activedescendant");
};
const bringIntoView = (row) => {
  const entry = entries.find((each) => each.row === row);
  if (!entry) return;
  const unit = rem();
  const first = entries[entries.indexOf(entry) - 1]?.group ? entries[entries.indexOf(entry) - 1] : entry;
  const [top, bottom] = [first.top * unit, (entry.top + entry.height) * unit];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
};

const choose = (row) => {
  if (!row) return;
  wanted.case = row.id;
  wanted.iteration = "";
  remember();
  showCase(row);
  bringIntoView(row);
  paint();
};
const step = (by) => choose(listed[Math.min(listed.length - 1, Math.max(0, listed.indexOf(current) + by))]);
const nextBroken = () => {
  const place = listed.indexOf(current);
  const isBad = (row) => row.kind === "broke";
  choose(listed.slice(place + 1).find(isBad) ?? listed.find(isBad));
};
const drawList = () => {
  arrangeEntries();
  listed.forEach((row, place) => { row.listPlace = place; });
  const chosen = rowOf.get(wanted.case);
  const row = chosen && matches(chosen) ? chosen : listed[0];
  if (row !== chosen) wanted.case = "";
  if (row !== current || row === undefined) showCase(row ?? null);
  bringIntoView(row);
  paint();
};

let painting = 0;
list.addEventListener("scroll", () => {
  if (entries.length <= MOST_DRAWN || painting) return;
  painting = requestAnimationFrame(() => {
    painting = 0;
    paint();
  });
});
list.addEventListener("click", (event) => {
  const line = event.target.closest(".case");
  if (!line) return;
  choose(rows[Number(line.id.replace("case-", ""))]);
  if (NARROW.matches) one.scrollIntoView();
});
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
list.addEventListener("keydown", (event) => {
  if (event.key === "Enter") byId("one-title")?.focus();
  else if (event.key in STEPS) step(STEPS[event.key]);
  else return;
  event.preventDefault();
});
