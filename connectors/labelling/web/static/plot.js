"use strict";
// Small plots.

const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => values.reduce((a, b) => Math.max(a, b));

function svg(name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function plot(lines, { width = 300, height = 104, about, low, high, format = number, ends }) {
  const all = lines.flatMap(({ points }) => points).filter(([, y]) => Number.isFinite(y));
  const frame = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": about });
  if (!all.length) {
    frame.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing to draw yet"));
    return frame;
  }
  const xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const [left, right] = [least(xs), most(xs)], [bottom, top] = [low ?? least(ys), high ?? most(ys)];
  const inner = { l: 44, r: width - 8, t: 8, b: height - 18 };
  const place = (value, from, to, a, b) => {
    const unit = Number.isFinite(to - from) ? 1 : .5;   // halves of the largest numbers have a difference
    return to === from ? (a + b) / 2 : a + (value * unit - from * unit) / (to * unit - from * unit) * (b - a);
  };
  const at = ([x, y]) => [place(x, left, right, inner.l, inner.r), place(y, bottom, top, inner.b, inner.t)].map((v) => v.toFixed(1));
  for (const [value, y] of [[top, inner.t], [bottom, inner.b]]) {
    frame.append(svg("line", { class: "axis", x1: inner.l, x2: inner.r, y1: y, y2: y }));
    if (value !== bottom || top !== bottom || y === inner.b) frame.append(svg("text", { x: inner.l - 6, y: y + 4, "text-anchor": "end" }, format(value)));
  }
  frame.append(svg("text", { x: inner.l, y: height - 3 }, ends ? ends[0] : count(left)));
  if (right !== left) frame.append(svg("text", { x: inner.r, y: height - 3, "text-anchor": "end" }, ends ? ends[1] : count(right)));
  for (const { points, style } of lines) {
    const good = points.filter(([, y]) => Number.isFinite(y));
    if (good.length === 1) {
      const [cx, cy] = at(good[0]);
      frame.append(svg("circle", { class: "dot", cx, cy, r: 3 }));
    } else if (good.length) {
      frame.append(svg("path", { class: style, d: "M" + good.map((point) => at(point).join(" ")).join("L") }));
    }
  }
  return frame;
}
