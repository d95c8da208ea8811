// What a container writes, as it writes it.
import { openLog } from "./ask.js";
import { el, keep, setAttribute, setText, show } from "./dom.js";
import { podLink } from "./pods.js";
import { findPod, store } from "./store.js";

const tail = 500;
const retry = 1000;
// More lines than this are not kept, longer ones are cut.
const maxLines = 5000;
const maxLine = 8000;
// Codes that colour a terminal, and what else moves its cursor.
const escapes = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])|[\u0000-\u0008\u000b-\u001f\u007f]/g;

// What was chosen holds for the next log too.
const chosen = { timestamps: false, wrap: true };

export function logView(at, wanted) {
  let container = wanted;
  let previous = false;
  let words = "";
  let attempt = null; // what of the pod says that it is the same attempt
  let open = null; // the AbortController of what is read
  let waiting = []; // lines for the next frame

  const names = el("nav", { class: "choices", "aria-label": "Containers" });
  const box = el("div", { class: "log", role: "log", "aria-live": "off", "aria-label": "Log", tabindex: "0" });
  const said = el("p", { class: "quiet", role: "status" });
  const newest = el("button", { class: "newest", click: () => { box.scrollTop = box.scrollHeight; } }, "Newest ↓");
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter lines", input: () => { words = filter.value.toLowerCase(); sift(); } });
  const node = el("section", { class: "log-part", "aria-label": "Log" },
    el("div", { class: "tools" }, names,
      toggle("Previous attempt", () => previous, (on) => { previous = on; start(); }),
      toggle("Times", () => chosen.timestamps, (on) => { chosen.timestamps = on; start(); }),
      toggle("Wrap", () => chosen.wrap, (on) => { chosen.wrap = on; wrap(); }),
      filter),
    el("div", { class: "log-box" }, box, newest), said);

  const wrap = () => box.classList.toggle("wrap", chosen.wrap);
  const atEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  const fits = (line) => !words || line.textContent.toLowerCase().includes(words);
  wrap();
  show(newest, false);
  box.addEventListener("scroll", () => show(newest, !atEnd()), { passive: true });

  function sift() {
    for (const line of box.children) show(line, fits(line));
    box.scrollTop = box.scrollHeight;
  }

  function write(texts) {
    if (!waiting.length) requestAnimationFrame(flush);
    waiting.push(...texts.slice(-maxLines));
    if (waiting.length > maxLines) waiting = waiting.slice(-maxLines);
  }

  function flush() {
    const follow = atEnd();
    const lines = document.createDocumentFragment();
    for (const text of waiting) {
      const clean = text.replace(escapes, "");
      const line = el("div", {}, clean.length > maxLine ? `${clean.slice(0, maxLine)} …` : clean || "\u00a0");
      show(line, fits(line));
      lines.append(line);
    }
    waiting = [];
    box.append(lines);
    while (box.children.length > maxLines) box.firstChild.remove();
    if (follow) box.scrollTop = box.scrollHeight;
    show(newest, !atEnd());
  }

  async function start() {
    open?.abort();
    const mine = (open = new AbortController());
    waiting = [];
    box.replaceChildren();
    setText(said, "Opening…");
    try {
      const parts = await openLog(at, container, { previous, timestamps: chosen.timestamps, tail }, mine.signal);
      setText(said, previous ? "" : "Following.");
      for await (const texts of parts) {
        if (mine !== open) return;
        write(texts);
      }
      if (mine === open) setText(said, previous ? "This attempt has ended." : "The log has ended.");
    } catch (err) {
      if (mine !== open || err.name === "AbortError") return;
      setText(said, err.status ? err.message : "The log broke off; trying again.");
      // The page of an agent that is away begins anew when it is back.
      if (!err.status && store.link === "live") setTimeout(() => mine === open && start(), retry);
    }
  }

  function update(pod) {
    if (!pod || store.link !== "live") {
      if (store.link !== "live") attempt = null; // what was open is broken
      return;
    }
    if (!pod.containers.some((c) => c.name === container)) container = (pod.containers.find((c) => !c.kind) || pod.containers[0]).name;
    keep(names, pod.containers, (c) => c.name, (c) => el("a", { href: `${podLink(at)}/log/${encodeURIComponent(c.name)}` }, c.name));
    for (const link of names.children) {
      if (link.entry.item.name === container) setAttribute(link, "aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    const c = pod.containers.find((c) => c.name === container);
    const now = `${pod.id} ${container} ${c.restarts} ${c.state === "Running" ? c.since : ""}`;
    if (now === attempt) return;
    const first = attempt === null;
    attempt = now;
    // One that has just ended goes on being shown.
    if (first || c.state === "Running") start();
  }

  return { node, update, close: () => { open?.abort(); open = null; } };
}

function toggle(label, is, set) {
  const button = el("button", { "aria-pressed": String(is()), click: () => {
    set(!is());
    setAttribute(button, "aria-pressed", String(is()));
  } }, label);
  return button;
}
