// The half of the session that the browser does not send by itself. It is kept
// where only pages of this very origin can read it, the port included.

export function keepKey(key) {
  localStorage.setItem("key", key);
}

export function theKey() {
  return localStorage.getItem("key") || "";
}
