// All pods, those that need somebody first.
import { el, keep, setAttribute, setText, show } from "./dom.js";
import { spark } from "./plot.js";
import { now, podKey, series, store } from "./store.js";
import { age, bytes, cores, count } from "./text.js";

// How they can be put in order. Those that are equal are by name.
const orders = {
  status: (pod) => (pod.tone === "bad" ? 0 : 1),
  name: () => 0,
  restarts: (pod) => -pod.restarts,
  age: (pod) => -pod.created,
  cpu: (pod) => -(series(podKey(pod)).at(-1)?.cpu || 0),
  memory: (pod) => -(series(podKey(pod)).at(-1)?.memory || 0),
};

const columns = [
  ["name", "Pod"], ["status", "Status"], ["ready", "Ready"], ["restarts", "Restarts"], ["age", "Age"], ["cpu", "CPU"], ["memory", "Memory"],
];

const tones = [["bad", "in trouble"], ["busy", "not ready"], ["good", "running"], ["faint", "finished"]];

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byName = (a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.id, b.id);

// What was chosen holds while other views are looked at.
let order = "status";
let tone = "";
let words = "";

export function podsView() {
  const filter = el("input", {
    type: "search", placeholder: "Filter", "aria-label": "Filter pods", value: words, input: () => { words = filter.value; update(); },
  });
  const tallies = tones.map(([name, label]) => {
    const number = el("strong");
    const node = el("button", {
      class: `tally ${name}`, "aria-pressed": "false", click: () => { tone = tone === name ? "" : name; update(); },
    }, number, ` ${label}`);
    return { name, node, number };
  });
  const heads = columns.map(([name, label]) => {
    if (!orders[name]) return el("th", { role: "columnheader", class: name }, label);
    return el("th", { role: "columnheader", class: name, "data-order": name },
      el("button", { class: "plain", click: () => { order = name; update(); } }, label));
  });
  const body = el("tbody", { role: "rowgroup" });
  const table = el("table", { role: "table", class: "pods", "aria-label": "Pods" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  const none = el("p", { class: "quiet none" });
  const sort = el("select", { "aria-label": "Order", class: "narrow", change: () => { order = sort.value; update(); } },
    columns.filter(([name]) => orders[name]).map(([name, label]) => el("option", { value: name }, `by ${label.toLowerCase()}`)));
  const node = el("div", { class: "view" },
    el("h1", { tabindex: "-1", class: "unseen" }, "Pods"),
    el("div", { class: "tools" }, el("div", { class: "tallies", role: "group", "aria-label": "By status" }, tallies.map((t) => t.node)), sort, filter),
    table, none);

  function update() {
    const all = [...store.pods.values()];
    for (const t of tallies) {
      const n = all.filter((pod) => pod.tone === t.name).length;
      setText(t.number, String(n));
      setAttribute(t.node, "aria-pressed", String(tone === t.name));
      show(t.node, n > 0 || tone === t.name);
    }
    for (const head of heads) if (head.dataset.order) setAttribute(head, "aria-sort", head.dataset.order === order ? "ascending" : "none");
    sort.value = order;
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const list = all
      .filter((pod) => (!tone || pod.tone === tone) && (!wanted.length || wanted.every((word) => searchText(pod).includes(word))))
      .map((pod) => [orders[order](pod), pod])
      .sort(([a, p], [b, q]) => a - b || byName(p, q))
      .map(([, pod]) => pod);
    keep(body, list, (pod) => pod.id, makeRow, updateRow);
    for (const row of body.children) refresh(row);
    show(table, list.length > 0);
    setText(none, nothing(all.length, list.length));
    show(none, list.length === 0);
  }

  return {
    node, update, title: () => "Pods",
    // Back from a pod, its row is where one was.
    arrive(from) {
      const link = from.key && [...body.querySelectorAll("a.name")].find((a) => a.dataset.key === from.key());
      (link || node.querySelector("h1")).focus();
    },
    move(step) {
      const links = [...body.querySelectorAll("a.name")];
      const at = links.indexOf(document.activeElement);
      links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
    },
  };
}

function nothing(all, shown) {
  if (!store.node) return "Looking…";
  if (all && !shown) return "No pod is like that.";
  return "No pods yet. Put a manifest into a folder that the agent reads: see Sources.";
}

const searchText = (pod) => `${pod.namespace}/${pod.name} ${pod.status} ${pod.origin || ""} ${pod.containers.map((c) => c.image).join(" ")}`.toLowerCase();

function makeRow(pod) {
  const parts = {
    dot: el("span", { class: "dot", "aria-hidden": "true" }),
    status: el("span", { class: "status" }),
    why: el("p", { class: "why" }),
    ready: el("td", { role: "cell", class: "ready", "data-label": "ready" }),
    restarts: el("td", { role: "cell", class: "restarts", "data-label": "restarts" }),
    age: el("td", { role: "cell", class: "age" }),
    cpu: spark("cpu", 0.02), memory: spark("memory", 16 << 20),
    cpuText: el("span", { class: "figure" }), memoryText: el("span", { class: "figure" }),
  };
  const key = podKey(pod);
  const link = el("a", { class: "name", href: podLink(pod), "data-key": key }, pod.name);
  const row = el("tr", { role: "row" },
    el("td", { role: "cell", class: "name" }, el("div", {}, link, pod.namespace === "default" ? "" : el("span", { class: "quiet" }, ` ${pod.namespace}`)), parts.why),
    el("td", { role: "cell", class: "status" }, parts.dot, parts.status),
    parts.ready, parts.restarts, parts.age,
    el("td", { role: "cell", class: "cpu", "data-label": "CPU" }, parts.cpu.node, parts.cpuText),
    el("td", { role: "cell", class: "memory", "data-label": "memory" }, parts.memory.node, parts.memoryText));
  row.addEventListener("click", (event) => {
    if (!event.target.closest("a") && !getSelection().toString()) location.hash = podLink(pod);
  });
  row.parts = parts;
  row.key = key;
  return row;
}

function updateRow(row, pod) {
  const { parts } = row;
  setAttribute(row, "class", pod.tone);
  setAttribute(parts.dot, "class", `dot ${pod.tone}`);
  setText(parts.status, pod.status);
  setText(parts.why, pod.why || "");
  show(parts.why, Boolean(pod.why) && pod.tone !== "faint");
  setText(parts.ready, pod.ready);
  setText(parts.restarts, String(pod.restarts));
  parts.restarts.classList.toggle("zero", pod.restarts === 0);
}

// refresh is for what changes by itself.
function refresh(row) {
  const { parts } = row;
  setText(parts.age, age(row.entry.item.created, now()));
  const points = series(row.key);
  const last = points.at(-1);
  if (row.drawn === last && row.drawnAt > now() - 15000) return;
  row.drawn = last;
  row.drawnAt = now();
  parts.cpu.update(points);
  parts.memory.update(points);
  setText(parts.cpuText, cores(last?.cpu));
  setText(parts.memoryText, bytes(last?.memory));
}

export const podLink = (pod) => `#/pod/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`;
