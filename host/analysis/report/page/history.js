// A figure of each case over all runs in time, with the places where it changed.
const hasHistory = Boolean(data.history);
const seriesOfHistory = hasHistory ? data.history.series : [];
for (const s of seriesOfHistory) {
  const parts = [s.label || "(no sweep)", s.ranks ? plural(s.ranks, "rank") : "", s.device];
  s.name = parts.filter(Boolean).join(", ");
}
const worthOfChange = (change) => (change.worse ? "bad" : worthOfWord(change.word));

// Those of the cases that the table shows, in its order, and each once.
function shownSeries(list) {
  const ofCase = new Map();
  for (const s of seriesOfHistory) for (const id of s.case_ids) ofCase.set(id, s);
  return [...new Set(list.map((c) => ofCase.get(c.id)).filter(Boolean))];
}

function historySection() {
  if (!hasHistory) return null;
  const section = element("section", {id: "history"}, element("h2", {}, "History"));
  const changed = seriesOfHistory.filter((s) => s.changes.length);
  const found = changed.flatMap((s) => s.changes.map((change) =>
    element("li", {}, badgeOf(change.word, worthOfChange(change)), " ", element("b", {}, s.name), ` ${change.text.replace(` ${change.word}`, "")}`)));
  const list = found.length > 20 ? [element("ul", {class: "said"}, found.slice(0, 20)), folded(`${found.length - 20} others`, element("ul", {class: "said"}, found.slice(20)))]
                                : [element("ul", {class: "said"}, found)];
  const metric = data.history.metric;
  if (!seriesOfHistory.length) section.append(element("p", {class: "quiet"}, "There is no other run of these cases."));
  else if (!found.length) section.append(element("p", {class: "quiet"}, `${metric} has not changed over ${plural(d3.max(seriesOfHistory, (s) => s.points.length), "run")}.`));
  else section.append(...list);
  return section;
}

// The runs between two changes, by their mean on a logarithmic scale; of those beside others only where all were.
function levels(s) {
  const stops = [0, ...s.changes.map((change) => change.at).filter((at) => at !== undefined), s.points.length];
  return d3.pairs(stops).map(([from, to]) => {
    const stretch = s.points.slice(from, to), quiet = stretch.filter((p) => !p[4]);
    return {from, to, mean: Math.exp(d3.mean(quiet.length ? quiet : stretch, (p) => Math.log(p[1])))};
  }).filter((level) => level.to > level.from);
}

// As much of a date as distinguishes the ticks.
function dateTicks([from, to]) {
  const days = (to - from) / 86.4e6;
  return d3.utcFormat(days > 700 ? "%Y-%m" : days > 60 ? "%b" : days > 3 ? "%m-%d" : "%H:%M");
}

function drawHistory(g, s, width, height, name) {
  const x = d3.scaleUtc(d3.extent(s.points, (p) => p[0] * 1000), [52, width - 16]);
  if (x.domain()[0] >= x.domain()[1]) x.domain([+x.domain()[0] - 3.6e6, +x.domain()[1] + 3.6e6]);
  // Noise of a percent must not look like mountains.
  const [low, high] = d3.extent(s.points, (p) => p[1]), middle = (low + high) / 2, half = Math.max((high - low) * 0.58, middle * 0.015);
  const lines = [28, 41], top = 50, bottom = height - 30;
  const y = d3.scaleLinear([middle - half, middle + half], [bottom, top]);
  label(g, 6, 14, name, width - 16, "label strong").select("title").text(s.name);
  leftAxis(g, y, 50, "", 3);
  g.append("g").attr("class", "axis").attr("transform", `translate(0,${height - 28})`)
   .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 80))).tickFormat(dateTicks(x.domain())).tickSizeOuter(0));
  const at = (i) => x(s.points[i][0] * 1000);
  for (const level of levels(s))
    g.append("line").attr("class", "level").attr("x1", at(level.from)).attr("x2", at(level.to - 1)).attr("y1", y(level.mean)).attr("y2", y(level.mean));
  const dot = (p, i) => {
    const when = new Date(p[0] * 1000).toISOString().slice(0, 16).replace("T", " ");
    const where = [data.history.hosts[p[2]], data.history.revisions[p[3]] && `revision ${data.history.revisions[p[3]]}`, p[4] && "beside others"];
    return [`${when}: ${shortNumber(p[1])} ${s.unit}`, ...where].filter(Boolean).join(", ");
  };
  g.selectAll("circle").data(s.points).join("circle").attr("class", (p) => (p[4] ? "l0 hollow" : "c0")).attr("r", s.points.length > 100 ? 1.8 : 2.6)
   .attr("cx", (p) => x(p[0] * 1000)).attr("cy", (p) => y(p[1])).append("title").text(dot);
  const free = lines.map(() => 0);  // from where on each line of names has room
  for (const change of s.changes) {
    if (change.at === undefined) continue;
    const place = (at(change.at - 1) + at(change.at)) / 2, worth = worthOfChange(change);
    const percent = `${change.ratio >= 1 ? "+" : "\u2212"}${shortNumber(Number(Math.abs((change.ratio - 1) * 100).toPrecision(2)))}%`;
    const text = `${change.word} ${percent}`, half = (text.length * letterWidth) / 2;
    const middleOfText = Math.min(Math.max(place, 4 + half), width - 4 - half), line = free.findIndex((from) => middleOfText - half >= from);
    g.append("line").attr("class", `change ${worth}`).attr("x1", place).attr("x2", place).attr("y1", line < 0 ? top : lines[line] + 4).attr("y2", bottom)
     .append("title").text(change.text);
    // Names of changes that are close are left to the list and to who points at the line.
    if (line < 0) continue;
    free[line] = middleOfText + half + 6;
    g.append("text").attr("class", `label changed ${worth}`).attr("x", middleOfText).attr("y", lines[line]).attr("text-anchor", "middle").text(text)
     .append("title").text(change.text);
  }
}

addPlot({
  name: "history",
  title: hasHistory ? `${data.history.metric} over time` : "Over time",
  about: "Each point is a run, by the figure that comparisons go by; hollow ones had others beside them. A line across is the mean between two changes, a line " +
         "upright is a change with its verdict. The axes do not begin at 0.",
  draw(svg, width, list) {
    if (!hasHistory) return {nothing: "the history was not asked for (--history)"};
    const all = shownSeries(list);
    if (!all.length) return {nothing: seriesOfHistory.length ? "no case that is shown has been run before" : "there is no other run of these cases"};
    const {list: shown, said} = firstOf(all, isNarrow(width) ? 8 : 24);
    const columns = Math.min(shown.length, Math.max(1, Math.floor(width / 420))), panelWidth = width / columns, panelHeight = 196;
    const units = [...new Set(shown.map((s) => s.unit))].filter(Boolean);
    const isOneDevice = new Set(shown.map((s) => s.device)).size === 1;
    shown.forEach((s, i) => {
      const g = svg.append("g").attr("transform", `translate(${(i % columns) * panelWidth},${Math.floor(i / columns) * panelHeight})`);
      drawHistory(g, s, panelWidth - 8, panelHeight - 8, isOneDevice && s.label ? s.label + (s.ranks ? `, ${s.ranks} ranks` : "") : s.name);
    });
    const older = shown.filter((s) => s.left_out).length ? "Of long histories the newest runs are drawn." : "";
    const sentences = [units.length ? `In ${units.join(", ")}.` : "", said, older];
    return {height: Math.ceil(shown.length / columns) * panelHeight, said: sentences.filter(Boolean).join(" ")};
  },
});
