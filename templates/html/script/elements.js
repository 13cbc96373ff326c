// Making elements, and formatting of values: for the scripts of all pages.
// Untrusted text becomes only the text of a node or the value of an option, never markup or an attribute.
const byId = (id) => document.getElementById(id);
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
const state = (word) => ({ passed: "good", repaired: "good", failed: "bad", error: "bad", broke: "bad" })[word] ?? "neutral";
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
