// The state of a search, as a value and as the URL of the page: every search can be linked to.

const quoted = (value) => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

// Parts of a query besides its words: items by ID, and images by their code.
const KINDS = ["item", "minus_item", "code", "minus_code"];
const nameOf = ({ kind, minus }) => (minus ? `minus_${kind}` : kind);

// What results are narrowed down by; an image has one date, camera and rating, but may have several labels and keywords.
const FACTS = ["label", "keyword", "camera", "rating", "date"];
const SEVERAL = ["label", "keyword"];

export function fromAddress(search) {
  const given = new URLSearchParams(search);
  const words = (name) => given.get(name) ?? "";
  return {
    text: words("q"),
    parts: KINDS.flatMap((name) => given.getAll(name).map((value) => ({ kind: name.replace("minus_", ""), value, minus: name.startsWith("minus_") }))),
    by: words("by"),
    model: words("model"),
    to: words("to") === "texts" ? "text" : "image",
    facts: FACTS.flatMap((name) => given.getAll(name).map((value) => ({ name, value }))),
    where: words("where"),
  };
}

export function toAddress(state) {
  const told = new URLSearchParams();
  const put = (name, value) => value && told.append(name, value);
  put("q", state.text);
  state.parts.forEach((part) => put(nameOf(part), part.value));
  put("by", state.by);
  put("model", state.model);
  put("to", state.to === "text" ? "texts" : "");
  state.facts.forEach(({ name, value }) => put(name, value));
  put("where", state.where);
  return told.size ? `?${told}` : "./";
}

export const isEmpty = (state) => !state.text && !state.parts.length;

// "a + b - c" in its parts; a sign inside quotes belongs to the phrase.
export function textParts(text) {
  const parts = [{ kind: "text", value: "", minus: false }];
  for (const word of text.match(/[^\s"]*"[^"]*"\S*|\S+/g) ?? []) {
    if (word === "+" || word === "-") parts.push({ kind: "text", value: "", minus: word === "-" });
    else parts.at(-1).value += `${parts.at(-1).value && " "}${word}`;
  }
  return parts.filter((part) => part.value);
}

const toText = (parts) => parts.map(({ value, minus }, place) => `${minus ? "- " : place ? "+ " : ""}${value}`).join(" ");

export const partsOf = (state) => [...textParts(state.text), ...state.parts];

// The state with other parts; nothing is left of a query that would only subtract.
export function withParts(state, parts) {
  const kept = parts.some((part) => !part.minus) ? parts : [];
  const others = kept.filter((part) => part.kind !== "text");
  return {
    ...state,
    text: toText(kept.filter((part) => part.kind === "text")),
    parts: others,
    by: others.length === 1 && others[0].kind === "item" ? state.by : "",
    model: others.some((part) => part.kind === "code") ? state.model : "",
  };
}

export const hasFact = (state, name, value) => state.facts.some((fact) => fact.name === name && fact.value === value);

export function withoutFact(state, name, value) {
  return { ...state, facts: state.facts.filter((fact) => fact.name !== name || fact.value !== value) };
}

export function withFact(state, name, value) {
  const others = state.facts.filter((fact) => SEVERAL.includes(name) || fact.name !== name);
  return { ...state, facts: [...others, { name, value }] };
}

export function filterOf(state) {
  const parts = state.facts.map(({ name, value }) => `${name}=${quoted(value)}`);
  if (state.where) parts.push(parts.length ? `(${state.where})` : state.where);
  return parts.join(" and ");
}

export function parametersOf(state, { skip = 0, codes = false, k = 24 } = {}) {
  const parts = KINDS.map((name) => [name, state.parts.filter((part) => nameOf(part) === name).map((part) => part.value)]);
  return { text: state.text, ...Object.fromEntries(parts), by: state.by, model: state.model, ...optionsOf(state, { skip, codes, k }) };
}

export const optionsOf = (state, { skip = 0, codes = false, k = 24 } = {}) => ({
  to: state.to, k, skip: skip || undefined, where: filterOf(state), codes,
});

export const without = (state) => ({ ...state, text: "", parts: [], by: "", model: "" });
