// What happened, the latest first.
import { el, keep, setAttribute, setText, show } from "./dom.js";
import { podLink } from "./pods.js";
import { now, store } from "./store.js";
import { age } from "./text.js";

export function eventsView() {
  let words = "";
  let badOnly = false;
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events", input: () => { words = filter.value; update(); } });
  const bad = el("button", { class: "tally busy", "aria-pressed": "false", click: () => { badOnly = !badOnly; update(); } }, "Warnings only");
  const table = eventTable({});
  const node = el("div", { class: "view" }, el("h1", { tabindex: "-1", class: "unseen" }, "Events"),
    el("div", { class: "tools" }, el("div", { class: "tallies" }, bad), filter), table.node);

  function update() {
    setAttribute(bad, "aria-pressed", String(badOnly));
    const wanted = words.toLowerCase().split(/\s+/);
    const list = [...store.events.values()].reverse()
      .filter((e) => (!badOnly || e.bad) && wanted.every((w) => `${e.reason} ${e.pod || "node"} ${e.text}`.toLowerCase().includes(w)));
    table.update(list);
  }
  return { node, update, title: () => "Events" };
}

// eventTable lists events; those of one pod do not say whose they are.
export function eventTable({ ofPod }) {
  const list = el("ul", { class: "events" });
  const none = el("p", { class: "quiet none" }, "Nothing has happened lately.");
  return {
    node: el("div", {}, list, none),
    update(events) {
      keep(list, events, (e) => e.id, (e) => makeEvent(e, ofPod), updateEvent);
      for (const item of list.children) setText(item.when, when(item.entry.item));
      show(none, events.length === 0);
    },
  };
}

function makeEvent(e, ofPod) {
  const text = el("span", { class: "text" });
  const at = el("span", { class: "when quiet" });
  const item = el("li", { class: e.bad ? "busy" : "" }, at,
    el("span", { class: "reason" }, el("span", { class: `dot ${e.bad ? "busy" : "unlit"}`, "aria-hidden": "true" }), e.reason,
      e.bad ? el("span", { class: "unseen" }, " (warning)") : ""),
    ofPod ? el("span", { class: "whose quiet" }, e.container || "") : whose(e), text);
  item.text = text;
  item.when = at;
  return item;
}

function updateEvent(item, e) {
  setText(item.text, e.text);
}

function whose(e) {
  if (!e.pod) return el("span", { class: "whose quiet" }, "node");
  const [namespace, name] = e.pod.split("/");
  return el("span", { class: "whose" }, el("a", { href: podLink({ namespace, name }) }, name), e.container ? el("span", { class: "quiet" }, ` ${e.container}`) : "");
}

function when(e) {
  const last = age(e.last, now());
  return e.count > 1 ? `${last} (${e.count} times in ${age(e.first, now())})` : last;
}
