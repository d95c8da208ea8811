// All that the page knows. Messages of the server are folded in, and whoever
// listens is told once for each frame.

export const store = {
  link: "connecting", // or "live", "away" (the agent), "lost" (the server of this page), "refused"
  why: "",
  heard: 0, // when something was last heard
  skew: 0, // of the server's clock against ours
  asOf: 0, // when the agent was last heard of
  node: null,
  machine: null, // what it has, and is short of
  sources: [],
  pods: new Map(), // by id
  events: new Map(), // by id, the one that happened least lately first
  usage: null, // the newest
  noUsage: "",
  past: new Map(), // of usage: see series
};

const maxEvents = 1000;
// How many points of the past are kept: a quarter of an hour.
const maxPoints = 180;

const listeners = new Set();
let due = false;

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function changed() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    for (const listener of [...listeners]) listener();
  });
}

export const now = () => Date.now() + store.skew;

export function fold(message) {
  store.skew = message.now - Date.now();
  store.heard = Date.now();
  if (message.away) {
    store.link = "away";
    store.why = message.away;
  }
  if (message.state) foldState(message.state);
  if (message.events) foldEvents(message.events);
  if (message.usage) foldUsage(message.usage);
  if (message.machine) store.machine = message.machine;
  if (message.noUsage) store.noUsage = message.noUsage;
  if (store.link === "live") store.asOf = now();
  changed();
}

function foldState(change) {
  store.link = "live";
  store.node = change.node;
  if (change.sources) store.sources = change.sources;
  if (change.whole) store.pods.clear();
  for (const id of change.gone || []) store.pods.delete(id);
  for (const pod of change.pods || []) store.pods.set(pod.id, pod);
}

function foldEvents(change) {
  if (change.whole) store.events.clear();
  for (const event of change.items) {
    store.events.delete(event.id); // it is the latest now
    store.events.set(event.id, event);
  }
  for (const id of store.events.keys()) {
    if (store.events.size <= maxEvents) break;
    store.events.delete(id);
  }
}

function foldUsage(usage) {
  store.usage = usage;
  store.noUsage = "";
  add("node", usage.node);
  for (const [key, use] of Object.entries(usage.pods)) {
    add(key, use);
    for (const [name, part] of Object.entries(use.containers || {})) add(`${key}/${name}`, part);
  }
  const oldest = usage.node.at - maxPoints * 5000;
  for (const [key, points] of store.past) {
    if (points.at(-1).at < oldest) store.past.delete(key);
  }
}

// add notes one more point of what something uses.
function add(key, use) {
  let points = store.past.get(key);
  if (!points) store.past.set(key, (points = []));
  const last = points.at(-1);
  if (last && use.at <= last.at) return;
  points.push({ at: use.at, cpu: use.cpu === undefined ? undefined : use.cpu / 1e9, memory: use.memory });
  if (points.length > maxPoints) points.shift();
}

// series returns the past of one thing: "node", namespace/name, or
// namespace/name/container. Points have at, cpu (1 is one of them) and memory (bytes).
export const series = (key) => store.past.get(key) || [];

export const podKey = (pod) => `${pod.namespace}/${pod.name}`;

export function findPod(namespace, name) {
  let found;
  for (const pod of store.pods.values()) {
    // Of an old one that ends and its follower the latter is meant.
    if (pod.namespace === namespace && pod.name === name && (!found || pod.created >= found.created)) found = pod;
  }
  return found;
}

// eventsOf returns what happened to a pod, the latest first.
export function eventsOf(key) {
  return [...store.events.values()].filter((event) => event.pod === key).reverse();
}
