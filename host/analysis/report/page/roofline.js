// The rate of a step over how many operations it makes for each byte, below what the device could do.
function ceilingsOf(list) {
  const used = new Set(list.flatMap((c) => c.roofline.peaks));
  const all = data.peaks.filter((peak, i) => used.has(i) && (peak.gflop_per_s > 0 || peak.gbytes_per_s > 0));
  // Measured peaks differ a little from case to case: of these the highest stands for all.
  const measured = all.filter((peak) => !peak.stated), stated = all.filter((peak) => peak.stated);
  const highest = (key) => d3.max(measured, (peak) => peak[key]);
  const one = measured.length
    ? [{stated: false, gflop_per_s: highest("gflop_per_s"), gbytes_per_s: highest("gbytes_per_s"),
        text: measured.length === 1 ? measured[0].text : `measured: the highest of ${measured.length} peaks found by trial`}]
    : [];
  return [...stated, ...one];
}

addPlot({
  name: "roofline",
  title: "Roofline",
  about: "Operations in a second over operations for each byte, as the workload counts both, or of each kernel as Nsight Compute has. " +
         "Lines are ceilings: what the device's maker states, and what was found by trial.",
  draw(svg, width, list) {
    const hasKernels = (c) => c.roofline.kernels && c.roofline.kernels.length > 0;
    const counted = list.filter((c) => c.roofline && (c.roofline.gflop_per_s > 0 || hasKernels(c)));
    const all = counted.filter((c) => c.roofline.flops_per_byte > 0 || hasKernels(c));
    if (!all.length)
      return {nothing: counted.length ? "the workload counts its operations, but not its bytes" : "no case counts its operations"};
    const names = shortNames(all, 120);
    const points = all.flatMap((c, i) => !hasKernels(c)
      ? [{c, name: names[i], title: c.name, x: c.roofline.flops_per_byte, y: c.roofline.gflop_per_s}]
      : c.roofline.kernels.map(([kernel, y, x]) =>
          ({c, name: all.length > 1 ? `${names[i]}: ${kernel}` : kernel, title: `${c.name}: ${kernel}`, x, y})));
    const ceilings = ceilingsOf(all).slice(0, 6);
    const ridges = ceilings.filter((p) => p.gflop_per_s > 0 && p.gbytes_per_s > 0).map((p) => p.gflop_per_s / p.gbytes_per_s);
    const xs = logDomain(points.map((p) => p.x).concat(ridges));
    const x = d3.scaleLog([xs[0] / 2, xs[1] * 2], [66, width - 16]);
    const roof = (peak, at) => Math.min(peak.gflop_per_s > 0 ? peak.gflop_per_s : Infinity, peak.gbytes_per_s > 0 ? peak.gbytes_per_s * at : Infinity);
    const top = legend(svg, ceilings.map((p) => p.text), width, 2, (g, i, lx, ly) =>
      g.append("line").attr("class", `roof l${i + 1}${ceilings[i].stated ? "" : " broken"}`).attr("x1", lx - 6).attr("x2", lx + 8)
          .attr("y1", ly).attr("y2", ly)) + 24;
    const height = isNarrow(width) ? 260 : 360;
    const values = points.map((p) => p.y).concat(ceilings.map((p) => roof(p, x.domain()[1])).filter(Number.isFinite));
    const lowest = d3.min(points, (p) => p.y);
    const y = d3.scaleLog([lowest / 3, d3.max(values) * 1.5], [top + height, top]);
    grid(svg, x, top, top + height, 4);
    leftAxis(svg, y, 64, "GFLOP/s", 4);
    svg.append("clipPath").attr("id", "roof").append("rect").attr("x", 64).attr("y", top).attr("width", width - 78).attr("height", height);
    ceilings.forEach((peak, i) => {
      const ridge = peak.gflop_per_s > 0 && peak.gbytes_per_s > 0 ? peak.gflop_per_s / peak.gbytes_per_s : null;
      const stops = [x.domain()[0], ...(ridge ? [ridge] : []), x.domain()[1]].sort((a, b) => a - b);
      const path = d3.line().x((at) => x(at)).y((at) => y(roof(peak, at)))(stops);
      titled(svg.append("path").attr("class", `roof l${i + 1}${peak.stated ? "" : " broken"}`).attr("clip-path", "url(#roof)")
          .attr("d", path), peak.text);
    });
    const share = (p) => {
      const peak = p.c.roofline.peaks.map((place) => data.peaks[place]).find((known) => known.stated) || data.peaks[p.c.roofline.peaks[0]];
      return peak && Number.isFinite(roof(peak, p.x)) ? `, ${shortNumber((100 * p.y) / roof(peak, p.x))}% of its ceiling` : "";
    };
    svg.append("g").selectAll("circle").data(points).join("circle").attr("class", "c0 point").attr("r", points.length > 200 ? 2.5 : 4.5)
       .attr("cx", (p) => x(p.x)).attr("cy", (p) => y(p.y))
       .append("title").text((p) => `${p.title}: ${shortNumber(p.y)} GFLOP/s at ${shortNumber(p.x)} operations a byte${share(p)}`);
    // Names as far as they do not lie on each other; pointing at one of the others shows its name, too.
    const placed = [];
    for (const p of points) {
      if (placed.length >= 24) break;
      const name = p.name, at = {x: x(p.x) + 7, y: y(p.y) + 4, width: name.length * letterWidth};
      if (at.x + at.width > width) continue;
      if (placed.some((other) => Math.abs(other.y - at.y) < 12 && at.x < other.x + other.width && other.x < at.x + at.width)) continue;
      placed.push(at);
      label(svg, at.x, at.y, name, at.width + letterWidth);
    }
    const said = ceilings.length ? "" : "The records have no ceiling of this device, neither its maker's nor one that was found by trial.";
    return {height: bottomAxis(svg, x, top + height, "operations for each byte", 5), said};
  },
});
