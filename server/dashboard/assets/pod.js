// One pod: what it is and uses, its log, what happened to it.
import { actions } from "./actions.js";
import { makeContainer, updateContainer } from "./container.js";
import { el, keep, setAttribute, setText, show } from "./dom.js";
import { eventTable } from "./events.js";
import { logView } from "./log.js";
import { plot } from "./plot.js";
import { podLink } from "./pods.js";
import { eventsOf, findPod, now, series, store } from "./store.js";
import { age, bytes, cores, moment } from "./text.js";

const tabs = [["", "Overview"], ["log", "Log"], ["events", "Events"]];

export function podView(namespace, name, tab = "", container = "") {
  const key = `${namespace}/${name}`;
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  const status = el("span", { class: "status" });
  const why = el("p", { class: "why" });
  const facts = el("p", { class: "quiet facts" });
  const gone = el("p", { class: "none quiet" }, "There is no such pod any more.");
  const buttons = actions();
  const links = tabs.map(([id, label]) => el("a", { href: `${podLink({ namespace, name })}${id && "/" + id}` }, label));
  const place = el("div");
  const node = el("div", { class: "view pod" },
    el("p", { class: "crumb" }, el("a", { href: "#/" }, "All pods")),
    el("div", { class: "head" },
      el("div", {}, el("h1", { tabindex: "-1" }, name), el("p", { class: "state" }, dot, status, facts), why), buttons.node),
    gone,
    el("nav", { class: "tabs", "aria-label": "Of this pod" }, links), place);
  let part;

  // go shows another tab of the same pod.
  function go(otherNamespace, otherName, nextTab = "", nextContainer = "") {
    if (`${otherNamespace}/${otherName}` !== key) return false;
    part?.close?.();
    [tab, container] = [nextTab, nextContainer];
    part = tab === "log" ? logView({ namespace, name }, container) : tab === "events" ? podEvents(key) : overview(key);
    place.replaceChildren(part.node);
    links.forEach((link, i) => (tabs[i][0] === tab ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    return true;
  }
  go(namespace, name, tab, container);

  function update() {
    const pod = findPod(namespace, name);
    show(gone, !pod && store.node !== null);
    buttons.update(pod);
    if (pod) {
      setAttribute(dot, "class", `dot ${pod.tone}`);
      setText(status, pod.status);
      setText(facts, `${pod.ready} ready · ${pod.restarts === 1 ? "1 restart" : `${pod.restarts} restarts`} · ${age(pod.created, now())}`);
      setText(why, pod.why || "");
      setAttribute(why, "class", `why ${pod.tone}`);
      show(why, Boolean(pod.why));
    }
    part.update(pod);
  }

  return { node, update, go, title: () => name, key: () => key, close: () => part?.close?.() };
}

function podEvents(key) {
  const table = eventTable({ ofPod: true });
  return { node: table.node, update: () => table.update(eventsOf(key)) };
}

function overview(key) {
  const cpu = plot({ title: "CPU", value: "cpu", least: 0.01, format: cores });
  const memory = plot({ title: "Memory", value: "memory", least: 4 << 20, format: bytes });
  const plots = el("div", { class: "plots" }, cpu.node, memory.node);
  const containers = el("div", { class: "cards" });
  const notes = el("ul", { class: "notes" });
  const steps = el("ul", { class: "mono" });
  const stepsPart = el("section", {}, el("h2", {}, "What is to be done now"), steps);
  const conditions = el("ul", { class: "conditions" });
  const details = el("dl", { class: "facts-list" });
  const recent = eventTable({ ofPod: true });
  const node = el("div", { class: "parts" }, notes, plots,
    el("section", {}, el("h2", {}, "Containers"), containers), stepsPart,
    el("section", {}, el("h2", {}, "Latest events"), recent.node),
    el("div", { class: "two" },
      el("section", {}, el("h2", {}, "Conditions"), conditions),
      el("section", {}, el("h2", {}, "The pod"), details)));
  let drawn;

  function update(pod) {
    show(plots, store.usage !== null || !store.noUsage);
    if (!pod) return;
    const sum = (list) => (list.length && list.every((n) => n > 0) ? list.reduce((a, b) => a + b, 0) : 0);
    const running = pod.containers.filter((c) => c.kind !== "init");
    cpu.update(series(key), sum(running.map((c) => c.cpu.limit || 0)) / 1000);
    memory.update(series(key), sum(running.map((c) => c.memory.limit || 0)));
    keep(containers, pod.containers.map((c) => ({ pod, c })), ({ c }) => c.name, makeContainer, updateContainer);
    recent.update(eventsOf(key).slice(0, 5));
    if (drawn === pod) return;
    drawn = pod;
    texts(notes, pod.notes);
    texts(steps, pod.steps);
    show(stepsPart, Boolean(pod.steps));
    conditions.replaceChildren(...(pod.conditions || []).map((c) =>
      el("li", {}, el("span", { class: `dot ${c.ok ? "good" : "busy"}`, "aria-hidden": "true" }), c.type,
        el("span", { class: "unseen" }, c.ok ? " holds" : " does not hold"), el("span", { class: "quiet" }, !c.ok && c.message ? ` ${c.message}` : ""))));
    details.replaceChildren(...facts(pod));
  }
  return { node, update };
}

function texts(list, items) {
  list.replaceChildren(...(items || []).map((text) => el("li", {}, text)));
  show(list, Boolean(items?.length));
}

function facts(pod) {
  const labels = Object.entries(pod.labels || {}).map(([name, value]) => `${name}=${value}`);
  return [
    ["Namespace", pod.namespace], ["From", pod.origin], ["Address", pod.ip], ["Since", pod.created && moment(pod.created)],
    ["QoS class", pod.qos], ["Restart policy", pod.restartPolicy], ["Priority", pod.priority],
    ["Labels", labels.join("\n")], ["Volumes", (pod.volumes || []).join("\n")],
  ].filter(([, value]) => value !== undefined && value !== "" && value !== 0)
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { class: name === "From" ? "mono" : undefined }, String(value))));
}
