// Shows one item in full: its image, text, labels, and both codes next to the query's.

import { item as askItem } from "./api.js";
import { drawCode } from "./bits.js";
import { compareCode, labelList, picture } from "./cards.js";
import { drawing, element, unseen } from "./elements.js";

function codeFigure(name, code, query, compared) {
  const { own, other, told } = compareCode(code, query, compared);
  const sentence = compared ? `${told} from the query` : told;
  return element("section", { class: "code" }, element("h3", {}, name), drawCode(own, { other, across: 16, label: sentence }), element("p", {}, sentence));
}

function onwardLink(words, by, { linkTo, onOnward }) {
  return element("a", { href: linkTo(by), onclick: (event) => onOnward(event, by) }, words);
}

export async function showDetails(dialog, hit, { query, compared, ...ways }) {
  const item = await askItem(hit.id);
  const close = element("button", { type: "button", class: "plain close", title: "Close", onclick: () => dialog.close() },
    drawing("0 0 24 24", [["path", { d: "M6 6l12 12M18 6L6 18" }]], { "aria-hidden": "true" }), unseen("Close"));
  const codes = item.bits === query.bits
    ? [["Image code", item.image_code], ["Text code", item.text_code]].filter(([, code]) => code)
    : [];
  const about = element("div", { class: "about" },
    element("h2", { id: "details-title" }, item.text || `Item ${item.id}`),
    hit.labels.length ? labelList(hit.labels) : null,
    element("p", { class: "id" }, `ID: ${item.id}`),
    element("p", { class: "ways" },
      item.image_code ? onwardLink("Search by its image", "image", ways) : null,
      item.text_code ? onwardLink("Search by its text", "text", ways) : null,
      ...(ways.onPart ? [["Add to the query", false], ["Subtract from the query", true]] : []).map(([told, minus]) =>
        element("button", { type: "button", onclick: () => ways.onPart(minus) }, told))),
    ...codes.map(([name, code]) => codeFigure(name, code, query, compared)),
  );
  const large = item.has_picture ? element("div", { class: "large" }, picture(hit, 1280, { loading: "eager" })) : null;
  dialog.replaceChildren(element("div", { class: large ? "inside" : "inside plain-text" }, large, about), close);
  dialog.showModal();
  close.focus();
}
