// Bars of cases: the phases of a step, memory by kind, telemetry.
function stackedBars(svg, width, shown, parts, names, scale, frame) {
  shown.forEach((c, i) => {
    let at = scale.domain()[0];
    for (const [place, value, said] of parts(c)) {
      const kind = place < 0 ? "rest" : colour(place);
      const bar = svg.append("rect").attr("class", kind).attr("x", scale(at)).attr("width", Math.max(0.5, scale(at + value) - scale(at)))
                     .attr("y", frame.y(i)).attr("height", frame.bar);
      titled(bar, `${c.name}, ${place < 0 ? "rest of the step" : names[place]}: ${said}`);
      at += value;
    }
  });
}

// The mean of the steps that have the phases: those of a separate pass, or else the measured ones.
const stepOfPhases = (c) => c.phasesOf ?? c.steps.mean;

// Beside steps that take twenty times as long, the phases of a short one could not be seen.
const isShownAsShare = (list) => {
  const means = list.filter((c) => c.phases && c.steps.mean > 0).map((c) => c.steps.mean);
  return means.length > 0 && isSpread(means, 20);
};

addPlot({
  name: "phases",
  title: "Phases of a step",
  about: "The mean time of each phase, on the device's timeline. What the step takes beside them is its rest. Where separate steps have the phases, it shows those steps.",
  controls: [{name: "as", options: ["ms", "percent of the step"], initial: () => (isShownAsShare(cases) ? "percent of the step" : "ms")}],
  draw(svg, width, list, chosen) {
    const all = list.filter((c) => c.phases && c.steps.mean > 0);
    if (!all.length) return {nothing: "no case has phases"};
    const {list: shown, said} = firstOf(all, isNarrow(width) ? 20 : 40);
    const isShare = chosen.as ? chosen.as !== "ms" : isShownAsShare(cases);
    const unit = (c) => (isShare ? 100 / stepOfPhases(c) : 1);
    const sum = (c) => d3.sum(c.phases, (p) => p[1]);
    const parts = (c) => {
      const phases = c.phases.map(([place, ms]) => [place, ms * unit(c), `${shortNumber(ms)} ms, ${shortNumber((100 * ms) / stepOfPhases(c))}% of the step`]);
      const rest = stepOfPhases(c) - sum(c);
      return rest > 0.001 * stepOfPhases(c) ? [...phases, [-1, rest * unit(c), `${shortNumber(rest)} ms`]] : phases;
    };
    const top = legend(svg, data.phases, width, 2);
    const frame = rowFrame(svg, width, shown, {top: top + 4, right: 78});
    const x = d3.scaleLinear([0, d3.max(shown, (c) => Math.max(sum(c), stepOfPhases(c)) * unit(c))], [frame.x0, frame.x1]);
    grid(svg, x, top, frame.bottom);
    stackedBars(svg, width, shown, parts, data.phases, x, frame);
    shown.forEach((c, i) => svg.append("text").attr("class", "label").attr("x", width - 4).attr("y", frame.y(i) + frame.bar - 4)
                               .attr("text-anchor", "end").text(`${shortNumber(stepOfPhases(c))} ms`));
    const bottom = bottomAxis(svg, x, frame.bottom, isShare ? "percent of the mean step" : "ms, mean of the steps");
    return {height: bottom, said};
  },
});

addPlot({
  name: "memory",
  title: "Memory by kind, against the limit",
  about: "The most that was held of each kind over the case. Peaks of different kinds need not come at one moment: the mark is the most of all together, " +
         "the diamond the most of the process. A red line is the limit, where it is near.",
  draw(svg, width, list) {
    const held = (c) => c.memory && (c.memory.kinds.length || c.memory.process);
    const all = list.filter(held);
    if (!all.length) return {nothing: "no case reports its memory"};
    const {list: shown, said} = firstOf(all, isNarrow(width) ? 20 : 40);
    const sum = (c) => d3.sum(c.memory.kinds, (k) => k[1]);
    // The process counts where its limit does, or where nothing is known by kind.
    const showsProcess = (c) => c.memory.process && (!c.memory.kinds.length || (c.memory.limit && c.memory.limit.of === "process"));
    const most = (c) => Math.max(sum(c), c.memory.total || 0, showsProcess(c) ? c.memory.process : 0);
    const against = (c) => (c.memory.limit && c.memory.limit.of === "process" ? c.memory.process : c.memory.total || c.memory.process);
    const texts = shown.map((c) => {
      const limit = c.memory.limit, most = against(c);
      const percent = limit && most ? shortNumber(Number(((100 * most) / limit.mib).toPrecision(2))) : "";
      const share = percent && `${percent}%${isNarrow(width) ? "" : ` of the ${limit.of}'s`}`;
      return [c.status === "ok" ? "" : c.status, shortTick(most || sum(c)), share].filter(Boolean).join(", ");
    });
    const top = legend(svg, data.memory_kinds, width, 2);
    const frame = rowFrame(svg, width, shown, {top: top + 4, right: d3.max(texts, (text) => text.length) * letterWidth + 16});
    const high = d3.max(shown, most), limits = shown.map((c) => (c.memory.limit ? c.memory.limit.mib : 0));
    const near = d3.max(limits) > 0 && d3.max(limits) < 4 * high;
    const x = d3.scaleLinear([0, near ? Math.max(high, d3.max(limits)) : high], [frame.x0, frame.x1]);
    grid(svg, x, top, frame.bottom);
    stackedBars(svg, width, shown, (c) => c.memory.kinds.map(([place, mib]) => [place, mib, `${shortNumber(mib)} MiB`]), data.memory_kinds, x, frame);
    shown.forEach((c, i) => {
      const y = frame.y(i);
      if (c.memory.total)
        titled(svg.append("line").attr("class", "mark").attr("x1", x(c.memory.total)).attr("x2", x(c.memory.total)).attr("y1", y - 2)
            .attr("y2", y + frame.bar + 2),
             `${c.name}: ${shortNumber(c.memory.total)} MiB at most, of all kinds together`);
      if (showsProcess(c))
        titled(svg.append("path").attr("class", "mark hollow").attr("d", `M${x(c.memory.process)},${y + frame.bar / 2 - 6}l5,6l-5,6l-5,-6z`),
             `${c.name}: ${shortNumber(c.memory.process)} MiB of the process`);
      const limit = c.memory.limit;
      if (limit && x(limit.mib) <= frame.x1 + 1)
        titled(svg.append("line").attr("class", "limit").attr("x1", x(limit.mib)).attr("x2", x(limit.mib)).attr("y1", y - 3)
            .attr("y2", y + frame.bar + 3),
             `limit of the ${limit.of}: ${shortNumber(limit.mib)} MiB`);
      svg.append("text").attr("class", "label").attr("x", width - 4).attr("y", y + frame.bar - 4).attr("text-anchor", "end").text(texts[i]);
    });
    return {height: bottomAxis(svg, x, frame.bottom, "MiB"), said};
  },
});

addPlot({
  name: "telemetry",
  title: "Telemetry of the measured window",
  about: "What the device said of itself while the steps were measured: the mean, and a line from the smallest to the largest value. " +
         "A broken line is a limit of the device.",
  draw(svg, width, list) {
    const all = list.filter((c) => c.telemetry && c.telemetry.figures.length);
    if (!all.length) return {nothing: "no case has telemetry"};
    const {list: shown, said} = firstOf(all, isNarrow(width) ? 10 : 24);
    const columns = Math.max(1, Math.min(3, Math.floor(width / 380), data.telemetry.length)), panelWidth = width / columns;
    const limitOf = {"power, W": "power_limit_w", "SM clock, MHz": "max_sm_clock_mhz"};
    let row = 0, bottom = 0, lowest = 0;
    const valuesOf = (place) => shown.flatMap((c) => c.telemetry.figures.filter((f) => f[0] === place).flatMap((f) => f.slice(1)));
    const known = data.telemetry.map((name, place) => [name, place]).filter(([, place]) => valuesOf(place).length);
    // What never changes is a word, and no plot.
    const constant = known.filter(([, place]) => shown.length > 1 && new Set(valuesOf(place)).size === 1);
    const figures = known.filter((figure) => !constant.includes(figure));
    if (!figures.length) return {nothing: "all figures are the same in every case"};
    figures.forEach(([name, place], n) => {
      if (n && n % columns === 0) { row = lowest; }
      const g = svg.append("g").attr("transform", `translate(${(n % columns) * panelWidth},${row})`);
      g.append("text").attr("class", "label strong").attr("x", 4).attr("y", 14).text(name);
      const frame = rowFrame(g, panelWidth - 10, shown, {top: 24, row: 20, right: 52});
      const figure = (c) => c.telemetry.figures.find((f) => f[0] === place);
      const limits = shown.map((c) => c.telemetry[limitOf[name]]).filter(Boolean);
      const values = shown.flatMap((c) => (figure(c) ? figure(c).slice(1) : [])).concat(limits);
      const isPercent = name.endsWith("%");
      const low = isPercent || name === "power, W" ? 0 : d3.min(values) * 0.97;
      const high = isPercent ? Math.max(100, d3.max(values)) : d3.max(values) * 1.02;
      const x = d3.scaleLinear([low, high], [frame.x0, frame.x1]);
      grid(g, x, 22, frame.bottom, 4);
      for (const limit of new Set(limits)) g.append("line").attr("class", "ceiling").attr("x1", x(limit)).attr("x2", x(limit))
          .attr("y1", 20).attr("y2", frame.bottom);
      shown.forEach((c, i) => {
        const f = figure(c);
        if (!f) return;
        const middle = frame.middle(i) - 2;
        g.append("line").attr("class", "whisker").attr("x1", x(f[2])).attr("x2", x(f[3])).attr("y1", middle).attr("y2", middle);
        titled(g.append("circle").attr("class", "c0").attr("r", 3.5).attr("cx", x(f[1])).attr("cy", middle),
             `${c.name}: ${shortNumber(f[1])}, from ${shortNumber(f[2])} to ${shortNumber(f[3])}, ${plural(c.telemetry.samples || 0, "reading")}`);
        g.append("text").attr("class", "label").attr("x", panelWidth - 12).attr("y", middle + 4).attr("text-anchor", "end")
            .text(shortNumber(f[1]));
      });
      bottom = row + bottomAxis(g, x, frame.bottom, "", 4) - 8;
      lowest = Math.max(lowest, bottom);
    });
    const held = shown.flatMap((c) => c.telemetry.throttle || []);
    const throttled = tally(held, (one) => one[0]).map(([reason, count]) => {
      const most = d3.max(held.filter((one) => one[0] === reason), (one) => one[1]);
      return `${reason} in ${plural(count, "case")} (${Math.round(100 * most)}% of the time at most)`;
    });
    const same = constant.map(([name, place]) => `${name} ${shortNumber(valuesOf(place)[0])}`).join("; ");
    const sentences = [said, same && `The same throughout: ${same}.`,
                       throttled.length > 0 && `Of these cases clocks were held down by ${throttled.join(", ")}.`];
    return {height: lowest, said: sentences.filter(Boolean).join(" ")};
  },
});
