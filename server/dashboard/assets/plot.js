// Lines over time, drawn as SVG that stretches with what it is in.
import { el, setAttribute, setText, show, svg } from "./dom.js";
import { now } from "./store.js";

const width = 300;
const height = 60;
// Two points further apart than this have a gap between them.
const gap = 20000;
const minute = 60000;

// begin is where a plot begins that shows at most so many minutes, and fewer as long
// as there is less to show.
function begin(points, until, most) {
  const have = points.length ? (until - points[0].at) / minute : 0;
  return until - minute * ([1, 2, 5, 10].find((m) => m >= have && m <= most) || most);
}

// above returns a round number that is not below n: of bytes one of two's powers, else
// 1, 2, 3 or 5 of a power of ten.
export function above(n, ofBytes) {
  if (ofBytes) return 2 ** Math.ceil(Math.log2(n));
  const power = 10 ** Math.floor(Math.log10(n));
  return power * [1, 2, 3, 5, 10].find((m) => m * power >= n * 0.999);
}

// path draws points, which have at, as a line and as the area below it.
function path(points, value, from, until, top) {
  let line = "";
  let area = "";
  let last;
  for (const point of points) {
    const v = point[value];
    if (v === undefined || v === null || point.at < from) continue;
    const x = (((point.at - from) / (until - from)) * width).toFixed(1);
    const y = (height - Math.min(1, v / top) * (height - 2) - 1).toFixed(1);
    if (last && point.at - last.at < gap) {
      line += `L${x} ${y}`;
      area += `L${x} ${y}`;
    } else {
      if (last) area += `V${height}Z`;
      line += `M${x} ${y}`;
      area += `M${x} ${height}V${y}`;
    }
    last = point;
  }
  if (last) area += `V${height}Z`;
  return { line, area };
}

function canvas(...children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...children);
}

// spark makes a small line without a scale. update takes the points.
export function spark(value, least) {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "stroke" });
  const node = canvas(area, line);
  node.classList.add("spark");
  const update = (points) => {
    const until = now();
    const top = points.reduce((most, p) => Math.max(most, p[value] || 0), least);
    const drawn = path(points, value, begin(points, until, 5), until, top);
    setAttribute(line, "d", drawn.line);
    setAttribute(area, "d", drawn.area);
  };
  return { node, update };
}

// plot makes a large one, with a scale and a line at the limit, if there is one.
// format puts values into words.
export function plot({ title, value, least, format, span = 600000 }) {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "stroke" });
  const limitLine = svg("path", { class: "limit" });
  const grid = svg("path", { class: "grid", d: `M0 ${height / 2}H${width}M0 1H${width}M0 ${height - 1}H${width}` });
  const cross = svg("path", { class: "cross" });
  const figure = el("span", { class: "figure" });
  const beside = el("span", { class: "quiet" });
  const topLabel = el("span", { class: "top" });
  const since = el("span");
  const empty = el("p", { class: "quiet empty" }, "Gathering…");
  const field = el("div", { class: "field" }, canvas(grid, area, line, limitLine, cross), topLabel, empty);
  const node = el(
    "figure", { class: "plot" },
    el("figcaption", {}, el("span", { class: "title" }, title), figure, beside),
    field,
    el("div", { class: "ends quiet", "aria-hidden": "true" }, since, el("span", {}, "now")),
  );
  let points = [];
  let limit = 0;
  let pointed; // where the pointer is, 0 to 1

  const draw = () => {
    const until = now();
    const from = begin(points, until, 15);
    const span = until - from;
    const seen = points.filter((p) => p.at >= from && p[value] !== undefined && p[value] !== null);
    const most = seen.reduce((m, p) => Math.max(m, p[value]), least);
    // The limit is in the picture where that leaves something to see of the rest.
    const withLimit = limit > 0 && limit < most * 8;
    const top = withLimit ? Math.max(limit, most) : above(most * 1.05, value === "memory");
    const drawn = path(seen, value, from, until, top * (withLimit ? 1.08 : 1));
    setAttribute(line, "d", drawn.line);
    setAttribute(area, "d", drawn.area);
    setAttribute(limitLine, "d", withLimit ? `M0 ${(height - (limit / top / 1.08) * (height - 2) - 1).toFixed(1)}H${width}` : "");
    setText(since, `${Math.round(span / minute)} min ago`);
    setText(topLabel, seen.length ? format(top) : "");
    topLabel.classList.toggle("limited", withLimit);
    show(empty, seen.length < 2);
    let shown = seen.at(-1);
    let when = "";
    if (pointed !== undefined && seen.length) {
      const at = from + pointed * span;
      shown = seen.reduce((a, b) => (Math.abs(b.at - at) < Math.abs(a.at - at) ? b : a));
      when = `${Math.round((until - shown.at) / 1000)} s ago`;
    }
    setAttribute(cross, "d", when ? `M${((shown.at - from) / span) * width} 0V${height}` : "");
    setText(figure, shown ? format(shown[value]) : "–");
    setText(beside, when || (limit ? `of ${format(limit)}` : ""));
  };
  field.addEventListener("pointermove", (event) => {
    const box = field.getBoundingClientRect();
    pointed = (event.clientX - box.left) / box.width;
    draw();
  });
  field.addEventListener("pointerleave", () => {
    pointed = undefined;
    draw();
  });
  const update = (newPoints, newLimit = 0) => {
    points = newPoints;
    limit = newLimit;
    draw();
  };
  return { node, update };
}
