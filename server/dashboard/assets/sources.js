// Where pods come from, and what is wrong there.
import { el, keep, setText, show } from "./dom.js";
import { podLink } from "./pods.js";
import { findPod, now, store } from "./store.js";
import { age, count } from "./text.js";

export function sourcesView() {
  const cards = el("div", { class: "parts" });
  const none = el("p", { class: "quiet none" }, "The agent has no sources.");
  const node = el("div", { class: "view" }, el("h1", { tabindex: "-1", class: "unseen" }, "Sources"), cards, none);
  function update() {
    keep(cards, store.sources, (source) => source.name, makeSource, updateSource);
    for (const card of cards.children) {
      const { read } = card.entry.item;
      setText(card.when, read ? `read ${age(read, now())} ago` : "");
    }
    show(none, store.node !== null && store.sources.length === 0);
  }
  return { node, update, title: () => "Sources" };
}

function makeSource(source) {
  const body = el("div", { class: "source-body" });
  const when = el("span", { class: "quiet" });
  const state = el("span");
  const dot = el("span", { "aria-hidden": "true" });
  const card = el("section", { class: "card source", "aria-label": source.name },
    el("h2", { class: "mono" }, source.name), el("p", { class: "state" }, dot, state, when), body);
  Object.assign(card, { body, when, state, dot });
  return card;
}

function updateSource(card, source) {
  card.dot.className = `dot ${source.tone}`;
  setText(card.state, source.state);
  card.body.replaceChildren(
    ...(source.problem ? [el("p", { class: `why ${source.tone}` }, source.problem)] : []),
    ...(source.origins || []).map(origin),
    ...(source.skipped ? [el("details", {}, el("summary", {}, `${count(source.skipped.length, "file")} skipped`),
      el("ul", { class: "mono" }, source.skipped.map((text) => el("li", {}, text))))] : []));
}

// The notes say which fields have no effect here: there can be many.
function origin(o) {
  const problems = o.problems || [];
  const notes = problems.filter((p) => p.tone === "faint");
  return el("div", { class: "origin" },
    el("p", {}, el("span", { class: "mono" }, o.name), o.stale ? el("span", { class: "tag busy" }, "last good version") : ""),
    el("p", { class: "holds" }, o.holds?.length ? o.holds.map(holding) : el("span", { class: "quiet" }, "no pods")),
    el("ul", { class: "problems" }, problems.filter((p) => p.tone !== "faint").map(problem)),
    notes.length ? el("details", {}, el("summary", {}, count(notes.length, "note")), el("ul", { class: "problems" }, notes.map(problem))) : "");
}

const severities = { bad: "error", busy: "warning", faint: "note" };

function problem(p) {
  return el("li", { class: p.tone }, el("p", {}, el("span", { class: "severity" }, severities[p.tone]), el("span", { class: "mono place" }, p.place)), el("p", {}, p.text));
}

function holding(text) {
  const [namespace, name] = text.split("/");
  if (!findPod(namespace, name)) return el("span", {}, text);
  return el("a", { href: podLink({ namespace, name }) }, namespace === "default" ? name : text);
}
