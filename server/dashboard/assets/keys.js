// Single keys. Where something is typed they are letters.

const tabs = { 1: "#/", 2: "#/events", 3: "#/sources", 4: "#/node" };

export function watchKeys(shown) {
  const help = document.getElementById("keys");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      else if (shown().name === "pod") location.hash = "#/";
      return;
    }
    if (typing) return;
    if (event.key === "?") help.showModal();
    else if (event.key === "/" && document.querySelector("input[type=search]")) document.querySelector("input[type=search]").focus();
    else if (event.key in tabs) location.hash = tabs[event.key];
    else if (step[event.key] && shown().move) shown().move(step[event.key]);
    else return;
    event.preventDefault();
  });
}

const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
