// The card of one container.
import { el, setAttribute, setText, show } from "./dom.js";
import { spark } from "./plot.js";
import { podLink } from "./pods.js";
import { now, podKey, series } from "./store.js";
import { age, bytes, cores, count } from "./text.js";

const kinds = { init: "init container", sidecar: "sidecar" };

export function makeContainer({ pod, c }) {
  const parts = {
    dot: el("span", { class: "dot", "aria-hidden": "true" }),
    state: el("span", { class: "status" }),
    since: el("span", { class: "quiet" }),
    image: el("p", { class: "mono quiet" }),
    message: el("p", { class: "why" }),
    last: el("p", { class: "quiet" }),
    cpu: spark("cpu", 0.02), memory: spark("memory", 8 << 20),
    cpuText: el("span", { class: "figure" }), memoryText: el("span", { class: "figure" }),
    more: el("dl", { class: "facts-list" }),
  };
  const node = el("article", { class: "card", "aria-label": `Container ${c.name}` },
    el("div", { class: "card-head" }, el("h3", {}, c.name, kinds[c.kind] ? el("span", { class: "tag" }, kinds[c.kind]) : ""),
      el("a", { href: `${podLink(pod)}/log/${encodeURIComponent(c.name)}`, "aria-label": `Log of ${c.name}` }, "Log")),
    el("p", { class: "state" }, parts.dot, parts.state, parts.since),
    parts.message, parts.image,
    el("div", { class: "uses" },
      el("div", {}, el("span", { class: "quiet" }, "CPU"), parts.cpu.node, parts.cpuText),
      el("div", {}, el("span", { class: "quiet" }, "Memory"), parts.memory.node, parts.memoryText)),
    parts.last,
    el("details", {}, el("summary", {}, "More"), parts.more));
  node.parts = parts;
  return node;
}

export function updateContainer(node, { pod, c }) {
  const { parts } = node;
  setAttribute(parts.dot, "class", `dot ${c.tone}`);
  setText(parts.state, c.state);
  setText(parts.since, [c.since && `for ${age(c.since, now())}`, c.restarts && count(c.restarts, "restart")].filter(Boolean).join(" · "));
  const message = c.message || c.probes?.[0] || "";
  setText(parts.message, message);
  setAttribute(parts.message, "class", `why ${c.tone}`);
  show(parts.message, message !== "");
  setText(parts.image, c.image);
  setText(parts.last, c.last ? `The attempt before ended ${age(c.lastAt, now())} ago: ${c.last}` : "");
  show(parts.last, Boolean(c.last));
  const points = series(`${podKey(pod)}/${c.name}`);
  const last = points.at(-1);
  parts.cpu.update(points);
  parts.memory.update(points);
  setText(parts.cpuText, used(cores(last?.cpu), c.cpu.limit && cores(c.cpu.limit / 1000)));
  setText(parts.memoryText, used(bytes(last?.memory), c.memory.limit && bytes(c.memory.limit)));
  if (node.shown === pod) return;
  node.shown = pod;
  parts.more.replaceChildren(...more(c));
}

const used = (figure, limit) => (limit ? `${figure} of ${limit}` : figure);

function more(c) {
  const asked = (l, format) => [l.request && `asks for ${format(l.request)}`, l.limit && `at most ${format(l.limit)}`].filter(Boolean).join(", ");
  return [
    ["CPU", asked(c.cpu, (n) => cores(n / 1000))], ["Memory", asked(c.memory, bytes)],
    ["Ports", c.ports?.join("\n")], ["Mounts", c.mounts?.join("\n")], ["Probes", c.probes?.join("\n")],
    ["Variables", c.env?.join("\n")],
  ].filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))
    .concat(c.env ? [el("p", { class: "quiet" }, "Values of variables are not shown here.")] : []);
}
