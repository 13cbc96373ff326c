// Differences of texts word by word, and of lists of tool calls.

const MOST_DIFF_CELLS = 4000000; // size of the table behind a difference
const LEAST_IN_COMMON = 0.4; // share of words below which two texts are shown without marks

// White space belongs to the word before it, and is ignored in comparisons.
const WORD = /(?:\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|[\p{L}\p{N}\p{M}_]+(?:[.,'’-][\p{L}\p{N}\p{M}_]+)*|[^])\s*/gu;
const words = (text) => (text.match(WORD) ?? []).map((shown) => ({ shown, word: shown.trim() }));

// The longest common subsequence; `alike` is 0 for items that do not match, else the weight of the match.
const alignment = (left, right, alike) => {
  const width = right.length + 1;
  const best = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const weight = alike(left[i], right[j]);
      const matched = weight ? best[(i + 1) * width + j + 1] + weight : 0;
      best[i * width + j] = Math.max(matched, best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const pairs = [];
  let i = 0, j = 0;
  while (i < left.length || j < right.length) {
    const weight = i < left.length && j < right.length ? alike(left[i], right[j]) : 0;
    if (weight && best[i * width + j] === best[(i + 1) * width + j + 1] + weight) pairs.push([left[i++], right[j++]]);
    else if (j === right.length || (i < left.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) pairs.push([left[i++], null]);
    else pairs.push([null, right[j++]]);
  }
  return pairs;
};

// Pairs of words with null where one text lacks a word; null if the table would be too large.
const wordPairs = (before, after) => {
  const old = words(before), now = words(after);
  const most = Math.min(old.length, now.length);
  let head = 0, tail = 0;
  while (head < most && old[head].word === now[head].word) head += 1;
  while (tail < most - head && old.at(-1 - tail).word === now.at(-1 - tail).word) tail += 1;
  const left = old.slice(head, old.length - tail), right = now.slice(head, now.length - tail);
  if (left.length * right.length > MOST_DIFF_CELLS) return null;
  const both = (amount, place) => Array.from({ length: amount }, (_, step) => [old[place(old) + step], now[place(now) + step]]);
  return [...both(head, () => 0), ...alignment(left, right, (one, other) => Number(one.word === other.word)), ...both(tail, (list) => list.length - tail)];
};
const worthMarking = (pairs) => {
  const common = pairs.filter(([old, now]) => old && now).length;
  const longest = Math.max(pairs.filter(([old]) => old).length, pairs.filter(([, now]) => now).length);
  return common >= LEAST_IN_COMMON * longest;
};
// The words of one side: neighbours with the same mark are one piece.
const sideOf = (pairs, side, mark) => {
  const pieces = [];
  for (const pair of pairs) {
    if (!pair[side]) continue;
    const kind = pair[1 - side] ? "same" : mark;
    if (pieces.at(-1)?.kind === kind) pieces.at(-1).text += pair[side].shown;
    else pieces.push({ kind, text: pair[side].shown });
  }
  return pieces.map(({ kind, text }) => (kind === "same" ? visible(text) : make(kind, { text })));
};
// Both texts with marks, or null if they have too little in common.
const marked = (before, after, least = worthMarking) => {
  const pairs = wordPairs(before, after);
  return pairs === null || !least(pairs) ? null : [sideOf(pairs, 0, "del"), sideOf(pairs, 1, "ins")];
};

// Tool calls in pairs: a call with the same arguments first, else one with the same name.
const MOST_CALLS = 500;
const callPairs = (before, after) => {
  const alike = (old, now) => {
    if (old.name !== now.name) return 0;
    return JSON.stringify(old.args) === JSON.stringify(now.args) ? 3 : 2;
  };
  const old = before.slice(0, MOST_CALLS), now = after.slice(0, MOST_CALLS);
  return [...alignment(old, now, alike), ...before.slice(MOST_CALLS).map((call) => [call, null]), ...after.slice(MOST_CALLS).map((call) => [null, call])];
};
