// Requests to the server that this page is from.
import { theKey } from "./key.js";

// Refused is an answer that says no, in words for people.
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { "X-Podkeeper-Key": theKey() } });
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  return answer;
}

// lines yields what comes in as lists of whole lines, as soon as there are any.
export async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    if (parts.length) yield parts;
  }
  if (rest) yield [rest];
}

export const podPath = (pod) => `/pods/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`;

export function act(pod, action) {
  return ask(`${podPath(pod)}/${action}`, { method: "POST" });
}

export async function openLog(pod, container, { previous, timestamps, tail }, signal) {
  const query = new URLSearchParams({ previous, timestamps, tail });
  return lines(await ask(`${podPath(pod)}/log/${encodeURIComponent(container)}?${query}`, { signal }));
}
