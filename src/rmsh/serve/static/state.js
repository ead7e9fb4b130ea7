// The state of a search, as a value and as the URL of the page: every search can be linked to.

const quoted = (value) => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

export function fromAddress(search) {
  const given = new URLSearchParams(search);
  const words = (name) => given.get(name) ?? "";
  return {
    text: words("q"),
    item: words("item"),
    by: words("by"),
    code: words("code"),
    model: words("model"),
    to: words("to") === "texts" ? "text" : "image",
    labels: given.getAll("label"),
    where: words("where"),
  };
}

export function toAddress(state) {
  const told = new URLSearchParams();
  const put = (name, value) => value && told.append(name, value);
  put("q", state.text);
  put("item", state.item);
  put("by", state.by);
  put("code", state.code);
  put("model", state.model);
  put("to", state.to === "text" ? "texts" : "");
  state.labels.forEach((label) => put("label", label));
  put("where", state.where);
  return told.size ? `?${told}` : "./";
}

export const isEmpty = (state) => !(state.text || state.item || state.code);

export function filterOf(state) {
  const parts = state.labels.map((label) => `label=${quoted(label)}`);
  if (state.where) parts.push(parts.length ? `(${state.where})` : state.where);
  return parts.join(" and ");
}

export function parametersOf(state, { skip = 0, codes = false, k = 24 } = {}) {
  const of = state.text
    ? { text: state.text }
    : state.item
      ? { item: state.item, by: state.by }
      : { code: state.code, model: state.model };
  return { ...of, ...optionsOf(state, { skip, codes, k }) };
}

export const optionsOf = (state, { skip = 0, codes = false, k = 24 } = {}) => ({
  to: state.to, k, skip: skip || undefined, where: filterOf(state), codes,
});

export const without = (state) => ({ ...state, text: "", item: "", by: "", code: "", model: "" });
