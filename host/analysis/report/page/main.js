// Puts the page together, or draws the one plot that was asked for.
const ownSection = new Set(["comparison", "history"]);  // beside their own words; the others stand under "Plots"
const chosenOf = new Map(plots.map((plot) => [plot.name, {}]));

function drawInto(svgElement, plot, width) {
  const svg = d3.select(svgElement);
  svg.selectAll("*").remove();
  remarks.clear();
  const drawn = plot.draw(svg, width, shownCases, chosenOf.get(plot.name));
  const height = drawn.nothing ? 0 : Math.ceil(drawn.height) + 4;
  svgElement.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svgElement.setAttribute("width", width);
  svgElement.setAttribute("height", height);
  drawn.said = [drawn.said, ...remarks].filter(Boolean).join(" ");
  svgElement.setAttribute("role", "img");
  svgElement.setAttribute("aria-label", `${plot.title}. ${plot.about}`);
  return drawn;
}

function optionsOf(control) {
  return typeof control.options === "function" ? control.options() : control.options;
}

function controlsOf(plot, redraw) {
  return (plot.controls || []).map((control) => {
    const options = optionsOf(control);
    if (options.length < 2) return null;
    const initial = control.initial ? control.initial() : options[0];
    const select = element("select", {"data-control": control.name, on: {change: (event) => {
      chosenOf.get(plot.name)[control.name] = event.target.value;
      redraw();
    }}}, options.map((option) => element("option", {value: option, selected: option === initial}, option)));
    return element("label", {}, control.name + " ", select);
  });
}

// A figure that draws itself again when its width changes or other cases are shown.
function figureOf(plot) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const more = element("figcaption", {class: "quiet"});
  let width = 0;
  let isEmpty = null;
  const redraw = () => {
    if (width < 50) return;
    const drawn = drawInto(svg, plot, width);
    isEmpty = drawn.nothing || null;
    svg.classList.toggle("empty", Boolean(drawn.nothing));
    more.textContent = drawn.nothing ? `Nothing to draw: ${drawn.nothing}.` : drawn.said || "";
  };
  const controls = controlsOf(plot, redraw).filter(Boolean);
  const figure = element("figure", {id: "plot-" + plot.name, class: "plot"}, element("h3", {}, plot.title), element("p", {class: "quiet"}, plot.about),
                         controls.length ? element("p", {class: "controls"}, controls) : null, svg, more);
  const resize = () => {
    const now = Math.floor(figure.clientWidth);
    if (now === width) return;
    width = now;
    redraw();
  };
  listeners.push(() => { if (!plot.isWhole) redraw(); });
  return {figure, resize, nothing: () => isEmpty};
}

// A plot that has nothing to draw with all cases shown is named in a line in place of a figure.
function plotSection(page, figures) {
  const section = element("section", {id: "plots"}, element("h2", {}, "Plots"));
  const grid = element("div", {class: "plots"}), left = [];
  section.append(grid);
  page.append(section);
  for (const plot of plots.filter((p) => !ownSection.has(p.name))) {
    const made = figureOf(plot);
    grid.append(made.figure);
    made.resize();
    if (made.nothing()) {
      left.push(`${plot.title.toLowerCase()} (${made.nothing()})`);
      made.figure.remove();
    } else {
      figures.push(made);
    }
  }
  if (left.length) section.append(element("p", {class: "quiet", id: "left-out"}, `Not drawn: ${left.join("; ")}.`));
}

function footer() {
  return element("footer", {class: "quiet"}, `Made by assay report. Plots by D3 ${d3.version}. The page needs no server.`);
}

// What is read first is painted before the rest is made: a table of a thousand cases takes a while.
function showPage(page) {
  const figures = [], comparison = comparisonSection(), history = historySection();
  page.append(...[headSection(), failureList(), comparison, history, runSection()].filter(Boolean));
  for (const [name, section] of [["comparison", comparison], ["history", history]]) {
    if (!section) continue;
    const made = figureOf(plots.find((plot) => plot.name === name));
    section.append(made.figure);
    made.resize();
    if (made.nothing()) made.figure.remove();
    else figures.push(made);
  }
  const rest = () => {
    page.append(tableSection());
    plotSection(page, figures);
    page.append(footer());
    new ResizeObserver(() => figures.forEach((made) => made.resize())).observe(page);
    document.documentElement.dataset.isWhole = "yes";
  };
  if (cases.length > 100) setTimeout(rest, 30);
  else rest();
}

// What the style sheet says of an element, as attributes: a picture has no style sheet.
function withOwnStyle(svg) {
  const keys = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity", "font-size", "font-weight",
                "font-family", "text-anchor"];
  const nodes = [svg, ...svg.querySelectorAll("*")].filter((node) => !["title", "clipPath"].includes(node.tagName));
  // All are asked before one is changed: what a rule says of a line depends on the class of what holds it.
  const styles = nodes.map((node) => keys.map((key) => getComputedStyle(node).getPropertyValue(key)));
  nodes.forEach((node, n) => {
    keys.forEach((key, k) => node.setAttribute(key, styles[n][k]));
    node.removeAttribute("class");
  });
}

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
const leave = (page, id, text) => page.append(element("pre", {id}, text));

// One plot with its title, left in the page for the program that has opened it.
function leavePicture(page) {
  const encode = (text) => base64(new TextEncoder().encode(text));
  const plot = plots.find((p) => p.name === data.plot), width = data.width_px;
  const inner = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const outer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  page.append(outer);
  outer.append(inner);
  const drawn = drawInto(inner, plot, width - 24);
  if (drawn.nothing) return leave(page, "refusal", encode(`${data.plot}: ${drawn.nothing}`));
  const height = Number(inner.getAttribute("height")) + 56;
  d3.select(inner).attr("x", 12).attr("y", 44);
  d3.select(outer).attr("xmlns", "http://www.w3.org/2000/svg").attr("width", width).attr("height", height)
      .attr("viewBox", `0 0 ${width} ${height}`);
  d3.select(outer).insert("rect", "svg").attr("class", "paper").attr("width", width).attr("height", height);
  d3.select(outer).insert("text", "svg").attr("class", "heading").attr("x", 16).attr("y", 27).text(`${plot.title}: ${data.title}`);
  withOwnStyle(outer);
  // XML has no place for these; a name in a record may have them.
  const walker = document.createTreeWalker(outer, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
  const text = new XMLSerializer().serializeToString(outer);
  if (data.picture === "svg") return leave(page, "picture", encode(text));
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", {width: 2 * width, height: 2 * height});
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    leave(page, "picture", canvas.toDataURL("image/png").split(",")[1]);
  };
  image.onerror = () => leave(page, "refusal", encode(`${data.plot}: the browser cannot read what it has drawn`));
  image.src = "data:image/svg+xml;base64," + encode(text);
}

if (data.dark) document.documentElement.classList.add("dark");
if (data.plot) leavePicture(document.getElementById("page"));
else showPage(document.getElementById("page"));
