// The case on the right: its past, why it did not pass, and its conversation.

const one = byId("one");
const SURE = 1e-9;

// The thresholds of the metrics that decide, if each has the same one in all turns.
const thresholdsOf = (found) => {
  const thresholds = new Map();
  for (const iteration of found.iterations) {
    for (const turn of iteration.turns) {
      for (const score of turn.scores ?? []) {
        if (score.threshold === undefined || score.gating === false) continue;
        thresholds.set(score.id, thresholds.has(score.id) && thresholds.get(score.id) !== score.threshold ? null : score.threshold);
      }
    }
  }
  return [...thresholds].filter(([, threshold]) => threshold !== null);
};
// For each earlier run, whether each iteration reached every threshold; runs without such scores are left out.
const pastOf = (found, earlier) => {
  const thresholds = thresholdsOf(found);
  return (earlier ?? []).map((scores) => {
    const known = thresholds.filter(([metric]) => scores?.[metric]?.length);
    const amount = Math.min(...known.map(([metric]) => scores[metric].length));
    if (!known.length) return [];
    return Array.from({ length: amount }, (_, place) => known.every(([metric, threshold]) => scores[metric][place] >= threshold - SURE));
  }).filter((run) => run.length);
};
const square = (isGood, title) => make("span", { className: isGood ? "square" : "square no", title, "aria-hidden": "true", text: isGood ? "✓" : "✗" });
const squares = (run) => run.map((isGood) => square(isGood, isGood ? "passed" : "failed"));
const tried = (passed, of) => Array.from({ length: of }, (_, place) => place < passed);
const isOfHistory = (row, past) => past && past.iterations === row.was[1] && Math.round(past.pass_rate * past.iterations) === row.was[0];
const strip = (row, found, compared, earlier, shown) => {
  const past = compared?.history;
  const known = pastOf(found, earlier);
  const passed = known.flat().filter(Boolean).length;
  // The list and the squares show the same tries: those side by side, where they decided.
  const agrees = !row.was || (row.was[0] === passed && row.was[1] === known.flat().length);
  const runs = agrees ? known : [tried(...row.was)];
  const lastRuns = (amount) => `in the last ${amount === 1 ? "run" : `${integer(amount)} runs`} of ${BASE === "baseline" ? "the baseline" : BASE}`;
  const words = !agrees && !isOfHistory(row, past) ? `passed ${row.was[0]} of ${row.was[1]} on ${BASE}`
    : agrees && runs.length ? `passed ${passed} of ${runs.flat().length} ${lastRuns(runs.length)}`
    : past ? `passed ${Math.round(past.pass_rate * past.iterations)} of ${past.iterations} ${lastRuns(past.runs)}`
      : compared?.change === "new" ? "new case" : compared?.status_before ? `${compared.status_before} on ${BASE}` : "";
  const passes = found.iterations.filter(({ status }) => status === "passed").length;
  const isBeside = row.passes !== passes || row.iterations !== found.iterations.length;
  const beside = isBeside ? `${row.passes} of ${row.iterations} here; in the first run ` : "";
  const here = `${beside}${passes} of ${found.iterations.length}${isBeside ? "" : " here"}${found.unneeded ? `, ${found.unneeded} more were not needed` : ""}`;
  const choices = found.iterations.map((iteration, place) => {
    const name = `Iteration ${iteration.index + 1}: ${iteration.status}`;
    const button = make("button", { type: "button", className: iteration.status === "passed" ? "square" : "square no", title: name,
      "aria-label": name, "aria-pressed": place === shown, text: iteration.status === "passed" ? "✓" : "✗" });
    button.addEventListener("click", () => chooseIteration(place));
    return button;
  });
  return make("div", { className: "strip" }, runs.length ? make("span", { text: BASE }) : null,
    ...runs.map((run) => make("span", { className: "run" }, ...squares(run))),
    ...(isBeside ? [make("span", { text: "here" }), make("span", { className: "run" }, ...squares(tried(row.passes, row.iterations)))] : []),
    make("span", { text: isBeside ? "first run" : "here" }), make("span", { className: "run here", role: "group", "aria-label": "Iterations" }, ...choices),
    make("span", { className: "words", text: [words, here].filter(Boolean).join("; ") }));
};

// What is the same in iterations that a reader need not see twice.
const essence = (iteration) => JSON.stringify([iteration.status, iteration.turns.map((turn) => [turn.input, turn.response, turn.error,
  (turn.tool_calls ?? []).map(({ name, args, result, error }) => [name, args, result, error]),
  (turn.scores ?? []).map(({ id, score, passed, status }) => [id, score, passed, status])])]);

const MOST_REASONS = 6;
const reasonsOf = (row, iteration, compared) => {
  const several = iteration ? iteration.turns.length > 1 : false;
  const found = (row.status === "passed" ? [] : iteration?.turns ?? []).flatMap((turn) => [
    ...(turn.error === undefined ? [] : [["agent", turn.error, turn]]),
    ...(turn.scores ?? []).filter(isNo).map((score) => [scoreWord(score), score.error ?? score.reason ?? "", turn]),
  ]).map(([what, why, turn]) => [several ? `turn ${turn.index + 1}: ${what}` : what, why]);
  if (found.length) return found;
  return (compared?.metrics ?? []).filter(({ before, after }) => before !== undefined && (after ?? -1) < before)
    .map(({ id, before, after, reason }) => [`${id} ${number(before)} → ${number(after)}`, reason ?? ""]);
};
const whyBox = (row, iteration, compared) => {
  const found = reasonsOf(row, iteration, compared);
  if (!found.length) return [];
  return [make("div", { className: KINDS[row.kind].attention || row.status === "failed" ? "why-box" : "why-box calm" },
    ...found.slice(0, MOST_REASONS).map(([what, why]) => make("p", {}, make("strong", {}, named(short(what))), why ? " " : "", why ? named(short(why, 600)) : "")),
    found.length > MOST_REASONS ? make("p", { text: `and ${found.length - MOST_REASONS} more` }) : null)];
};

const againstParts = (compared, earlier) => {
  const lines = (compared?.metrics ?? []).map((metric) => [metric.id, number(metric.before), number(metric.after),
    signed(metric.before === undefined || metric.after === undefined ? null : metric.after - metric.before)]);
  const metrics = [...new Set((earlier ?? []).flatMap((scores) => Object.keys(scores ?? {})))];
  const past = (earlier ?? []).map((scores, run) => [`${index.earlier[run].made} ${index.earlier[run].commit}`,
    ...metrics.map((metric) => (scores?.[metric] ?? []).map(number).join(" · ") || "–")]);
  return [
    lines.length ? fold("Scores in both runs", () => [table("Scores in both runs", ["Metric", BASE, "here", "Change"], lines)]) : null,
    past.length ? fold("Scores in earlier runs", () => [table("Scores in earlier runs", ["Run", ...metrics], past)]) : null,
  ];
};

const CONTROLS = /[\x00-\x1f\x7f-\x9f]/;
const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
// A name with control characters could act in a terminal, so there is no command for it.
const commandOf = (row) => {
  const suite = row.suite === null ? null : index.suites[row.suite].path;
  if (suite === null || CONTROLS.test(suite + row.name) || suite.startsWith("-")) return "";
  const chosen = `--case${row.name.startsWith("-") ? "=" : " "}${shellWord(row.name)}`;
  return ["agenteval run", shellWord(suite), chosen, index.baseline].filter(Boolean).join(" ");
};
const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers may refuse the clipboard to a file: then the reader copies the text from the page.
    say(text);
    return;
  }
  say(`copied: ${text}`);
};
const copyCommand = () => {
  const command = current ? commandOf(current) : "";
  if (command) copy(command);
  else if (current) say("there is no command for this case");
};

const headOf = (row, found) => {
  const where = row.suite === null ? "" : `${index.suites[row.suite].path}${found?.line ? `:${found.line}` : ""}`;
  const link = make("a", { text: "link" });
  link.href = addressOf({ ...DEFAULTS, case: row.id });
  link.setAttribute("aria-label", "Link to this case");
  const command = make("button", { type: "button", className: "plain link", text: "copy command" });
  command.addEventListener("click", copyCommand);
  const toList = make("button", { type: "button", className: "plain link to-list", text: "back to the list" });
  toList.addEventListener("click", () => byId("list").focus());
  return make("div", { className: "head" },
    make("h2", { id: "one-title", tabIndex: -1 }, sign(row.kind), " ", named(short(row.name))),
    badge(KINDS[row.kind].words, KINDS[row.kind].attention ? "bad" : row.status === "passed" ? "good" : "neutral"),
    ...row.notes.filter((note) => note !== row.kind).map((note) => badge(note, "note")), named(where, "quiet"),
    ...row.tags.map((tag) => named(`#${index.tags[tag]}`, "quiet")), commandOf(row) ? command : null, link, toList);
};

let current = null;
let iterationsShown = 1;
const firstIteration = (found) => {
  const asked = found.iterations.findIndex((iteration) => String(iteration.index + 1) === wanted.iteration);
  const usual = found.iterations.findIndex((iteration) => iteration.status === found.status);
  return Math.max(0, asked >= 0 ? asked : usual);
};
const showCase = (row) => {
  current = row;
  if (!row) {
    one.replaceChildren(make("p", { className: "quiet", text: rows.length ? "No case matches. Esc clears the filters." : "There is no case." }));
    one.removeAttribute("aria-labelledby");
    return;
  }
  const { case: found, compared, earlier } = caseOf(row);
  one.setAttribute("aria-labelledby", "one-title");
  one.scrollTop = 0;
  if (found === null) {
    one.replaceChildren(headOf(row, null), make("p", { text: `This case is only in ${BASE}'s run.` }),
      ...(compared.answers ?? []).flatMap(({ input, before }) => [make("h3", { text: "Question" }), ...textBox(input), ...answerBox(before)]));
    return;
  }
  const shown = firstIteration(found);
  const iteration = found.iterations[shown];
  const areAlike = found.iterations.length > 1 && new Set(found.iterations.map(essence)).size === 1;
  iterationsShown = areAlike ? 1 : found.iterations.length;
  const which = areAlike ? ` · ${found.iterations.length} iterations, all alike` : found.iterations.length > 1 ? ` · iteration ${shown + 1} of ${found.iterations.length}` : "";
  const sideNames = [index.base_commit ? `${BASE} ${index.base_commit}` : BASE, `here${which}`];
  const several = iteration?.turns.length > 1;
  const turns = (iteration?.turns ?? []).map((turn) => {
    // A baseline's answer belongs to the iteration that represents the case.
    const earlier = compared?.answers?.find((answer) => answer.turn === turn.index);
    return turnParts(turn, earlier, sideNames, several ? `Turn ${turn.index + 1}` : "");
  });
  if (!turns.length) turns.push(make("p", { className: "quiet", text: "Too long to be shown here: see results.json." }));
  const parts = [headOf(row, found), strip(row, found, compared, earlier, shown), ...whyBox(row, iteration, compared), ...turns, ...againstParts(compared, earlier)];
  one.replaceChildren(...parts.filter(Boolean), keysLine());
};
const chooseIteration = (place) => {
  if (!current) return;
  const { case: found } = caseOf(current);
  if (!found || found.iterations.length < 2) return;
  wanted.iteration = String(found.iterations[place % found.iterations.length].index + 1);
  remember();
  const hadFocus = one.querySelector(".strip").contains(document.activeElement);
  showCase(current);
  if (hadFocus) one.querySelectorAll(".strip button")[place % found.iterations.length].focus();
};
const nextIteration = () => {
  if (!current || iterationsShown < 2) return;
  chooseIteration(firstIteration(caseOf(current).case) + 1);
};
