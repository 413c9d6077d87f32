// Steps over time, a panel for each case, and how they are spread, a row for each case.
function stepPoints(steps) {
  return steps.ms.map((ms, i) => [steps.at ? steps.at[i] + 1 : i + 1, ms]);
}

addPlot({
  name: "steps",
  title: "Steps over time",
  about: "The time of each measured step in ms. Each panel has its own axis, which does not begin at 0; the broken line is the median.",
  draw(svg, width, list) {
    const all = list.filter((c) => c.steps && c.steps.ms && c.steps.ms.length);
    if (!all.length) return {nothing: "no case has kept the times of its steps"};
    const columns = Math.max(1, Math.floor(width / 300));
    const {list: shown, said} = firstOf(all, isNarrow(width) ? 6 : 12);
    const panelWidth = width / columns, panelHeight = 156;
    const names = shortNames(shown, panelWidth - 24);
    let isThinned = false;
    shown.forEach((c, i) => {
      const g = svg.append("g").attr("transform", `translate(${(i % columns) * panelWidth},${Math.floor(i / columns) * panelHeight})`);
      const points = stepPoints(c.steps), last = Math.max(2, c.steps.n);
      isThinned = isThinned || Boolean(c.steps.at);
      const x = d3.scaleLinear([1, last], [52, panelWidth - 14]);
      const y = d3.scaleLinear(d3.extent(points, (p) => p[1]), [panelHeight - 30, 30]).nice(3);
      if (y.domain()[0] === y.domain()[1]) y.domain([y.domain()[0] * 0.99, y.domain()[1] * 1.01 || 1]);
      label(g, 6, 14, names[i], panelWidth - 16, "label strong").select("title").text(c.name);
      leftAxis(g, y, 50, "", 3);
      const steps = d3.axisBottom(x).ticks(4).tickSizeOuter(0).tickFormat((t) => (Number.isInteger(t) ? shortTick(t) : ""));
      g.append("g").attr("class", "axis").attr("transform", `translate(0,${panelHeight - 28})`).call(steps);
      const median = c.steps.quantiles[3];
      g.append("line").attr("class", "median").attr("x1", x(1)).attr("x2", x(last)).attr("y1", y(median)).attr("y2", y(median));
      g.append("path").attr("class", "line l0").attr("d", d3.line().x((p) => x(p[0])).y((p) => y(p[1]))(points));
      if (points.length <= 64)
        g.selectAll("circle").data(points).join("circle").attr("class", "c0").attr("r", 2).attr("cx", (p) => x(p[0]))
            .attr("cy", (p) => y(p[1]))
         .append("title").text((p) => `step ${p[0]}: ${shortNumber(p[1])} ms`);
    });
    const thinning = isThinned
      ? ` Of cases with more than ${data.samples_of_each_case} steps the shortest and the longest of each stretch are drawn, ` +
        "so that no stall is lost; " +
        "the record has all of them."
      : "";
    return {height: Math.ceil(shown.length / columns) * panelHeight, said: said + thinning};
  },
});

addPlot({
  name: "distribution",
  title: "Distribution of the steps",
  about: "All steps of a case over its own median: the shape counts them, the box holds the middle half, the line the middle 90%, " +
         "a triangle stands where some lie beyond the axis.",
  draw(svg, width, list) {
    const all = list.filter((c) => c.steps && c.steps.quantiles && c.steps.quantiles[3] > 0 && c.steps.n > 1);
    if (!all.length) return {nothing: "no case has kept the times of several steps"};
    const {list: shown, said} = firstOf(all, isNarrow(width) ? 20 : 40);
    const over = (c) => c.steps.quantiles.map((q) => (q / c.steps.quantiles[3] - 1) * 100);
    const spread = shown.map(over);
    const outer = d3.extent(spread.flatMap((q) => [q[0], q[6]]));
    // A few restless cases must not press all others into a line.
    const usual = (k) => d3.quantile(spread.map((q) => Math.abs(q[k])).sort(d3.ascending), 0.8);
    const inner = [-usual(1), usual(5)], pad = Math.max((inner[1] - inner[0]) * 0.6, 0.2);
    const frame = rowFrame(svg, width, shown, {right: 78, row: 28});
    const x = d3.scaleLinear([Math.max(outer[0], inner[0] - pad), Math.min(outer[1], inner[1] + pad)], [frame.x0, frame.x1]).nice();
    grid(svg, x, 4, frame.bottom);
    const [low, high] = x.domain(), clip = (v) => Math.min(high, Math.max(low, v));
    shown.forEach((c, i) => {
      const q = spread[i], middle = frame.middle(i), counts = c.steps.counts, most = d3.max(counts);
      const edge = (k) => q[0] + ((q[6] - q[0]) * k) / counts.length;
      counts.forEach((count, k) => {
        const from = Math.max(low, edge(k)), to = Math.min(high, edge(k + 1));
        if (!count || to < from) return;
        const h = Math.max(1, (count / most) * 20);
        svg.append("rect").attr("class", "c0 pale").attr("x", x(from)).attr("width", Math.max(1, x(to) - x(from)))
            .attr("y", middle + 8 - h).attr("height", h);
      });
      svg.append("line").attr("class", "whisker").attr("x1", x(clip(q[1]))).attr("x2", x(clip(q[5]))).attr("y1", middle).attr("y2", middle);
      const box = svg.append("rect").attr("class", "box").attr("x", x(clip(q[2])))
          .attr("width", Math.max(1, x(clip(q[4])) - x(clip(q[2])))).attr("y", middle - 5).attr("height", 10);
      const [shortest, , , median, , , longest] = c.steps.quantiles.map(shortNumber);
      titled(box, `${c.name}: median ${median} ms, ${shortest} to ${longest} ms`);
      svg.append("line").attr("class", "middle").attr("x1", x(0)).attr("x2", x(0)).attr("y1", middle - 6).attr("y2", middle + 6);
      const triangle = (at, way) => svg.append("path").attr("class", "beyond").attr("d", `M${at},${middle}l${-7 * way},-4v8z`);
      if (q[6] > high) triangle(frame.x1, 1);
      if (q[0] < low) triangle(frame.x0, -1);
      svg.append("text").attr("class", "label").attr("x", width - 4).attr("y", middle + 4).attr("text-anchor", "end")
          .text(`${shortNumber(c.steps.quantiles[3])} ms`);
    });
    const bottom = bottomAxis(svg, x, frame.bottom, "percent away from the case's median");
    return {height: bottom, said};
  },
});
