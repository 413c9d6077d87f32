// What plots share: their list, labels that fit, rows of cases, legends, axes. A plot draws itself into an SVG of a given
// width and answers its height, {height, said}, or why there is nothing to draw, {nothing}.
const plots = [];
function addPlot(plot) {
  plots.push(plot);
}

const letterWidth = 6.7;  // of the plots' font, in the mean
function fitted(text, width, isStrong) {
  const most = Math.max(3, Math.floor(width / (letterWidth * (isStrong ? 1.12 : 1))));
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

// A text that is shown whole when pointed at.
function label(parent, x, y, text, width, kind) {
  const made = parent.append("text").attr("x", x).attr("y", y).attr("class", kind || "label")
      .text(fitted(text, width, /strong/.test(kind)));
  made.append("title").text(text);
  return made;
}

const colour = (i) => "c" + (i % 8);
const isNarrow = (width) => width < 560;

// At most `most` of the cases, and a sentence on the others.
function firstOf(list, most, what) {
  if (list.length <= most) return {list, said: ""};
  return {list: list.slice(0, most),
          said: `The first ${most} of ${plural(list.length, what || "case")} in the table's order; sort or filter the table for others.`};
}

// What a plot has to say of itself beside its own sentences; emptied before each.
const remarks = new Set();

// Names of cases in so little room: what is the same in all of them goes first, then the keys, which a remark names.
function shortNames(list, room) {
  const keys = [];
  for (const c of list) for (const [key] of c.axes) if (!keys.includes(key)) keys.push(key);
  const valueOf = (c, key) => (c.axes.find((a) => a[0] === key) || ["", ""])[1];
  const telling = keys.filter((key) => list.length === 1 || new Set(list.map((c) => valueOf(c, key))).size > 1);
  const isTold = (c) => telling.length > 0 && c.axes.length > 0 && !c.repeat;
  const named = (c, part) => {
    if (!isTold(c)) return c.name;
    const parts = telling.filter((key) => valueOf(c, key) !== "").map((key) => part(key, valueOf(c, key)));
    return (hasSeveralRuns ? `${data.runs[c.run].label}: ` : "") + parts.join(" ");
  };
  const whole = list.map((c) => named(c, (key, value) => `${key}=${value}`));
  const fits = (names) => d3.max(names, (name) => name.length) * letterWidth <= room;
  if (!list.length || fits(whole) || telling.length < 2) return whole;
  remarks.add(`Names are the values of ${telling.join(", ")}.`);
  return list.map((c) => named(c, (key, value) => value));
}

// Rows with a name each: beside the bar, or above it where there is little width.
function rowFrame(svg, width, rows, options) {
  const {top = 6, right = 64, row = 24, names: given} = options || {};
  const narrow = isNarrow(width);
  const names = given || shortNames(rows, narrow ? width - 8 : width * 0.42 - 14);
  const longest = d3.max(names, (name) => name.length) || 0;
  const left = narrow ? 4 : Math.min(longest * letterWidth + 14, width * 0.42);
  const pitch = narrow ? row + 14 : row;
  const x0 = left, x1 = width - right;
  rows.forEach((r, i) => {
    const made = narrow ? label(svg, 4, top + i * pitch + 11, names[i], width - 8)
                        : label(svg, left - 8, top + i * pitch + row / 2 + 4, names[i], left - 8).attr("text-anchor", "end");
    if (r.name) made.select("title").text(r.name);
  });
  const y = (i) => top + i * pitch + (narrow ? 14 : 0);
  return {x0, x1, y, bar: row - 8, middle: (i) => y(i) + row / 2 - (narrow ? 2 : 0), bottom: top + rows.length * pitch};
}

// As many ticks as have room for their numbers.
function roomyTicks(scale, most) {
  const [from, to] = scale.range();
  return Math.max(2, Math.min(most, Math.floor(Math.abs(to - from) / 56)));
}

function bottomAxis(svg, scale, y, title, ticks, values) {
  const axis = d3.axisBottom(scale).ticks(roomyTicks(scale, ticks || 5)).tickSizeOuter(0);
  if (values) axis.tickValues(values).tickFormat(shortTick);
  else if (scale.base) axis.ticks(ticks || 5, shortTick);
  else axis.tickFormat(shortTick);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${y})`).call(axis);
  const [from, to] = scale.range();
  svg.append("text").attr("class", "title").attr("x", (from + to) / 2).attr("y", y + 32).attr("text-anchor", "middle").text(title);
  return y + 40;
}

function leftAxis(svg, scale, x, title, ticks) {
  const axis = d3.axisLeft(scale).ticks(ticks || 5).tickSizeOuter(0);
  if (scale.base) axis.ticks(ticks || 5, shortTick); else axis.tickFormat(shortTick);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${x},0)`).call(axis);
  if (title) svg.append("text").attr("class", "title").attr("x", x - 40).attr("y", Math.min(...scale.range()) - 8).text(title);
}

// Vertical lines at the ticks, behind what is drawn next.
function grid(svg, scale, y0, y1, ticks) {
  svg.insert("g", ":first-child").attr("class", "grid").selectAll("line").data(scale.ticks(scale.base ? ticks || 5 : roomyTicks(scale, ticks || 5))).join("line")
     .attr("x1", (t) => scale(t)).attr("x2", (t) => scale(t)).attr("y1", y0).attr("y2", y1);
}

// Names with their colours, in as many lines as they need. Answers the height.
function legend(svg, names, width, y, mark) {
  let x = 4, line = 0;
  names.forEach((name, i) => {
    const text = fitted(name, width - 40), need = text.length * letterWidth + 30;
    if (x + need > width && x > 4) { x = 4; line += 1; }
    const at = y + line * 18;
    if (mark) mark(svg, i, x + 5, at + 6);
    else svg.append("rect").attr("class", colour(i)).attr("x", x).attr("y", at + 1).attr("width", 11).attr("height", 11);
    svg.append("text").attr("class", "label").attr("x", x + 16).attr("y", at + 10).text(text).append("title").text(name);
    x += need;
  });
  return names.length ? (line + 1) * 18 + 6 : 0;
}

// Stretches a range of positive numbers a little, on a logarithmic axis.
function logDomain(values) {
  const low = d3.min(values), high = d3.max(values);
  return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
}
const isSpread = (values, factor) => d3.min(values) > 0 && d3.max(values) / d3.min(values) > factor;

const titled = (element, text) => element.append("title").text(text);
