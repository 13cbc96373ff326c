// Boxes for texts of any length, tables, and parts that open.

const LONGEST_TEXT = 20000; // characters that are shown before the reader asks for all
const PIECE = 4000; // characters that are laid out together
const TALL_TEXT = 400; // characters from which a text may need to be scrolled

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
const markedBox = (parts, text) => scrollable(make("pre", { className: "text" }, ...parts), text);

const table = (title, columns, lines) => make("div", { className: "scroll", role: "group", "aria-label": title, tabIndex: 0 }, make("table", {},
  make("thead", {}, make("tr", {}, ...columns.map((text) => make("th", { scope: "col", text })))),
  make("tbody", {}, ...lines.map((cells) => make("tr", {}, ...cells.map((cell, column) =>
    make(column ? "td" : "th", column ? {} : { scope: "row" }, typeof cell === "string" ? named(cell) : cell)))))));
const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const fold = (title, content, className = "") => {
  const element = make("details", { className }, make("summary", {}, ...[title].flat()));
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(...content());
  });
  return element;
};
