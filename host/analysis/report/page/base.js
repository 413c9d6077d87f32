// The data of the page, and the few things that every part of it uses. Texts of records become text nodes, never HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const cases = data.cases;
const hasSeveralRuns = data.runs.length > 1;
cases.forEach((c, i) => {
  c.id = i;
  const axes = c.axes.map(([key, value]) => `${key}=${value}`);
  c.label = [...axes, ...(c.repeat ? [`repeat ${c.repeat}`] : [])].join(" ") || `case ${c.case}`;
  // A figure that never changed is there once.
  if (c.telemetry) for (const f of c.telemetry.figures) if (f.length === 2) f.push(f[1], f[1]);
  c.name = hasSeveralRuns ? `${data.runs[c.run].label}: ${c.label}` : c.label;
});

// An element with attributes and children; a child that is a text stays one.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    made.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return made;
}

// Four significant digits, no digit before the dot dropped: as the tables round.
function shortNumber(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "";
  const size = Math.abs(x);
  if (size >= 1000) return Math.round(x).toLocaleString("en-US");
  if (size > 0 && size < 1e-4) return x.toExponential(3);
  return String(Number(x.toPrecision(4)));
}

// A tick of a logarithmic axis.
function shortTick(x) {
  const size = Math.abs(x);
  if (size >= 1e12) return shortNumber(x / 1e12) + "T";
  if (size >= 1e9) return shortNumber(x / 1e9) + "G";
  if (size >= 1e6) return shortNumber(x / 1e6) + "M";
  if (size >= 1e4) return shortNumber(x / 1e3) + "k";
  return shortNumber(x);
}

const plural = (n, one, many) => `${n.toLocaleString("en-US")} ${n === 1 ? one : many || one + "s"}`;

// [[word, number of cases], ...], the most frequent first.
function tally(list, word) {
  const counts = new Map();
  for (const item of list) {
    const key = word(item);
    if (key !== undefined && key !== null && key !== "") counts.set(key, (counts.get(key) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

// What a word is worth. Beside the colour stands a sign, since not everyone sees the colour.
const worthOf = {
  ok: "good", valid: "good", power_limited: "good", same: "plain",
  faster: "good", less: "good", better: "good",
  slower: "bad", more: "bad", worse: "bad", differs: "bad",
  partial: "doubt", "not checked": "doubt", unknown: "doubt", unsupported: "doubt", outdated: "doubt",
  "cannot tell": "doubt", lower: "plain", higher: "plain",
};
// A word of a record may be the name of a property that every object has.
const worthOfWord = (word) => (Object.hasOwn(worthOf, word) ? worthOf[word] : "bad");
const signOf = {good: "✓", bad: "✕", doubt: "?", plain: "="};
const badge = (word, count) => badgeOf(word, worthOfWord(word), count);
function badgeOf(word, worth, count) {
  const text = count === undefined ? word : `${word} ${count.toLocaleString("en-US")}`;
  return element("span", {class: `badge ${worth}`}, element("span", {"aria-hidden": "true"}, signOf[worth] + " "), text);
}

// A part that opens: its summary in one line.
function folded(summary, ...children) {
  return element("details", {}, element("summary", {}, summary), ...children);
}

// Who wants to know when other cases are shown, or the same in another order.
const listeners = [];
let shownCases = cases.slice();
function showCases(list) {
  shownCases = list;
  for (const listener of listeners) listener();
}
