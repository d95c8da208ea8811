// Exchanges the token, which stands in the address or is typed in, for a session.
import { keepKey } from "./key.js";

const form = document.getElementById("form");
const field = document.getElementById("token");
const say = document.getElementById("say");

async function enter(token) {
  const answer = await send(token);
  if (!answer) return wrong("Nobody answers here any more: run podkeeper dashboard again.");
  const text = await answer.text();
  if (!answer.ok) return wrong(sentence(text) + " Run podkeeper dashboard again for another one.");
  keepKey(text);
  location.replace("/");
}

// send tries it more than once: what the browser drops (see early.js) was not sent.
async function send(token) {
  for (let left = 4; left > 0; left--) {
    try {
      return await fetch("/login", { method: "POST", body: token });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
}

function wrong(text) {
  say.textContent = text;
  say.className = "wrong";
  form.hidden = false;
  field.focus();
}

function sentence(text) {
  text = text.trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + ".";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  // What was pasted may be the whole link.
  enter(field.value.trim().replace(/^.*#/, ""));
});

const token = location.hash.slice(1);
// Routes of the page itself begin with a slash: they are kept for after the login.
if (token && !token.startsWith("/")) {
  history.replaceState(null, "", "/"); // out of the history
  form.hidden = true;
  say.textContent = "Logging in…";
  enter(token);
}
