// Numbers and times in words.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(n) {
  if (n === undefined || n === null) return "–";
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

// cores has thousandths of a CPU below one of them, as manifests do.
export function cores(n) {
  if (n === undefined || n === null) return "–";
  if (n >= 0.9995) return n.toFixed(n < 10 ? 2 : 1);
  return n > 0 && n < 0.0005 ? "<1m" : `${Math.round(n * 1000)}m`;
}

// age is how long ago that was, in the words of kubectl.
export function age(at, now) {
  if (!at) return "–";
  const s = Math.max(0, Math.round((now - at) / 1000));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h}h`;
  return `${Math.floor(h / 24)}d`;
}

export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

export const clock = (at) => new Date(at).toLocaleTimeString();
export const moment = (at) => new Date(at).toLocaleString();
