// The machine: what is left of it.
import { el, keep, setAttribute, setText, show } from "./dom.js";
import { plot } from "./plot.js";
import { series, store } from "./store.js";
import { bytes, cores, count } from "./text.js";

export function nodeView() {
  const facts = el("p", { class: "quiet" });
  const cpu = plot({ title: "CPU", value: "cpu", least: 0.1, format: cores });
  const memory = plot({ title: "Memory", value: "memory", least: 64 << 20, format: bytes });
  const plots = el("div", { class: "plots" }, cpu.node, memory.node);
  const none = el("p", { class: "quiet none" });
  const disks = el("div", { class: "cards" });
  const pressures = el("ul", { class: "conditions" });
  const pressurePart = el("section", {}, el("h2", {}, "Pressure"), pressures);
  const diskPart = el("section", {}, el("h2", {}, "Disks"), disks);
  const name = el("h1", { tabindex: "-1" }, "Node");
  const node = el("div", { class: "view" }, name, facts, el("div", { class: "parts" }, none, pressurePart, plots, diskPart));

  function update() {
    const { node: known, usage } = store;
    if (known) {
      setText(name, known.name);
      setText(facts, [known.version && `podkeeper ${known.version}`, known.rootDir, known.online ? "engine answers" : "engine away",
        count(store.pods.size, "pod")].filter(Boolean).join(" · "));
    }
    keep(pressures, known?.conditions || [], (c) => c.type, makePressure, updatePressure);
    show(pressurePart, Boolean(known?.conditions?.length));
    setText(none, store.noUsage ? `What the node uses is not known: ${store.noUsage}` : "");
    show(none, Boolean(store.noUsage));
    show(plots, usage !== null || !store.noUsage);
    cpu.update(series("node"));
    const { memory: used, free } = usage?.node || {};
    memory.update(series("node"), used !== undefined && free !== undefined ? used + free : 0);
    keep(disks, usage?.disks || [], (d) => d.name, makeDisk, updateDisk);
    show(diskPart, Boolean(usage?.disks?.length));
  }
  return { node, update, title: () => "Node" };
}

function makePressure(c) {
  const dot = el("span", { "aria-hidden": "true" });
  const text = el("span", { class: "quiet" });
  const item = el("li", {}, dot, c.type, " ", text);
  return Object.assign(item, { dot, text });
}

function updatePressure(item, c) {
  item.dot.className = `dot ${c.ok ? "good" : "bad"}`;
  setText(item.text, c.message || (c.ok ? "well" : "under pressure"));
}

function makeDisk(d) {
  const parts = [["space", el("meter", { min: 0, max: 1, "aria-label": `Space used: ${d.name}` }), el("span")],
    ["inodes", el("meter", { min: 0, max: 1, "aria-label": `Inodes used: ${d.name}` }), el("span")]];
  const rows = parts.map(([label, meter, text]) => el("div", { class: "meter" }, el("span", { class: "quiet" }, label), meter, text));
  const card = el("article", { class: "card", "aria-label": `Disk of ${d.name}` }, el("h3", {}, d.name), rows);
  return Object.assign(card, { parts, rows });
}

function updateDisk(card, d) {
  fill(card, 0, d.free, d.size, bytes);
  fill(card, 1, d.inodesFree, d.inodes, (n) => n.toLocaleString());
}

function fill(card, i, free, size, format) {
  const [, meter, text] = card.parts[i];
  show(card.rows[i], Boolean(size));
  if (!size) return;
  const used = (size - free) / size;
  setAttribute(meter, "value", used.toFixed(3));
  setAttribute(meter, "class", used > 0.9 ? "bad" : used > 0.8 ? "busy" : "good");
  setText(text, `${format(free)} of ${format(size)} free`);
}
