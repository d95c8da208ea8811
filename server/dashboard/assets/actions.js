// What can be done to a pod, where the command was told to allow it.
import { act } from "./ask.js";
import { el, keep, setText, show } from "./dom.js";
import { store } from "./store.js";

const words = {
  restart: ["Restart", "It ends, with its grace period, and starts anew with empty emptyDirs."],
  stop: ["Stop", "It ends, with its grace period, and stays down until it is started again."],
  start: ["Start", "It is started again."],
};

export function actions() {
  const buttons = el("div", { class: "buttons" });
  const said = el("p", { class: "quiet", role: "status" });
  const node = el("div", { class: "actions" }, buttons, said);
  let pod;

  async function run(action) {
    if (action !== "start" && !(await sure(pod, action))) return;
    setText(said, "Asking the agent…");
    try {
      await act(pod, action);
      setText(said, "The agent has taken it on.");
      setTimeout(() => setText(said, ""), 5000); // the rest is seen
    } catch (err) {
      setText(said, err.message);
    }
  }

  function update(current) {
    pod = current;
    const offered = store.node && pod ? store.node.actions.filter((action) => (action === "start" ? pod.held : action !== "stop" || !pod.held)) : [];
    show(node, offered.length > 0);
    keep(buttons, offered, (action) => action, (action) =>
      el("button", { class: action === "start" ? "primary" : "", click: () => run(action) }, words[action]?.[0] || action));
  }
  return { node, update };
}

// sure asks the person, and resolves with what is answered.
function sure(pod, action) {
  const [verb, text] = words[action] || [action, ""];
  const dialog = el("dialog", { "aria-labelledby": "sure-title", "aria-describedby": "sure-text" },
    el("h2", { id: "sure-title" }, `${verb} ${pod.name}?`),
    el("p", { id: "sure-text" }, text),
    el("form", { method: "dialog" }, el("button", { value: "" }, "Cancel"), el("button", { value: "yes", class: "primary" }, verb)));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
