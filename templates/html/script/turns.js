// One turn of a conversation: question, calls, answers and scores, on both sides where the earlier ones are known.

const LONGEST_CALL = 240; // characters of a call's line

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const argumentsOf = ({ args }) => {
  if (args === undefined) return "";
  const isObject = args !== null && typeof args === "object" && !Array.isArray(args);
  return short(isObject ? Object.entries(args).map(([name, value]) => `${name}: ${written(value)}`).join(", ") : written(args), LONGEST_CALL);
};
const resultOf = ({ result }) => (result === undefined ? "" : ` → ${short(written(result), LONGEST_CALL)}`);
const callBox = (call, kind, shownArguments = [visible(argumentsOf(call))], shownResult = [visible(resultOf(call))]) => {
  const line = make("span", { className: "line" }, make("span", { "aria-hidden": "true", text: "⚙ " }), named(short(call.name)), "(",
    make("bdi", {}, ...shownArguments), ")",
    make("bdi", {}, ...shownResult), call.error === undefined ? "" : " ", call.error === undefined ? "" : badge("error"));
  const state = { gone: "only before", added: "new" }[kind];
  return fold([line, state ? make("span", { className: "unseen", text: ` (${state})` }) : "",
    call.duration_ms === undefined ? "" : make("span", { className: "took", text: time(call.duration_ms) })], () => [
    ...(call.args === undefined ? [] : [make("h5", { text: "Arguments" }), ...textBox(json(call.args), "text code")]),
    ...(call.result === undefined ? [] : [make("h5", { text: "Result" }), ...textBox(json(call.result), "text code")]),
    ...(call.error === undefined ? [] : [make("h5", { text: "Error" }), ...textBox(call.error)]),
  ], `call ${kind}`);
};
const callsOfBoth = (before, now) => {
  const left = [], right = [];
  for (const [old, next] of callPairs(before, now)) {
    if (old && next) {
      const parts = (text, least) => (text(old) === text(next) ? null : marked(text(old), text(next), least));
      const [args, results] = [parts(argumentsOf, () => true), parts(resultOf)];
      const kind = argumentsOf(old) + resultOf(old) === argumentsOf(next) + resultOf(next) ? "same" : "other";
      left.push(callBox(old, kind, args?.[0], results?.[0]));
      right.push(callBox(next, kind, args?.[1], results?.[1]));
    } else if (old) {
      left.push(callBox(old, "gone"));
      right.push(make("p", { className: "call missing" }, named(short(old.name)), " was not called"));
    } else right.push(callBox(next, "added"));
  }
  return [left, right];
};

const scoreWord = (score) => {
  if (score.status !== "scored") return `${score.id} ${score.status}`;
  const sign = score.threshold === undefined || score.score === undefined ? "" : score.score < score.threshold ? " < " : " ≥ ";
  return `${score.id} ${number(score.score)}${score.passed === false && sign ? `${sign}${number(score.threshold)}` : ""}`;
};
const isNo = (score) => score.passed === false || score.status === "error";
const took = ({ latency_ms: latency, usage = {} }) => [
  latency === undefined ? "" : time(latency),
  usage.input_tokens === undefined ? "" : counted(usage.input_tokens, "input token"),
  usage.output_tokens === undefined ? "" : counted(usage.output_tokens, "output token"),
  usage.cost_usd === undefined ? "" : money(usage.cost_usd),
].filter(Boolean).join(" · ");
const scoreLine = (list, spent) => make("p", { className: "scores" }, ...list.flatMap((score) => [
  make("span", { className: isNo(score) ? "no" : "" }, isNo(score) ? "✗ " : "", named(scoreWord(score))), " "]), spent);
const scoreTable = (list) => fold(`Scores of this turn (${list.length})`, () => [table("Scores", ["Metric", "Score", "Threshold", "Result", "Why", "Judge"],
  list.map((score) => {
    const outcome = score.status !== "scored" ? score.status : score.passed === true ? "passed" : score.passed === false ? "failed" : "";
    const asked = [score.model, score.duration_ms === undefined ? "" : time(score.duration_ms), score.cost_usd ? money(score.cost_usd) : ""];
    const why = make("div", { className: "why" }, ...[score.error, score.reason].filter(Boolean).flatMap((text) => textBox(text)));
    if (score.details && Object.keys(score.details).length) why.append(fold("Details", () => textBox(json(score.details), "text code")));
    return [score.id, number(score.score), number(score.threshold), outcome ? badge(outcome) : "–", why, asked.filter(Boolean).join(", ")];
  }))]);

const answerBox = (text, error) => (error !== undefined && typeof text !== "string" ? [] : typeof text === "string" ? textBox(text) : [make("p", { className: "quiet", text: "no answer" })]);
const sidesOfAnswer = (old, now) => {
  if (typeof old !== "string" || typeof now !== "string") return [answerBox(old), answerBox(now)];
  if (old === now) return [answerBox(old), [...answerBox(now), make("p", { className: "quiet", text: "(the same)" })]];
  const isLong = old.length > LONGEST_TEXT || now.length > LONGEST_TEXT;
  const parts = wanted.view === "texts" || isLong ? null : marked(old, now);
  return parts ? [[markedBox(parts[0], old)], [markedBox(parts[1], now)]] : [answerBox(old), answerBox(now)];
};

// `earlier` is the turn in the baseline's run, as far as it is known.
const turnParts = (turn, earlier, sideNames, title) => {
  const isExpected = wanted.view === "expected" && typeof turn.ground_truth === "string";
  const twoSides = isExpected || earlier !== undefined;
  const [oldAnswer, newAnswer] = twoSides ? sidesOfAnswer(isExpected ? turn.ground_truth : earlier.before, turn.response) : [[], answerBox(turn.response, turn.error)];
  const before = isExpected ? null : earlier?.calls_before;
  const [oldCalls, newCalls] = before ? callsOfBoth(before, turn.tool_calls ?? []) : [[], (turn.tool_calls ?? []).map((call) => callBox(call, "same"))];
  const scores = turn.scores ?? [];
  const side = (name, className, ...content) => make("div", { className: `side ${className}` }, make("h4", { text: name }), ...content);
  const oldScores = isExpected ? [] : [scoreLine(earlier?.scores_before ?? [], took({ latency_ms: earlier?.latency_before }))];
  const context = turn.retrieval_context ?? [];
  const showExpected = typeof turn.ground_truth === "string" && !isExpected && turn.ground_truth !== earlier?.before;
  return make("div", { className: twoSides ? "turn both" : "turn" },
    make("h3", { className: title ? "" : "unseen", text: title || "Turn 1" }),
    make("div", { className: "question" }, make("h4", { className: "unseen", text: "Question" }), ...textBox(turn.input)),
    twoSides ? side(isExpected ? "expected" : sideNames[0], "before", ...oldCalls, ...oldAnswer, ...oldScores) : null,
    side(sideNames[1], "now", ...newCalls, ...(turn.error === undefined ? [] : textBox(turn.error, "text failure")), ...newAnswer,
      scoreLine(scores, took(turn)),
      ...scores.filter((score) => isNo(score) && (score.error ?? score.reason)).map((score) =>
        make("p", { className: "reason" }, named(`${score.id}: ${short(score.error ?? score.reason, 400)}`)))),
    make("div", { className: "more" },
      ...(showExpected ? [make("h4", { text: "Expected" }), ...textBox(turn.ground_truth)] : []),
      ...Object.entries(turn.shortened ?? {}).map(([name, whole]) => make("p", { className: "quiet",
        text: `${name}: shortened, ${integer(whole.characters)} characters, sha256 ${whole.sha256}` })),
      context.length ? fold(`Retrieval context (${context.length})`, () => context.flatMap((text) => textBox(text))) : null,
      scores.length ? scoreTable(scores) : null));
};
