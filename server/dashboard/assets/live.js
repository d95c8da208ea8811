// Keeps the store in line with the agent, for as long as somebody looks.
import { ask, lines } from "./ask.js";
import { changed, fold, store } from "./store.js";

const retry = 1000;
// The server says something every ten seconds. After this long it is gone.
const silence = 25000;
// A page that nobody has looked at for so long asks for nothing any more.
const hiddenFor = 60000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let current = null; // the AbortController of what is under way

export async function keepLive() {
  document.addEventListener("visibilitychange", watchHidden);
  for (;;) {
    await seen();
    try {
      await hear();
    } catch (err) {
      if (err.status === 401) return location.reload(); // to the login page
      if (err.status === 403) return refused();
    }
    if (document.hidden) continue;
    store.link = "lost";
    changed();
    await sleep(retry);
  }
}

// refused: the cookie is there and the key is not.
function refused() {
  store.link = "refused";
  changed();
}

async function hear() {
  current = new AbortController();
  const watchdog = setInterval(() => Date.now() - store.heard > silence && current.abort(), 5000);
  try {
    store.heard = Date.now();
    for await (const part of lines(await ask("/live", { signal: current.signal }))) {
      for (const line of part) fold(JSON.parse(line));
    }
  } finally {
    clearInterval(watchdog);
  }
}

let hiding = 0;

function watchHidden() {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => current?.abort(), hiddenFor);
}

// seen resolves once somebody looks at the page.
function seen() {
  return new Promise((resolve) => {
    if (!document.hidden || store.link === "connecting") return resolve();
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
}
