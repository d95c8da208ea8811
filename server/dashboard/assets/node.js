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
  const pressurePart = el("section", {}, el("h2", {}, "Conditions"), pressures);
  const diskPart = el("section", {}, el("h2", {}, "Disks"), disks);
  const name = el("h1", { tabindex: "-1" }, "Node");
  const node = el("div", { class: "view" }, name, facts, el("div", { class: "parts" }, none, pressurePart, plots, diskPart));

  function update() {
    const { node: known, usage, machine } = store;
    if (known) {
      setText(name, known.name);
      setText(facts, [known.version && `podkeeper ${known.version}`, known.rootDir, known.online ? "engine answers" : "engine away",
        count(store.pods.size, "pod"), machine?.system].filter(Boolean).join(" · "));
    }
    keep(pressures, machine?.conditions || [], (c) => c.type, makePressure, updatePressure);
    show(pressurePart, Boolean(machine?.conditions.length));
    setText(none, store.noUsage ? `What the node uses is not known: ${store.noUsage}` : "");
    show(none, Boolean(store.noUsage));
    show(plots, usage !== null || !store.noUsage);
    cpu.update(series("node"), machine?.cpus);
    memory.update(series("node"), machine?.memory);
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
  setText(item.text, c.message || (c.ok ? "well" : "not well"));
}

function makeDisk(d) {
  const gauges = ["space", "inodes"].map((label) => {
    const bar = el("div");
    const gauge = el("div", { class: "gauge", role: "meter", "aria-label": `${label} used on ${d.name}`, "aria-valuemin": 0, "aria-valuemax": 100 }, bar);
    const text = el("span");
    return { row: el("div", { class: "meter" }, el("span", { class: "quiet" }, label), gauge, text), gauge, bar, text };
  });
  const card = el("article", { class: "card", "aria-label": `Disk of ${d.name}` }, el("h3", {}, d.name), gauges.map((g) => g.row));
  return Object.assign(card, { gauges });
}

function updateDisk(card, d) {
  fill(card.gauges[0], d.free, d.size, `${bytes(d.free)} of ${bytes(d.size)} free`);
  fill(card.gauges[1], d.inodesFree, d.inodes, `${Math.floor((100 * d.inodesFree) / d.inodes)}% free`);
}

function fill({ row, gauge, bar, text }, free, size, words) {
  show(row, Boolean(size));
  if (!size) return;
  const used = Math.round((100 * (size - free)) / size);
  setAttribute(gauge, "aria-valuenow", String(used));
  setAttribute(gauge, "class", `gauge ${used > 90 ? "bad" : used > 80 ? "busy" : "good"}`);
  bar.style.width = `${used}%`;
  setText(text, words);
}
