// Renders hits as cards with image, text, labels, distance and, optionally, the code.

import { pictureAddress } from "./api.js";
import { distanceOf, drawCode, toBits } from "./bits.js";
import { drawing, element, unseen } from "./elements.js";

export const bitsWord = (count) => `${count} ${count === 1 ? "bit" : "bits"}`;

const altOf = (hit) => hit.text || hit.labels.map((label) => label.name ?? label).join(", ") || `Image of item ${hit.id}`;

export function picture(hit, side, properties = {}) {
  const image = element("img", {
    src: pictureAddress(hit.id, side), alt: altOf(hit), loading: "lazy", decoding: "async", ...properties,
  });
  image.addEventListener("error", () => image.replaceWith(element("span", { class: "gone" }, "The image cannot be shown")));
  image.addEventListener("load", () => extend(image));
  return image;
}

// Images are not cropped; the rest of the frame takes the colours of their edges.
function extend(image) {
  const { naturalWidth: width, naturalHeight: height } = image;
  const beside = width * image.clientHeight < height * image.clientWidth;
  const [across, down] = beside ? [Math.ceil(width / 40), height] : [width, Math.ceil(height / 40)];
  const pen = element("canvas", { width: 2, height: 1 }).getContext("2d", { willReadFrequently: true });
  pen.drawImage(image, 0, 0, across, down, 0, 0, 1, 1);
  pen.drawImage(image, width - across, height - down, across, down, 1, 0, 1, 1);
  const { data } = pen.getImageData(0, 0, 2, 1);
  const [first, last] = [0, 4].map((at) => `rgb(${data.slice(at, at + 3).join(" ")})`);
  image.style.backgroundImage = `linear-gradient(to ${beside ? "right" : "bottom"}, ${first} 50%, ${last} 50%)`;
}

// Matching labels come first; of the others, at most `most` are shown.
export function labelList(labels, most = Infinity) {
  const order = [...labels.filter((label) => label.matches), ...labels.filter((label) => !label.matches)];
  const hidden = order.length > most + 1 ? order.splice(most) : [];
  const entries = order.map((label) =>
    element("li", { class: label.matches ? "matches" : undefined }, label.name, label.matches ? unseen(" (matches the query)") : ""));
  if (hidden.length) entries.push(element("li", { class: "others", title: hidden.map((label) => label.name).join(", ") }, `+${hidden.length}`));
  return element("ul", { class: "labels", "aria-label": "Labels" }, ...entries);
}

// A ring: full if no bit differs, empty if half of them do, as for unrelated items.
function distanceBadge(distance, bits) {
  const near = Math.max(0, 1 - (2 * distance) / bits);
  const round = { cx: 9, cy: 9, r: 6.5 };
  const length = 2 * Math.PI * round.r;
  const ring = drawing("0 0 18 18", [
    ["circle", round],
    ["circle", { ...round, class: "near", "stroke-dasharray": `${near * length} ${length}` }],
  ], { "aria-hidden": "true" });
  return element("span", { class: "distance", title: `${bitsWord(distance)} of ${bits} differ from the query` }, ring, bitsWord(distance));
}

// A code, next to the query's if something was asked; and a sentence about it.
export function compareCode(code, query, compared) {
  const own = toBits(code, query.bits);
  const other = compared ? toBits(query.code, query.bits) : null;
  return { own, other, told: other ? `${bitsWord(distanceOf(own, other))} of ${query.bits} differ` : bitsWord(query.bits) };
}

function codeOf(hit, query, compared) {
  const { own, other, told } = compareCode(hit.code, query, compared);
  return drawCode(own, { other, label: `Code: ${told}` });
}

// Why an item was found, best reason first.
function reasons({ weak, words, image, caption }) {
  const similar = [["image", image], ["text", caption]].filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value.toFixed(2)}`);
  return [...(weak ? ["weak match"] : []), ...(words.length ? [`“${words.join("”, “")}”`] : []), ...similar].join(" · ");
}

const infoIcon = () => drawing("0 0 24 24", [["circle", { cx: 12, cy: 12, r: 9 }], ["path", { d: "M12 11v5.5M12 7.6v.1" }]], { "aria-hidden": "true" });

const partButton = (minus, title, onPart) =>
  element("button", { type: "button", class: "tool", tabindex: "-1", title: minus ? "Subtract from the query" : "Add to the query", onclick: () => onPart(minus) },
    drawing("0 0 24 24", [["path", { d: minus ? "M6 12h12" : "M6 12h12M12 6v12" }]], { "aria-hidden": "true" }),
    unseen(minus ? `Subtract ${title}` : `Add ${title}`));

export function card(hit, { query, to, linkTo, onOnward, onDetails, onPart, showDistance }) {
  const title = hit.text || hit.id.split("/").pop();
  const badge = showDistance ? distanceBadge(hit.distance, query.bits) : null;
  const inView = hit.has_picture && to === "image";
  const onward = element("a", { class: hit.text ? "onward" : "onward untitled", href: linkTo(to), title: "Find similar items", onclick: (event) => onOnward(event, to) }, title);
  const view = hit.has_picture ? element("div", { class: "view" }, picture(hit, 640), inView ? badge : null) : null;
  const body = element("div", { class: "body" },
    onward,
    inView ? null : badge && element("p", {}, badge),
    hit.labels.length ? labelList(hit.labels, 5) : null,
    hit.match && showDistance ? element("p", { class: "why", title: `Score ${hit.match.score.toFixed(2)}: words found, similarity of image and text` }, reasons(hit.match)) : null,
    hit.code ? codeOf(hit, query, showDistance) : null,
  );
  const details = element("button", { type: "button", class: "tool", title: "Details", onclick: onDetails }, infoIcon(), unseen(`Details of ${title}`));
  // The details have the same two buttons: by keyboard and by touch they are there, and a card has no more stops.
  const parts = onPart ? element("span", { class: "part-tools" }, ...[false, true].map((minus) => partButton(minus, title, onPart))) : null;
  return element("li", {}, element("article", { class: hit.match?.weak && showDistance ? "card weak" : "card" }, view, body, element("div", { class: "tools" }, parts, details)));
}

// Tab stops at one card only, the last one in focus; arrow keys reach the others.
export function makeReachable(list, current) {
  for (const entry of list.children) {
    for (const stop of entry.querySelectorAll(".onward, .tool[title=Details]")) stop.tabIndex = entry === current ? 0 : -1;
  }
}

// Arrow keys move between the cards as they are laid out, and from the first row back to the search field.
export function walk(list, event, above) {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: "row", ArrowUp: "-row", Home: "first", End: "last" }[event.key];
  if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...list.querySelectorAll(".onward")];
  const now = links.indexOf(document.activeElement);
  if (now < 0) return;
  const top = (link) => link.closest("li").offsetTop;
  const across = Math.max(1, links.filter((link) => top(link) === top(links[0])).length);
  const next = { row: now + across, "-row": now - across, first: 0, last: links.length - 1 }[step] ?? now + step;
  if (!links[next] && step !== "-row") return;
  event.preventDefault();
  if (!links[next]) return above.focus();
  links[next].focus();
  links[next].closest("li").scrollIntoView({ block: "nearest" });
}
