// Shows groups of duplicates, the best image of each first and marked.

import { about, duplicates } from "./api.js";
import { picture } from "./cards.js";
import { element } from "./elements.js";
import { sayNothingFound, sayProblem, silence } from "./messages.js";

const KINDS = {
  copies: ["Copies", "files with the same content"],
  similar: ["Similar", "resized, compressed again or slightly cropped"],
  burst: ["Bursts", "taken within seconds"],
};
const [kinds, groups, more, status] = ["kinds", "groups", "more", "status"].map((id) => document.getElementById(id));
let kind = new URLSearchParams(location.search).get("kind") ?? "";

function size(bytes) {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 2 ** 10)} KB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

function figure(image, best) {
  const facts = [`${image.width} × ${image.height} · ${size(image.bytes)}`, image.date?.replace("T", " ")].filter(Boolean);
  const shown = picture({ ...image, text: image.text || image.id, labels: [] }, 320);
  const link = element("a", { class: "onward", href: `../?${new URLSearchParams({ item: image.id, by: "image" })}`, title: "Find similar items" }, image.id);
  return element("li", {}, element("article", { class: best ? "card best" : "card" },
    element("div", { class: "view" }, shown),
    best ? element("span", { class: "best-mark" }, "Best") : null,
    element("div", { class: "body" }, link, ...facts.map((fact) => element("p", {}, fact)))));
}

function section({ kind: its, count, images }) {
  const [name, meaning] = KINDS[its];
  const hidden = count - images.length;
  return element("section", { class: "group" },
    element("h2", {}, `${name}: ${count} images`, element("span", { class: "legend" }, ` ${meaning}`)),
    element("ol", {}, ...images.map((image, place) => figure(image, place === 0))),
    hidden ? element("p", { class: "legend" }, `and ${hidden.toLocaleString("en")} more`) : null);
}

function showKinds(counts) {
  const sum = Object.values(counts).reduce((one, other) => one + other, 0);
  const choices = [["", "All", sum], ...Object.entries(counts).map(([name, count]) => [name, KINDS[name][0], count])];
  kinds.hidden = !sum;
  kinds.replaceChildren(...choices.filter(([name, , count]) => count || name === kind).map(([name, told, count]) =>
    element("button", { type: "button", "aria-pressed": String(name === kind), "data-kind": name, onclick: () => choose(name) },
      told, element("span", { class: "count" }, count.toLocaleString("en")))));
}

function choose(name) {
  kind = name;
  history.replaceState(null, "", kind ? `?kind=${kind}` : location.pathname);
  show().then(() => kinds.querySelector("[aria-pressed=true]")?.focus());
}

async function show(skip = 0) {
  groups.setAttribute("aria-busy", "true");
  try {
    const answer = await duplicates({ kind, skip: skip || undefined });
    silence();
    showKinds(answer.counts);
    const sections = answer.groups.map(section);
    groups.replaceChildren(...(skip ? groups.children : []), ...sections);
    more.hidden = !answer.more;
    status.textContent = `${sections.length} ${skip ? "more " : ""}groups.`;
    if (skip) sections[0]?.querySelector("a").focus();
    else if (!sections.length) sayNothingFound("No duplicates", "Every image is in this library once.", ["Compare again", () => show()]);
  } catch (error) {
    groups.replaceChildren();
    kinds.hidden = more.hidden = true;
    if (error.status === 401) error.message += " Open the search page first.";
    sayProblem(error, () => show());
  }
  groups.removeAttribute("aria-busy");
}

more.addEventListener("click", () => show(groups.children.length));
about().then(({ name }) => { document.title = `Duplicates · ${name}`; }, () => {});
show();
