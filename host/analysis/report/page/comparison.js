// Runs beside each other: verdicts in words first, then the ratios with their intervals.
const isJudged = (entry) => entry.verdict !== undefined;

function verdictCell(entry) {
  if (!isJudged(entry)) return element("td", {class: "quiet"}, entry.reason || "");
  const more = entry.runs_to_settle ? ` (about ${plural(entry.runs_to_settle, "run")} a side would settle it)` : "";
  return element("td", {title: (entry.notes || []).join("\n")}, badge(entry.verdict), more, entry.notes && entry.notes.length ? " *" : "");
}

function intervalText(entry) {
  if (!entry.interval) return "";
  const [low, high] = entry.interval;
  const text = (end) => (end === null ? "?" : shortNumber(end));  // null: open
  return low === high ? "exact" : `${text(low)} .. ${text(high)}`;
}

function metricTable(comparison, metric) {
  const others = comparison.sides.slice(1);
  // The order of the terminal's table.
  const head = [element("th", {scope: "col"}, "case"), element("th", {scope: "col", class: "number"}, comparison.sides[0].label)];
  for (const side of others)
    head.push(element("th", {scope: "col", class: "number"}, side.label),
              element("th", {scope: "col", class: "number"}, `${side.label}/${comparison.sides[0].label}`),
              element("th", {scope: "col"}, "interval"),
              metric.other_ratio ? element("th", {scope: "col", class: "number"}, metric.other_ratio) : null,
              element("th", {scope: "col"}, `${side.label}: verdict`));
  const rows = metric.cases.map((c) => {
    const cells = [element("th", {scope: "row"}, c.label),
                   element("td", {class: "number"}, c.sides[0].value || "", c.unit && c.sides[0].value ? " " + c.unit : "")];
    for (const entry of c.sides.slice(1))
      cells.push(element("td", {class: "number"}, entry.value || ""), element("td", {class: "number"}, entry.ratio ? shortNumber(entry.ratio) : ""),
                 element("td", {class: "number"}, intervalText(entry)),
                 metric.other_ratio ? element("td", {class: "number"}, entry.other_ratio ? shortNumber(entry.other_ratio) : "") : null,
                 verdictCell(entry));
    return element("tr", {}, cells);
  });
  return element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": `comparison of ${metric.name}`},
                 element("table", {class: "verdicts"}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows)));
}

function verdictNotes(comparison) {
  const notes = new Set(comparison.metrics.flatMap((m) => m.cases.flatMap((c) => c.sides.flatMap((e) => e.notes || []))));
  if (!notes.size) return null;
  return folded(`* notes of the verdicts (${notes.size})`, element("ul", {class: "said"}, [...notes].map((note) => element("li", {}, note))));
}

function lines(title, list) {
  if (!list.length) return null;
  return folded(`${title} (${list.length})`, element("ul", {class: "said"}, list.map((text) => element("li", {}, text))));
}

function comparisonPart(comparison) {
  if (comparison.refusal !== undefined) return element("p", {class: "warning"}, `Not compared: ${comparison.refusal}`);
  const sides = comparison.sides.map((side, i) =>
    element("li", {}, element("b", {}, side.label), i ? ": " : " (baseline): ", element("code", {}, side.name),
            side.runs > 1 ? `, ${side.runs} runs` : "", ...side.inputs.filter((input) => input !== side.name).map((input) => `, ${input}`)));
  const part = element("div", {class: "comparison"}, element("ul", {class: "sides"}, sides));
  for (const metric of comparison.metrics) {
    const entries = metric.cases.flatMap((c) => c.sides.slice(1)).filter(isJudged);
    const counts = tally(entries, (entry) => entry.verdict).map(([word, n]) => [badge(word, n), " "]);
    part.append(element("h3", {}, metric.name, metric.better ? element("span", {class: "quiet"}, `, ${metric.better}`) : ""),
                element("p", {class: "badges"}, entries.length ? counts : "nothing could be compared"));
    if (!metric.cases.length) continue;
    const table = metricTable(comparison, metric);
    part.append(metric.cases.length > 30 ? folded(`all ${plural(metric.cases.length, "case")}`, table) : table);
  }
  const differing = comparison.differences.map((d) =>
    element("tr", {}, element("th", {scope: "row"}, d.item), d.values.map((value) => element("td", {}, value))));
  part.append(...[
    verdictNotes(comparison), lines("about the sides", comparison.notes),
    differing.length ? folded(`in what else the sides differ (${differing.length})`, element("div", {class: "wide"}, element("table", {class: "facts"},
      element("thead", {}, element("tr", {}, element("th", {}), comparison.sides.map((side) => element("th", {scope: "col"}, side.label)))),
      element("tbody", {}, differing)))) : null,
    lines("cases that only one side has", comparison.unmatched), lines("inputs that a side does not say", comparison.unknown),
    lines("how it was tested", comparison.test)].filter(Boolean));
  return part;
}

function comparisonSection() {
  if (!data.comparisons.length) return null;
  return element("section", {id: "comparison"}, element("h2", {}, data.comparisons.length > 1 ? "Comparisons" : "Comparison"),
                 data.comparisons.map(comparisonPart));
}

addPlot({
  name: "comparison",
  title: "Ratios to the baseline",
  about: "Each case of a side over the baseline's, with its interval; the band is what counts as the same. Hollow points have no verdict. An arrow is an open end: others used the machine.",
  isWhole: true,
  controls: [{name: "metric", options: () => [...new Set(data.comparisons.flatMap((c) => (c.metrics || []).map((m) => m.name)))]}],
  draw(svg, width, list, chosen) {
    const rows = [];
    data.comparisons.forEach((comparison) => (comparison.metrics || []).filter((m) => m.name === (chosen.metric || "step")).forEach((metric) =>
      metric.cases.forEach((c) => c.sides.forEach((entry, s) => {
        if (s && entry.ratio > 0) rows.push({entry, threshold: comparison.threshold, name: `${comparison.sides[s].label}: ${c.label}`});
      }))));
    if (!rows.length) return {nothing: data.comparisons.length ? "no case of one side has a partner" : "it takes two runs"};
    const shown = rows.slice(0, 60), said = rows.length > 60 ? `The first 60 of ${rows.length}; the table above has all.` : "";
    const frame = rowFrame(svg, width, shown, {right: isNarrow(width) ? 84 : 150, names: shown.map((r) => r.name)});
    const band = 1 + shown[0].threshold;
    const values = shown.flatMap((r) => (r.entry.interval || []).concat(r.entry.ratio)).filter((v) => v > 0);
    const x = d3.scaleLog([Math.min(d3.min(values), 1 / band) / 1.02, Math.max(d3.max(values), band) * 1.02], [frame.x0, frame.x1]);
    // Behind the names, which on a phone stand above their bars.
    svg.insert("rect", ":first-child").attr("class", "band").attr("x", x(1 / band)).attr("width", x(band) - x(1 / band)).attr("y", 2)
        .attr("height", frame.bottom - 2);
    svg.insert("line", ":nth-child(2)").attr("class", "one").attr("x1", x(1)).attr("x2", x(1)).attr("y1", 2).attr("y2", frame.bottom);
    shown.forEach((r, i) => {
      const middle = frame.middle(i) - 2, worth = worthOfWord(r.entry.verdict);
      if (r.entry.interval) whisker(svg, x, r.entry.interval, middle, frame);
      titled(svg.append("circle").attr("class", `verdict ${worth}`).attr("r", 4.5).attr("cx", x(r.entry.ratio))
          .attr("cy", middle), `${r.name}: ${shortNumber(r.entry.ratio)}, ${r.entry.verdict}`);
      svg.append("text").attr("class", "label").attr("x", width - 4).attr("y", middle + 4).attr("text-anchor", "end")
         .text(isNarrow(width) ? `${shortNumber(r.entry.ratio)} ${signOf[worth]}` : `${shortNumber(r.entry.ratio)} ${r.entry.verdict}`);
    });
    const y = bottomAxis(svg, d3.scaleLinear(x.domain(), x.range()), frame.bottom, "", 0);
    svg.selectAll(".axis").remove();
    const ticks = ratioTicks(x.domain());
    const axis = d3.axisBottom(x).tickValues(ticks).tickFormat(shortNumber).tickSizeOuter(0);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${frame.bottom})`).call(axis);
    svg.append("text").attr("class", "title").attr("x", (frame.x0 + frame.x1) / 2).attr("y", frame.bottom + 32)
        .attr("text-anchor", "middle").text("over the baseline");
    return {height: y, said};
  },
});

// From end to end; an open end has an arrow at the edge of the axis.
function whisker(svg, x, [low, high], middle, frame) {
  const from = low === null ? frame.x0 : x(low), to = high === null ? frame.x1 : x(high), head = 5;
  svg.append("line").attr("class", "whisker").attr("x1", from).attr("x2", to).attr("y1", middle).attr("y2", middle);
  const arrow = (tip, back) => svg.append("path").attr("class", "whisker open").attr("fill", "none")
      .attr("d", `M${tip + back},${middle - head}L${tip},${middle}L${tip + back},${middle + head}`);
  if (low === null) arrow(from, head);
  if (high === null) arrow(to, -head);
}

// A logarithmic axis has few ticks within a factor of two: these are 1 and what lies evenly beside it.
function ratioTicks([low, high]) {
  if (high / low > 8) return d3.scaleLog([low, high], [0, 1]).ticks(5).filter((t) => /^[125]/.test(t.toExponential()));
  return d3.ticks(low, high, 5).concat(1).filter((t, i, all) => all.indexOf(t) === i);
}
