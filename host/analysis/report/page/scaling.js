// A figure over a number that was swept, with the slope of a straight line through the logarithms: y grows as x to the power
// of the slope.
function figureNames() {
  return data.columns.map((column, k) => [column.name, k]).filter(([, k]) => data.columns[k].number && !data.columns[k].input);
}

// What distinguishes the lines of the plot: axes that do not settle x by themselves (`size` settles `d_model`).
function seriesOf(list, values) {
  const keys = [];
  for (const c of list) for (const [key] of c.axes) if (!keys.includes(key)) keys.push(key);
  const axis = (c, key) => (c.axes.find((a) => a[0] === key) || ["", ""])[1];
  const telling = keys.filter((key) => {
    const seen = new Map();
    for (const c of list) {
      const place = `${c.run} ${axis(c, key)}`;  // another run may count the parameters of the same size otherwise
      const known = seen.get(place);
      if (known !== undefined && known !== values[c.id]) return true;
      seen.set(place, values[c.id]);
    }
    return false;
  });
  const varying = telling.filter((key) => new Set(list.map((c) => axis(c, key))).size > 1);
  const name = (c) => [hasSeveralRuns ? data.runs[c.run].label : "", ...varying.map((key) => `${key}=${axis(c, key)}`)].filter(Boolean)
      .join(" ");
  const groups = new Map();
  for (const c of list) {
    const key = name(c);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(c);
  }
  return [...groups];
}

// Least squares on logarithms, with the standard error where there are three points or more.
function slopeOf(points) {
  const xs = points.map((p) => Math.log(p.x)), ys = points.map((p) => Math.log(p.y)), n = points.length;
  const mx = d3.mean(xs), my = d3.mean(ys);
  const sxx = d3.sum(xs, (x) => (x - mx) ** 2);
  if (n < 2 || sxx === 0) return null;
  const slope = d3.sum(xs, (x, i) => (x - mx) * (ys[i] - my)) / sxx;
  const rest = d3.sum(xs, (x, i) => (ys[i] - my - slope * (x - mx)) ** 2);
  return {slope, error: n > 2 ? Math.sqrt(rest / (n - 2) / sxx) : null, at: (x) => Math.exp(my + slope * (Math.log(x) - mx))};
}

// A workload counts what it processes by its own name, so a rate is found by what it ends with.
function defaultFigure() {
  const names = figureNames().map(([name]) => name);
  return names.includes("step.mean_ms") ? "step.mean_ms" : names.find((name) => name.endsWith("_per_s")) || names[0];
}

// The cases that have both the figure and the number.
function casesWith(list, input, place) {
  return list.filter((c) => input.values[c.id] > 0 && shownNumber(c.cells[place]) > 0);
}
const isLine = (group, input) => new Set(group.map((c) => input.values[c.id])).size > 1;

// The first number by which some line has a slope: over another one each case is a line of one point.
function defaultInput() {
  const place = new Map(figureNames()).get(defaultFigure());
  return data.inputs.find((input) => seriesOf(casesWith(cases, input, place), input.values).some(([, group]) => isLine(group, input))) || data.inputs[0];
}

addPlot({
  name: "scaling",
  title: "Scaling",
  about: "Both axes are logarithmic. The slope s of a line says that the figure grows as the number to the power of s; ± is one standard error.",
  controls: [{name: "figure", options: () => figureNames().map(([name]) => name), initial: defaultFigure},
             {name: "over", options: () => data.inputs.map((input) => input.name), initial: () => defaultInput().name}],
  draw(svg, width, list, chosen) {
    const names = new Map(figureNames());
    const figure = names.has(chosen.figure) ? chosen.figure : defaultFigure();
    const input = data.inputs.find((i) => i.name === chosen.over) || defaultInput();
    if (!input) return {nothing: "no number differs between the cases"};
    if (!figure) return {nothing: "no case has a figure"};
    const place = names.get(figure);
    const withBoth = casesWith(list, input, place);
    const numbers = new Set(withBoth.map((c) => input.values[c.id]));
    if (numbers.size < 2) return {nothing: `fewer than two cases that are shown have ${figure} at another ${input.name}`};
    const groups = seriesOf(withBoth, input.values);
    groups.sort(([, a], [, b]) => isLine(b, input) - isLine(a, input));  // lines before single points
    const {list: shown, said} = firstOf(groups, 8, "line");
    const pointOf = (c) => ({c, x: input.values[c.id], y: shownNumber(c.cells[place])});
    const points = shown.map(([name, group]) => [name, group.map(pointOf).sort((a, b) => a.x - b.x)]);
    const all = points.flatMap(([, p]) => p);
    const fits = points.map(([, p]) => slopeOf(p));
    const ends = points.map(([, p]) => d3.extent(p, (at) => at.x));
    const onLines = fits.flatMap((fit, i) => (fit ? ends[i].map(fit.at) : []));
    const texts = points.map(([name], i) => {
      const fit = fits[i];
      const slope = !fit ? "one point" : `slope ${fit.slope.toFixed(2)}${fit.error === null ? "" : " ± " + fit.error.toFixed(2)}`;
      return name ? `${name}: ${slope}` : slope;
    });
    const top = legend(svg, texts, width, 2) + 22, height = isNarrow(width) ? 240 : 320;
    const x = d3.scaleLog(logDomain(all.map((p) => p.x)), [58, width - 16]);
    const y = d3.scaleLog(logDomain(all.map((p) => p.y).concat(onLines)), [top + height, top]);
    grid(svg, x, top, top + height, 4);
    leftAxis(svg, y, 56, figure, 4);
    points.forEach(([name, line], i) => {
      const g = svg.append("g");
      const [from, to] = ends[i];
      if (fits[i])
        g.append("line").attr("class", `fit l${i % 8}`).attr("x1", x(from)).attr("x2", x(to)).attr("y1", y(fits[i].at(from)))
            .attr("y2", y(fits[i].at(to)));
      g.selectAll("circle").data(line).join("circle").attr("class", colour(i)).attr("r", 4).attr("cx", (p) => x(p.x))
          .attr("cy", (p) => y(p.y))
       .append("title").text((p) => `${p.c.name}: ${figure} ${shortNumber(p.y)} at ${input.name} ${shortNumber(p.x)}`);
    });
    return {height: bottomAxis(svg, x, top + height, input.name, 5, numbers.size <= 8 ? [...numbers] : null), said};
  },
});
