// The page: which view is shown, and what is around it.
import { setAttribute, setText, show } from "./dom.js";
import { eventsView } from "./events.js";
import { watchKeys } from "./keys.js";
import { keepLive } from "./live.js";
import { nodeView } from "./node.js";
import { podView } from "./pod.js";
import { podsView } from "./pods.js";
import { sourcesView } from "./sources.js";
import { listen, store } from "./store.js";
import { clock } from "./text.js";

const views = { "": podsView, events: eventsView, sources: sourcesView, node: nodeView, pod: podView };

const main = document.getElementById("main");
let shown = { name: null };

// A view is a function of the rest of the address that returns {node, title,
// update, close}; those of one name take the next address by go, where they can.
function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const known = name in views ? name : "";
  if (shown.name === known && shown.go?.(...rest)) return update();
  const from = shown;
  shown.close?.();
  shown = { name: known, ...views[known](...rest) };
  main.replaceChildren(shown.node);
  update();
  if (from.name !== null) shown.arrive ? shown.arrive(from) : main.querySelector("h1")?.focus();
  window.scrollTo(0, 0);
}

function update() {
  shown.update();
  frame();
}

const nodeName = document.getElementById("node-name");
const podCount = document.getElementById("count-pods");
const sourceCount = document.getElementById("count-sources");
const link = document.getElementById("link");
const banner = document.getElementById("banner");

const linkWords = { connecting: "connecting", live: "live", away: "agent away", lost: "not served", refused: "no session" };

function frame() {
  if (store.node) setText(nodeName, store.node.name);
  setText(podCount, store.node ? String(store.pods.size) : "");
  const failing = store.sources.filter((source) => source.tone === "bad").length;
  setText(sourceCount, String(failing));
  setAttribute(sourceCount, "aria-label", `${failing} with errors`);
  show(sourceCount, failing > 0);
  for (const a of document.querySelectorAll("#views a")) {
    const here = (shown.name === "pod" || shown.name === "" ? "pods" : shown.name) === a.dataset.view;
    if (here) setAttribute(a, "aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  setText(link, linkWords[store.link]);
  setAttribute(link, "data-link", store.link);
  const text = trouble();
  setText(banner, text);
  show(banner, text !== "");
  const bad = [...store.pods.values()].filter((pod) => pod.tone === "bad").length;
  const title = `${bad ? `(${bad}) ` : ""}${shown.title()} · ${store.node?.name || "Podkeeper"}`;
  if (document.title !== title) document.title = title;
}

// trouble says what makes the page less than the truth.
function trouble() {
  const asOf = store.node ? ` This is how it was at ${clock(store.asOf)}.` : "";
  switch (store.link) {
    case "away":
      return `The agent does not answer; its pods go on. Waiting for it.${asOf}`;
    case "lost":
      return `The command that serves this page has ended. Run podkeeper dashboard again, and open the link that it prints.${asOf}`;
    case "refused":
      return "This browser has only half of its session. Run podkeeper dashboard again, and open the link that it prints.";
  }
  if (store.node && !store.node.online) return "The container engine does not answer the agent: what is shown may be old.";
  if (store.node && !store.node.ready) return "The agent has just started and has not looked at everything yet.";
  return "";
}

const themes = ["", "light", "dark"];
const themeWords = { "": "as the system", light: "light", dark: "dark" };
const themeSigns = { "": "◐", light: "☀", dark: "☾" };
const themeButton = document.getElementById("theme");

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem("theme", name);
  setText(themeButton, themeSigns[name]);
  themeButton.setAttribute("aria-label", `Colours: ${themeWords[name]}`);
  themeButton.title = `Colours: ${themeWords[name]}`;
}

theme(localStorage.getItem("theme") || "");
themeButton.addEventListener("click", () => {
  theme(themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % themes.length]);
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is the view's
  main.focus();
});

window.addEventListener("hashchange", route);
listen(update);
setInterval(update, 5000); // ages and plots go on
watchKeys(() => shown);
route();
keepLive();
