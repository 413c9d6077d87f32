// Each rank's step beside those of the others, and who is waited for.
addPlot({
  name: "ranks",
  title: "Ranks and stragglers",
  about: "The mean step of each rank, with a line from its shortest to its longest. Where a workload reports how long a rank " +
         "waited for others, transfers included, a square is the step without it, and the rank that waited least is marked: " +
         "the others waited for it. Otherwise the one that was slowest most often is marked.",
  draw(svg, width, list) {
    const all = list.filter((c) => c.ranks && c.ranks.list.some((rank) => rank.ms));
    if (!all.length) return {nothing: "no case ran on several ranks to its end"};
    const rows = all.flatMap((c) => c.ranks.list.filter((rank) => rank.ms).map((rank) => ({c, rank,
      isStraggler: c.ranks.waited_for !== undefined ? c.ranks.waited_for === rank.rank
                                                    : c.ranks.straggler && c.ranks.straggler[0] === rank.rank,
      work: rank.wait === undefined ? undefined : Math.max(rank.ms[0] - rank.wait, 0),
      name: `${c.name}, rank ${rank.rank}${rank.host ? " on " + rank.host : ""}`})));
    const {list: shown, said} = firstOf(rows, 64, "rank");
    const cases = shortNames(shown.map((r) => r.c), width * 0.2);
    const names = shown.map((r, i) => `${cases[i]}, rank ${r.rank.rank}`);
    const frame = rowFrame(svg, width, shown, {row: 20, right: isNarrow(width) ? 78 : 190, names});
    const values = shown.flatMap((r) => (r.work > 0 ? [...r.rank.ms, r.work] : r.rank.ms));
    const isLog = isSpread(values, 20);
    const x = isLog ? d3.scaleLog(logDomain(values), [frame.x0, frame.x1]) : d3.scaleLinear(d3.extent(values), [frame.x0, frame.x1]).nice();
    grid(svg, x, 4, frame.bottom, 4);
    shown.forEach((r, i) => {
      const middle = frame.middle(i) - 2, [mean, low, high] = r.rank.ms;
      if (low !== null && high !== null)
        svg.append("line").attr("class", "whisker").attr("x1", x(low)).attr("x2", x(high)).attr("y1", middle).attr("y2", middle);
      if (r.work > 0) {
        svg.append("line").attr("class", "whisker").attr("x1", x(r.work)).attr("x2", x(mean)).attr("y1", middle).attr("y2", middle)
            .attr("stroke-dasharray", "2 3");
        titled(svg.append("rect").attr("class", r.isStraggler ? "c1" : "c0").attr("x", x(r.work) - 3).attr("y", middle - 3)
            .attr("width", 6).attr("height", 6),
             `${r.name}: ${shortNumber(r.work)} ms without its waits of ${shortNumber(r.rank.wait)} ms`);
      }
      titled(svg.append("circle").attr("class", r.isStraggler ? "c1" : "c0").attr("r", r.isStraggler ? 5 : 3.5).attr("cx", x(mean))
          .attr("cy", middle),
           `${r.name}: ${shortNumber(mean)} ms`);
      const why = r.work !== undefined ? `, waits ${shortNumber(r.rank.wait)}`
                  : r.isStraggler ? `, slowest in ${Math.round(r.c.ranks.straggler[1] * 100)}%` : "";
      const straggler = isNarrow(width) ? (r.isStraggler ? " ◀" : "") : why;
      svg.append("text").attr("class", r.isStraggler ? "label strong" : "label").attr("x", width - 4).attr("y", middle + 4)
          .attr("text-anchor", "end")
         .text(`${shortNumber(mean)} ms${straggler}`);
    });
    const waited = all.filter((c) => c.ranks.waited_for !== undefined).slice(0, 12)
                       .map((c) => `${c.name} rank ${c.ranks.waited_for}`);
    const spreads = all.filter((c) => c.ranks.spread !== undefined).slice(0, 12).map((c) => `${c.name} ${shortNumber(100 * c.ranks.spread)}%`);
    return {height: bottomAxis(svg, x, frame.bottom, "ms, mean of the measured steps", 4),
            said: [said, waited.length ? `The others waited for: ${waited.join(", ")}.` : "", spreads.length ? `Between the ranks' means: ${spreads.join(", ")}.` : ""].filter(Boolean).join(" ")};
  },
});
