// The little that is needed to make elements and to keep them up to date.

// el makes an element. Attributes that are undefined or false are left out, those
// that are functions are listeners.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== ""));
  return node;
}

const svgSpace = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// What does not change is not touched, so that nothing is painted anew for it.

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

// keep makes the children of parent those of items, in their order. Each item has
// the child that was made for its key, updated if it is new or another object.
export function keep(parent, items, key, make, update) {
  const before = parent.kept || new Map();
  const kept = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    let entry = before.get(id);
    if (!entry) {
      entry = { node: make(item), item: undefined };
      entry.node.entry = entry;
    }
    if (entry.item !== item) {
      entry.item = item;
      update?.(entry.node, item);
    }
    kept.set(id, entry);
    before.delete(id);
    if (entry.node === place) place = place.nextElementSibling;
    else parent.insertBefore(entry.node, place);
  }
  for (const entry of before.values()) entry.node.remove();
  parent.kept = kept;
}
