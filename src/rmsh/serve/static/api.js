// HTTP client; every error becomes a Problem with a sentence for people.

export class Problem extends Error {
  constructor(sentence, status = 0) {
    super(sentence);
    this.status = status;
  }
}

const ROOT = new URL("..", import.meta.url).href; // of the server, which may be below a path
const SILENT = "The server does not respond. It may have stopped, or the image may be too large.";

async function ask(path, options = {}) {
  let response, answer;
  try {
    response = await fetch(ROOT + path, options);
    answer = response.status === 204 ? null : await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(SILENT);
  }
  if (!response.ok) throw new Problem(answer?.error ?? `The server returned status ${response.status}.`, response.status);
  return answer;
}

const query = (values) =>
  new URLSearchParams(
    Object.entries(values)
      .flatMap(([name, value]) => [value].flat().map((each) => [name, each]))
      .filter(([, value]) => value !== undefined && value !== "" && value !== false),
  );

export const about = () => ask("api/about");
export const item = (id) => ask(`api/item?${query({ id })}`);
export const search = (parameters, signal) => ask(`api/search?${query(parameters)}`, { signal });
export const facets = () => ask("api/facets");
export const duplicates = (parameters) => ask(`api/duplicates?${query(parameters)}`);
export const pictureAddress = (id, side) => `${ROOT}api/picture?${query({ id, side })}`;

export function searchByPicture(file, parameters, signal) {
  const body = new FormData();
  body.append("picture", file, "picture");
  return ask(`api/search?${query(parameters)}`, { method: "POST", body, signal });
}

export const signIn = (token) =>
  ask("api/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
