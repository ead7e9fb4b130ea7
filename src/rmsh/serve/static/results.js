// Shows a response: title, code of the query, and what to narrow it down by.

import { drawCode, toBits } from "./bits.js";
import { bitsWord } from "./cards.js";
import { element } from "./elements.js";
import { factText } from "./facets.js";
import { filterOf, hasFact, isEmpty } from "./state.js";

const [title, legend, figure, row] = ["title", "legend", "query-code", "narrow"].map((id) => document.getElementById(id));
const MOST_LABELS = 10;

export const kindWord = (to, count) => ({ image: ["image", "images"], text: ["text", "texts"] })[to][count === 1 ? 0 : 1];

export function clearResults() {
  legend.textContent = "";
  title.hidden = figure.hidden = row.hidden = true;
}

export function showTitle(state, to, { hits, hints }) {
  title.hidden = false;
  const count = hits.length;
  const [part] = state.parts;
  const alone = part?.kind === "item" ? " like this item" : " for your image";
  const of = !part ? ` for “${state.text}”` : state.text || state.parts.length > 1 ? " for this query" : alone;
  const best = count ? `${count} best ${kindWord(to, count)}` : `No ${kindWord(to, 0)}`;
  const some = filterOf(state) ? `${count ? "" : "No "}${kindWord(to, 0)} that match the filter` : "A few items of this library";
  title.textContent = isEmpty(state) ? some[0].toUpperCase() + some.slice(1) : best + of;
  const marked = hits.some((hit) => hit.labels.some((label) => label.matches));
  const nothing = hits[0]?.match?.weak ? "Nothing matches well; these are the nearest. " : "";
  const order = isEmpty(state) ? "" : `${nothing}${marked ? "✓ marks labels that match the query. " : ""}Best first.`;
  legend.textContent = count ? [...hints, order].join(" ") : "";
}

export function showQueryCode(query, wanted) {
  figure.hidden = !wanted;
  if (!wanted) return;
  const across = innerWidth < 640 ? 32 : 64;
  figure.replaceChildren(
    element("figcaption", {}, `The ${query.bits} bits of the query: large squares are 1, small squares 0. In the hits, a frame marks a bit that differs.`),
    drawCode(toBits(query.code, query.bits), { across, label: `The ${query.bits}-bit code of the query` }),
  );
}

// What the results are narrowed down by, and labels of the hits that can be added.
export function showNarrow(state, hits, toggle) {
  const counts = new Map();
  for (const hit of hits) for (const { name } of hit.labels) counts.set(name, (counts.get(name) ?? 0) + 1);
  const others = [...counts].filter(([label]) => !hasFact(state, "label", label)).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const offered = others.slice(0, Math.max(0, MOST_LABELS - state.facts.length)).map(([value, count]) => ({ name: "label", value, count }));
  row.hidden = !(offered.length || state.facts.length);
  row.replaceChildren(element("span", {}, "Only with"), ...[...state.facts, ...offered].map((fact) => {
    const properties = { type: "button", "aria-pressed": String(!fact.count), onclick: () => toggle(fact.name, fact.value) };
    return element("button", properties, element("span", {}, factText(fact)), element("span", { class: "count", "aria-hidden": "true" }, String(fact.count ?? "×")));
  }));
}

// The sentence that a screen reader speaks when results have come.
export function spoken(answer, skip) {
  const count = answer.hits.length;
  if (!count) return `No ${kindWord(answer.to, 0)} found.`;
  const which = skip ? `${count} more ${kindWord(answer.to, count)}, the first of them` : `${count} ${kindWord(answer.to, count)} found, the nearest`;
  const weak = answer.hits[0].match?.weak ? "Nothing matches well: " : "";
  return `${weak}${which} ${bitsWord(answer.hits[0].distance)} away.`;
}
