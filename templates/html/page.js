// The script of all pages: filters and sorts the answers of a suite's analysis, and shows the cases of a run.
// Untrusted text becomes only the text of a node or the value of an option, never markup, an attribute or an address.
(() => {
  "use strict";
  const ROWS_ON_A_PAGE = 50;
  const LONGEST_TEXT = 20000; // characters that are shown before the reader asks for all
  const PIECE = 4000; // characters that are laid out together
  const MOST_DIFF_CELLS = 4000000; // size of the table behind a word-level difference
  const TALL_TEXT = 400; // characters from which a text may need to be scrolled
  const SLICE_MS = 40;
  const ATTENTION = { failed: 2, error: 2, removed: 4, skipped: 5, passed: 6 };
  const byId = (id) => document.getElementById(id);

  // Making elements.

  const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
  const visible = (text) => String(text).replace(/\r\n?/g, "\n").replace(CONTROL, (found) => {
    const code = found.charCodeAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "\u2421" : "\ufffd";
  });
  const make = (name, { className, text, ...properties } = {}, ...children) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = visible(text);
    for (const [key, value] of Object.entries(properties)) {
      if (key.startsWith("aria-") || key === "role" || key === "scope") element.setAttribute(key, value);
      else element[key] = value;
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  };
  const named = (text, className = "") => make("bdi", { text, className });
  const short = (text, limit = 200) => (text.length > limit ? `${text.slice(0, limit)}…` : text);
  const state = (word) => ({ passed: "good", improved: "good", failed: "bad", error: "bad", regressed: "bad" })[word] ?? "neutral";
  const badge = (text, kind = state(text)) => make("span", { className: `badge ${kind}`, text });
  const integer = (value) => value.toLocaleString("en");
  const counted = (amount, noun) => `${integer(amount)} ${noun}${amount === 1 ? "" : "s"}`;
  const number = (value) => (typeof value === "number" ? value.toFixed(2) : "–");
  const signed = (value) => {
    if (typeof value !== "number") return "–";
    if (Math.abs(value) < 0.00005) return "±0.00";
    const decimals = Math.abs(value) < 0.005 ? 4 : 2;
    return `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(decimals)}`;
  };
  const time = (ms) => (typeof ms !== "number" ? "–" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
  const money = (dollars) => (dollars >= 1 ? `$${dollars.toFixed(2)}` : `$${dollars.toFixed(4)}`);

  // The answers of a suite's analysis: without this script the table stays as it is.

  const arrange = (table, controls) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const [search, persona, status] = ["search", "persona", "status"].map((id) => byId(id));
    const shown = byId("shown");

    const personas = [...new Set(rows.map((row) => row.dataset.persona))].sort();
    for (const name of personas) persona.add(new Option(name, name));
    controls.hidden = false;

    const filter = () => {
      const wanted = search.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        row.hidden =
          (persona.selectedIndex > 0 && row.dataset.persona !== persona.value) ||
          (status.value !== "" && row.dataset.status !== status.value) ||
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
    for (const control of [search, persona, status]) control.addEventListener("input", filter);
    filter();
  };
  if (byId("controls")) arrange(byId("answers"), byId("controls"));
  if (!byId("index")) return;

  // The cases of a run.

  const index = JSON.parse(byId("index").textContent);
  const full = [...document.querySelectorAll("script.full")];
  const rows = [];
  document.querySelectorAll("script.rows").forEach((script, chunk) => {
    JSON.parse(script.textContent).forEach((values, place) => {
      const row = { chunk, place, position: rows.length };
      index.row.forEach((name, field) => { row[name] = values[field]; });
      row.status = index.statuses[row.status];
      row.change = row.change === null ? "" : index.changes[row.change];
      row.notes = index.notes.filter((_, bit) => row.notes & (1 << bit));
      row.id = row.id ?? `${index.suites[row.suite].path}::${row.name}`;
      rows.push(row);
    });
  });

  // The selection of the reader, which is stored in the address.

  const DEFAULTS = { q: "", status: "", change: "", metric: "", outcome: "", tag: "", suite: "", sort: "", page: "1", case: "" };
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) ?? value]));
  };
  let wanted = read();
  const remember = () => {
    const changed = Object.entries(wanted).filter(([key, value]) => value !== DEFAULTS[key]);
    history.replaceState(null, "", `#${new URLSearchParams(changed)}`);
  };

  // Filters.

  const tally = (values) => {
    const found = new Map();
    for (const value of values) found.set(value, (found.get(value) ?? 0) + 1);
    return found;
  };
  const option = (value, text, amount) => new Option(visible(amount === undefined ? text : `${short(text, 80)} (${integer(amount)})`), value);
  const options = (values, order = [...values.keys()]) =>
    order.filter((value) => values.get(value)).map((value) => option(value, value, values.get(value)));
  const statusCounts = tally(rows.map((row) => row.status));
  const open = (statusCounts.get("failed") ?? 0) + (statusCounts.get("error") ?? 0);
  const changeCounts = tally(rows.flatMap((row) => [row.change, ...row.notes]).filter((word) => word && word !== "unchanged"));
  const metricCounts = tally(rows.flatMap((row) => row.metrics.map(([metric]) => metric)));
  const tagCounts = tally(rows.flatMap((row) => row.tags));
  const suiteCounts = tally(rows.filter((row) => row.suite !== null).map((row) => row.suite));

  const choices = {
    status: ["Status", [option("", "All"), ...(open ? [option("not-passed", "Not passed", open)] : []), ...options(statusCounts, index.statuses)]],
    change: ["Against baseline", [option("", "All"), ...options(changeCounts, [...index.changes, ...index.notes])]],
    metric: ["Metric", [option("", "All"), ...index.metrics.map((name, place) => option(name, name, metricCounts.get(place) ?? 0))]],
    outcome: ["Metric says", [["", "anything"], ["failed", "not passed"], ["passed", "passed"], ["worse", "got worse"], ["better", "got better"]]
      .map(([value, text]) => option(value, text))],
    tag: ["Tag", [option("", "All"), ...index.tags.map((name, place) => option(name, name, tagCounts.get(place) ?? 0))]],
    suite: ["Suite", [option("", "All"), ...index.suites.map((suite, place) => option(suite.path, suite.name, suiteCounts.get(place) ?? 0))]],
  };
  const hiddenChoices = new Set([
    ...(changeCounts.size ? [] : ["change"]), ...(index.metrics.length ? [] : ["metric", "outcome"]),
    ...(index.tags.length ? [] : ["tag"]), ...(index.suites.length > 1 ? [] : ["suite"]),
  ]);

  const metricOf = (row) => {
    if (!wanted.metric) return null;
    const place = index.metrics.indexOf(wanted.metric);
    return row.metrics.find(([metric]) => metric === place) ?? null;
  };
  const scoreOf = (row) => (wanted.metric ? metricOf(row)?.[1] ?? null : row.score);
  const beforeOf = (row) => (wanted.metric ? metricOf(row)?.[3] ?? null : row.before);
  const changeOf = (row) => (scoreOf(row) === null || beforeOf(row) === null ? null : scoreOf(row) - beforeOf(row));
  const saysOutcome = (found) => {
    const [, score, outcome, before] = found;
    const compared = score !== null && before !== null;
    return {
      failed: index.outcomes[outcome] === "failed" || index.outcomes[outcome] === "error",
      passed: index.outcomes[outcome] === "passed",
      worse: compared && score < before,
      better: compared && score > before,
    }[wanted.outcome] ?? true;
  };
  const matches = (row) =>
    (!wanted.status || row.status === wanted.status || (wanted.status === "not-passed" && (row.status === "failed" || row.status === "error"))) &&
    (!wanted.change || row.change === wanted.change || row.notes.includes(wanted.change)) &&
    (!wanted.suite || (row.suite !== null && index.suites[row.suite].path === wanted.suite)) &&
    (!wanted.tag || row.tags.some((tag) => index.tags[tag] === wanted.tag)) &&
    (!wanted.metric || metricOf(row) !== null) &&
    (!wanted.outcome || (wanted.metric ? [metricOf(row)] : row.metrics).some(saysOutcome)) &&
    (hits === null || hits.has(row.position));

  // The search reads the cases line by line: a case matches only if the text of its line matches.

  let hits = null;
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
    for (const script of full) {
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

  // The list.

  const attention = (row) => (row.change === "regressed" ? 0 : row.notes.includes("suspect") ? 1 : ATTENTION[row.status]);
  const KEYS = new Map([
    ["status", attention], ["name", (row) => row.name.toLowerCase()], ["score", scoreOf], ["change", changeOf], ["time", (row) => row.ms],
  ]);
  const sorted = (chosen) => {
    const falling = wanted.sort.startsWith("-");
    const key = KEYS.get(wanted.sort.replace(/^-/, "")) ?? attention;
    const sign = falling ? -1 : 1;
    return chosen.map((row) => [key(row), row]).sort(([left], [right]) => {
      if (left === null || right === null) return (left === null) - (right === null);
      return left < right ? -sign : left > right ? sign : 0;
    }).map(([, row]) => row);
  };

  const opened = new Set();
  const NARROW = matchMedia("(max-width: 700px)");
  const COLUMNS = [["status", "Status", "status"], ["name", "Case", ""], ["score", "Score", "narrow number"], ["change", "Change", "narrow number"],
    ["time", "Time", "narrow number time"]];
  const headers = COLUMNS.map(([key, title, className]) => {
    const button = make("button", { type: "button", className: "plain", text: title });
    button.addEventListener("click", () => {
      wanted.sort = wanted.sort === key ? `-${key}` : key;
      wanted.page = "1";
      draw();
    });
    return make("th", { scope: "col", className }, button);
  });
  const body = make("tbody");
  const status = make("p", { role: "status" });
  const previous = make("button", { type: "button", text: "Previous" });
  const next = make("button", { type: "button", text: "Next" });
  const place = make("p");

  const rowNotes = (row) => {
    const words = [...(row.change && row.change !== "unchanged" ? [row.change] : []), ...row.notes];
    const parts = words.map((word) => badge(word, index.notes.includes(word) ? "note" : state(word)));
    if (row.iterations > 1 && row.passes !== row.iterations) {
      parts.push(make("span", { className: "quiet", text: `passed ${row.passes} of ${row.iterations} iterations` }));
    }
    return parts.flatMap((part) => [" ", part]);
  };
  const toggle = (row, button, line) => {
    const open = !opened.has(row.position);
    button.setAttribute("aria-expanded", open);
    line.classList.toggle("open", open);
    if (open) {
      opened.add(row.position);
      line.after(unfolded(row, button.id));
      wanted.case = row.id;
    } else {
      opened.delete(row.position);
      line.nextSibling.remove();
      if (wanted.case === row.id) wanted.case = "";
    }
    remember();
  };
  const unfolded = (row, label) => {
    // The style hides the last column on narrow screens.
    const cell = make("td", { className: "full", colSpan: COLUMNS.length - (NARROW.matches ? 1 : 0) });
    const region = make("div", { role: "group", id: `full-${row.position}`, "aria-labelledby": label });
    region.append(...inFull(row));
    cell.append(region);
    return make("tr", {}, cell);
  };
  const lines = (row) => {
    const isOpen = opened.has(row.position);
    const button = make("button", {
      type: "button", className: "plain toggle", id: `case-${row.position}`, "aria-expanded": isOpen, "aria-controls": `full-${row.position}`,
    }, named(short(row.name)));
    const where = [index.suites.length > 1 && row.suite !== null ? index.suites[row.suite].name : "", ...row.tags.map((tag) => index.tags[tag])];
    const line = make("tr", { className: isOpen ? "open" : "" },
      make("td", {}, badge(row.status)),
      make("th", { scope: "row" }, button, ...rowNotes(row), named(where.filter(Boolean).map((word) => short(word, 60)).join(" · "), "quiet block")),
      make("td", { className: "number", text: number(scoreOf(row)) }),
      make("td", { className: "number", text: signed(changeOf(row)) }),
      make("td", { className: "number time", text: time(row.ms) }));
    button.addEventListener("click", () => toggle(row, button, line));
    return isOpen ? [line, unfolded(row, button.id)] : [line];
  };

  let listed = [];
  const pages = () => Math.max(1, Math.ceil(listed.length / ROWS_ON_A_PAGE));
  const currentPage = () => Math.min(pages(), Math.max(1, Number.parseInt(wanted.page, 10) || 1));
  const draw = () => {
    listed = sorted(rows.filter(matches));
    const page = currentPage();
    wanted.page = String(page);
    body.replaceChildren(...listed.slice((page - 1) * ROWS_ON_A_PAGE, page * ROWS_ON_A_PAGE).flatMap(lines));
    headers.forEach((header, column) => {
      header.removeAttribute("aria-sort");
      const key = COLUMNS[column][0];
      if (wanted.sort.replace(/^-/, "") === key) header.setAttribute("aria-sort", wanted.sort === key ? "ascending" : "descending");
    });
    status.textContent = `${integer(listed.length)} of ${counted(rows.length, "case")}`;
    place.textContent = `Page ${integer(page)} of ${integer(pages())}`;
    previous.disabled = page === 1;
    next.disabled = page === pages();
    remember();
  };
  const turn = (by) => {
    wanted.page = String(currentPage() + by);
    draw();
    byId("cases").scrollIntoView();
  };
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));

  // A word-level difference: the longest common subsequence of words, after common words at both ends are removed.

  // White space belongs to the word before it, and is ignored in comparisons.
  const WORD = /(?:\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|[\p{L}\p{N}\p{M}_]+(?:[.,'’-][\p{L}\p{N}\p{M}_]+)*|[^])\s*/gu;
  const words = (text) => (text.match(WORD) ?? []).map((shown) => ({ shown, word: shown.trim() }));
  const difference = (before, after) => {
    const old = words(before), now = words(after);
    const most = Math.min(old.length, now.length);
    let head = 0, tail = 0;
    while (head < most && old[head].word === now[head].word) head += 1;
    while (tail < most - head && old.at(-1 - tail).word === now.at(-1 - tail).word) tail += 1;
    const between = middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
    return [["same", now.slice(0, head)], ...between, ["same", now.slice(now.length - tail)]]
      .map(([kind, list]) => [kind, list.map(({ shown }) => shown).join("")]).filter(([, text]) => text);
  };
  const middle = (left, right) => {
    const width = right.length + 1;
    if (left.length * right.length > MOST_DIFF_CELLS) return [["del", left], ["ins", right]];
    const longest = new Uint16Array((left.length + 1) * width);
    for (let i = left.length - 1; i >= 0; i -= 1) {
      for (let j = right.length - 1; j >= 0; j -= 1) {
        longest[i * width + j] = left[i].word === right[j].word
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    const parts = [];
    const add = (kind, word) => {
      if (parts.length && parts.at(-1)[0] === kind) parts.at(-1)[1].push(word);
      else parts.push([kind, [word]]);
    };
    let i = 0, j = 0;
    while (i < left.length || j < right.length) {
      if (i < left.length && j < right.length && left[i].word === right[j].word) {
        add("same", right[j]);
        i += 1;
        j += 1;
      } else if (j === right.length || (i < left.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
        add("del", left[i]);
        i += 1;
      } else {
        add("ins", right[j]);
        j += 1;
      }
    }
    return parts;
  };

  // A case in full.

  const scrollable = (element, text) => {
    if (text.length > TALL_TEXT || text.split("\n", 20).length === 20) element.tabIndex = 0;
    return element;
  };
  // The browser lays out only visible pieces. The layout of a megabyte in one piece takes many seconds.
  const pieces = (text) => {
    const found = [];
    for (let start = 0; start < text.length;) {
      const space = text.slice(start + PIECE, start + 2 * PIECE).search(/\s/);
      const end = start + PIECE + (space < 0 ? PIECE : space + 1);
      found.push(make("span", { className: "piece", text: text.slice(start, end) }));
      start = end;
    }
    return found;
  };
  const textBox = (text, className = "text") => {
    const cut = text.length > LONGEST_TEXT;
    const box = scrollable(make("pre", { className, text: cut ? text.slice(0, LONGEST_TEXT) : text }), text);
    if (!cut) return [box];
    const more = make("button", { type: "button", text: `Show all ${integer(text.length)} characters` });
    more.addEventListener("click", () => {
      box.replaceChildren(...pieces(visible(text)));
      box.focus();
      more.remove();
    });
    return [box, more];
  };
  const diffBox = (before, after) => {
    const box = scrollable(make("pre", { className: "text" }), before + after);
    for (const [kind, text] of difference(before.slice(0, LONGEST_TEXT), after.slice(0, LONGEST_TEXT))) {
      box.append(kind === "same" ? visible(text) : make(kind, { text }));
    }
    if (before.length > LONGEST_TEXT || after.length > LONGEST_TEXT) {
      box.append("\n", make("span", { className: "quiet", text: `(the first ${integer(LONGEST_TEXT)} characters)` }));
    }
    return [box];
  };
  const block = (title, text) => (typeof text === "string" ? [make("h4", { text: title }), ...textBox(text)] : []);
  const answer = (text, others) => {
    const title = make("h4", { text: "Answer" });
    if (typeof text !== "string") return [title, make("p", { className: "quiet", text: "none" })];
    const views = [["As it is", () => textBox(text)],
      ...others.filter(([, other]) => typeof other === "string" && other !== text).map(([label, other]) => [label, () => diffBox(other, text)])];
    const shown = make("div");
    const buttons = views.map(([label, content]) => {
      const button = make("button", { type: "button", text: label });
      button.addEventListener("click", () => {
        buttons.forEach((each) => each.setAttribute("aria-pressed", each === button));
        shown.replaceChildren(...content());
      });
      return button;
    });
    const first = views.findIndex(([label]) => label === "Against the baseline");
    buttons[Math.max(0, first)].click();
    return [title, views.length > 1 ? make("div", { className: "choices", role: "group", "aria-label": "How to show the answer" }, ...buttons) : null, shown]
      .filter(Boolean);
  };
  const table = (title, columns, lines) => make("div", { className: "scroll", role: "group", "aria-label": title, tabIndex: 0 }, make("table", {},
    make("thead", {}, make("tr", {}, ...columns.map((text) => make("th", { scope: "col", text })))),
    make("tbody", {}, ...lines.map((cells) => make("tr", {}, ...cells.map((cell, column) =>
      make(column ? "td" : "th", column ? {} : { scope: "row" }, typeof cell === "string" ? named(cell) : cell)))))));
  const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const fold = (title, content, isOpen = false) => {
    const element = make("details", {}, make("summary", {}, title));
    const fill = () => {
      if (element.open && element.childElementCount === 1) element.append(...content());
    };
    element.addEventListener("toggle", fill);
    element.open = isOpen;
    fill();
    return element;
  };

  const scores = (list) => {
    const lines = list.map((score) => {
      const outcome = score.status !== "scored" ? score.status : score.passed === true ? "passed" : score.passed === false ? "failed" : "";
      const asked = [score.model, score.duration_ms === undefined ? "" : time(score.duration_ms), score.cost_usd ? money(score.cost_usd) : ""];
      const why = make("div", { className: "why" }, ...[score.error, score.reason].filter(Boolean).flatMap((text) => textBox(text)));
      if (score.details && Object.keys(score.details).length) {
        why.append(fold("Details", () => textBox(json(score.details), "text code")));
      }
      return [score.id, number(score.score), number(score.threshold), outcome ? badge(outcome) : "–", why, asked.filter(Boolean).join(", ")];
    });
    return lines.length ? [make("h4", { text: "Scores" }), table("Scores", ["Metric", "Score", "Threshold", "Result", "Why", "Judge"], lines)] : [];
  };
  const calls = (list) => (list.length ? [make("h4", { text: "Tool calls" }), ...list.map((call, place) => {
    const title = make("span", {}, `${place + 1}. `, named(short(call.name)), call.duration_ms === undefined ? "" : ` · ${time(call.duration_ms)}`,
      call.error === undefined ? "" : " ", call.error === undefined ? "" : badge("error"));
    return fold(title, () => [
      ...(call.args === undefined ? [] : [make("h4", { text: "Arguments" }), ...textBox(json(call.args), "text code")]),
      ...(call.result === undefined ? [] : [make("h4", { text: "Result" }), ...textBox(json(call.result), "text code")]),
      ...block("Error", call.error),
    ], list.length < 4);
  })] : []);
  const context = (list) => (list.length
    ? [fold(`Retrieval context (${list.length})`, () => list.flatMap((text) => textBox(text)))] : []);
  const taken = (turn) => {
    const usage = turn.usage ?? {};
    const parts = [
      turn.latency_ms === undefined ? "" : time(turn.latency_ms),
      usage.input_tokens === undefined ? "" : counted(usage.input_tokens, "input token"),
      usage.output_tokens === undefined ? "" : counted(usage.output_tokens, "output token"),
      usage.cost_usd === undefined ? "" : money(usage.cost_usd),
    ].filter(Boolean);
    return parts.length ? [make("p", { className: "quiet", text: parts.join(" · ") })] : [];
  };
  const exchange = (turn, several, compared) => {
    const before = compared?.answers?.find((item) => item.turn === turn.index)?.before;
    return [
      make("h3", { className: several ? "" : "unseen", text: `Turn ${turn.index + 1}` }),
      ...block("Error", turn.error),
      ...block("Question", turn.input),
      ...block("Expected", turn.ground_truth),
      ...answer(turn.response, [["Against the baseline", before], ["Against the expected", turn.ground_truth]]),
      ...Object.entries(turn.shortened ?? {}).map(([name, whole]) => make("p", { className: "quiet",
        text: `${name}: shortened, ${whole.characters.toLocaleString("en")} characters, sha256 ${whole.sha256}` })),
      ...calls(turn.tool_calls ?? []),
      ...context(turn.retrieval_context ?? []),
      ...scores(turn.scores ?? []),
      ...taken(turn),
    ];
  };
  const iterations = (found, compared) => {
    const shown = (iteration) => iteration.turns.flatMap((turn) => exchange(turn, iteration.turns.length > 1, compared));
    if (found.iterations.length === 1) return shown(found.iterations[0]);
    const first = Math.max(0, found.iterations.findIndex((iteration) => iteration.status === found.status));
    return found.iterations.map((iteration, place) => fold(
      make("span", {}, `Iteration ${iteration.index + 1}: `, badge(iteration.status), ` score ${number(iteration.score)}`),
      () => shown(iteration), place === first));
  };
  const against = (compared) => {
    if (!compared) return [];
    const lines = (compared.metrics ?? []).map((metric) => [metric.id, number(metric.before), number(metric.after),
      signed(metric.before === undefined || metric.after === undefined ? null : metric.after - metric.before)]);
    const history = compared.history;
    const past = history && `Baseline runs: passed ${Math.round(history.pass_rate * history.iterations)} of ${counted(history.iterations, "iteration")} in ${counted(history.runs, "run")}.`;
    return [
      make("p", {}, "Against the baseline: ", badge(compared.change), compared.status_before && compared.status_after !== compared.status_before
        ? ` ${compared.status_before} → ${compared.status_after ?? "removed"}` : ""),
      past ? make("p", { text: past }) : null,
      lines.length ? fold("Scores in both runs", () => [table("Scores in both runs", ["Metric", "Baseline", "Now", "Change"], lines)]) : null,
    ].filter(Boolean);
  };
  const earlier = (pool) => {
    if (!pool) return [];
    const metrics = [...new Set(pool.flatMap((scores) => Object.keys(scores ?? {})))];
    const lines = pool.map((scores, run) => [`${index.pool[run].made} ${index.pool[run].commit}`,
      ...metrics.map((metric) => (scores?.[metric] ?? []).map(number).join(" · ") || "–")]);
    return [fold("Earlier runs of the pool", () => [table("Earlier runs of the pool", ["Run", ...metrics], lines)])];
  };
  const inFull = (row) => {
    const { case: found, compared, pool } = JSON.parse(full[row.chunk].textContent)[row.place];
    const where = make("p", { className: "quiet" }, named(row.id));
    if (found?.line) where.append(` · line ${found.line}`);
    const link = make("a", { text: "Link to this case" });
    link.href = `#${new URLSearchParams({ case: row.id })}`;
    where.append(" · ", link);
    const shown = found === null ? [make("p", { text: "This case is only in the baseline." })] : iterations(found, compared);
    if (!shown.length) shown.push(make("p", { className: "quiet", text: "Too long to be shown here: see results.json." }));
    return [where, ...against(compared), ...earlier(pool), ...shown];
  };

  // Set-up of the page.

  const controls = make("div", { className: "controls", role: "search" });
  const box = make("input", { type: "search", autocomplete: "off", spellcheck: false });
  controls.append(make("label", { className: "wide" }, "Search in everything", box));
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      wanted.q = box.value;
      wanted.page = "1";
      if (box.value.trim()) status.textContent = "Searching…";
      search(box.value, draw);
    }, 150);
  });
  const selects = Object.entries(choices).map(([key, [title, list]]) => {
    const select = make("select", {}, ...list);
    select.addEventListener("change", () => {
      wanted[key] = select.value;
      wanted.page = "1";
      draw();
    });
    controls.append(make("label", { hidden: hiddenChoices.has(key) }, title, select));
    return [key, select];
  });
  const reset = make("button", { type: "button", text: "Reset" });
  reset.addEventListener("click", () => {
    wanted = { ...DEFAULTS };
    show();
  });
  controls.append(reset);

  const reveal = () => {
    const row = rows.find((each) => each.id === wanted.case);
    if (!row) return;
    if (!matches(row)) {
      wanted = { ...DEFAULTS, case: row.id };
      hits = null;
      synchronise();
    }
    opened.add(row.position);
    wanted.page = String(1 + Math.floor(sorted(rows.filter(matches)).indexOf(row) / ROWS_ON_A_PAGE));
    draw();
    const button = byId(`case-${row.position}`);
    button.focus();
    button.scrollIntoView();
  };
  const synchronise = () => {
    box.value = wanted.q;
    for (const [key, select] of selects) select.value = wanted[key];
  };
  const show = () => {
    synchronise();
    search(wanted.q, () => {
      draw();
      if (wanted.case) reveal();
    });
  };
  window.addEventListener("hashchange", () => {
    // Links inside the page, for instance to its list, do not change the selection.
    if (location.hash && !location.hash.includes("=")) return;
    wanted = read();
    show();
  });

  byId("viewer").append(controls, status,
    make("div", { className: "scroll" }, make("table", { id: "list", "aria-labelledby": "cases-title" }, make("thead", {}, make("tr", {}, ...headers)), body)),
    make("nav", { className: "pages", "aria-label": "Pages" }, previous, place, next));
  byId("viewer").hidden = false;
  byId("static").hidden = true;
  show();
})();
