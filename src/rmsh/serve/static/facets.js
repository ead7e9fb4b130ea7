// Narrowing down by what is known about the items: a time line of the images, and menus of labels, cameras and so on.

import { element } from "./elements.js";
import { hasFact, withFact, withoutFact } from "./state.js";

const MOST_MONTHS = 24; // a longer time is shown by years, and by the months of a chosen year
const NAMES = { label: "Label", camera: "Camera", keyword: "Keyword", rating: "Rating" };
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const stars = (count) => (count === "1" ? "1 star" : `${count} stars`);
const counted = (count) => `${count.toLocaleString("en")} ${count === 1 ? "image" : "images"}`;

function dateText(value) {
  const [year, month, day] = value.split("-");
  return [day && Number(day), month && MONTHS[month - 1], year].filter(Boolean).join(" ");
}

export const factText = ({ name, value }) => ({ date: dateText, rating: stars }[name] ?? String)(value);

// Months since the year 0, or years: neighbours differ by 1.
const placeOf = ({ value }) => value.split("-").reduce((sum, part) => 12 * sum + Number(part), 0);

function toYears(months) {
  const years = new Map();
  for (const { value, count } of months) years.set(value.slice(0, 4), (years.get(value.slice(0, 4)) ?? 0) + count);
  return [...years].map(([value, count]) => ({ value, count }));
}

// The rows of a time line: all months, or all years and the months of the chosen one.
function rowsOf(months, chosen) {
  if (!months.length || placeOf(months.at(-1)) - placeOf(months[0]) < MOST_MONTHS) return [months];
  const inside = chosen ? months.filter(({ value }) => value.startsWith(chosen.slice(0, 4))) : [];
  return [toYears(months), inside];
}

// A second press removes a period; that of a month leaves its year, if years are shown.
function afterPress(state, value, chosen, byYear) {
  if (chosen !== value) return withFact(state, "date", value);
  return byYear && value.length > 4 ? withFact(state, "date", value.slice(0, 4)) : withoutFact(state, "date", value);
}

function bars(periods, chosen, press) {
  const most = Math.max(...periods.map(({ count }) => count));
  const list = element("ol", { class: "bars", "aria-label": `Images by ${periods[0].value.length > 4 ? "month" : "year"}` });
  periods.forEach((period, at) => {
    const { value, count } = period;
    if (at && placeOf(period) - placeOf(periods[at - 1]) > 1) list.append(element("li", { class: "gap", "aria-hidden": "true" }));
    const [year, month] = value.split("-");
    const named = month ? [MONTHS[month - 1], at && month !== "01" ? "" : ` ${year}`] : [year];
    const bar = element("button", {
      type: "button", class: "bar", "aria-pressed": String(chosen.startsWith(value)), "data-key": value,
      "aria-label": `${dateText(value)}, ${counted(count)}`, title: `${dateText(value)}: ${counted(count)}`,
      onclick: () => press(value),
    }, element("span", { class: "amount" }), element("span", { class: "period" }, ...named));
    bar.style.setProperty("--amount", count / most);
    list.append(element("li", {}, bar));
  });
  makeReachable(list, list.querySelector("[aria-pressed=true]") ?? list.lastElementChild.firstElementChild);
  list.addEventListener("keydown", walk);
  list.addEventListener("focusin", ({ target }) => makeReachable(list, target));
  return list;
}

// Tab stops at one bar of a row, the last one in focus; arrow keys reach the others.
function makeReachable(list, current) {
  for (const bar of list.querySelectorAll("button")) bar.tabIndex = bar === current ? 0 : -1;
}

function walk(event) {
  const all = [...event.currentTarget.querySelectorAll("button")];
  const now = all.indexOf(document.activeElement);
  const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: all.length - 1 }[event.key];
  if (!all[next] || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  all[next].focus();
}

function menu({ name, values, more }, state, show) {
  const order = name === "rating" ? values.toSorted((a, b) => b.value - a.value) : values;
  const entries = order.map(({ value, count }) => {
    const pressed = hasFact(state, name, value);
    const onclick = () => show((pressed ? withoutFact : withFact)(state, name, value));
    return element("li", {}, element("button", { type: "button", "aria-pressed": String(pressed), onclick },
      element("span", {}, factText({ name, value })), element("span", { class: "count" }, count.toLocaleString("en"))));
  });
  const chosen = state.facts.filter((fact) => fact.name === name).map(factText).join(", ");
  const told = chosen ? `${NAMES[name]}: ${chosen}` : NAMES[name];
  return element("details", { class: chosen ? "menu on" : "menu", name: "facet" },
    element("summary", { "data-key": name, title: told }, told),
    element("div", { class: "values" }, element("ul", {}, ...entries),
      more ? element("p", {}, `The ${values.length} most frequent; Filter finds the others.`) : null));
}

// Shows facets as they are in a state; `show` is called with the next one.
export function showFacets(place, { facets, months, photos }, state, show) {
  const chosen = state.facts.find(({ name }) => name === "date")?.value ?? "";
  const rows = rowsOf(months, chosen).filter((row) => row.length);
  const lines = rows.map((row) => bars(row, chosen, (value) => show(afterPress(state, value, chosen, row !== rows[0]))));
  const menus = facets.map((facet) => menu(facet, state, show));
  const duplicates = photos > 1 ? element("a", { href: "static/duplicates.html" }, "Duplicates") : null;
  const focused = place.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  place.hidden = !(lines.length || menus.length || duplicates);
  place.replaceChildren(...lines, element("div", { class: "menus" }, ...menus, duplicates));
  for (const line of lines) {
    const current = line.querySelector("[tabindex='0']").parentElement;
    line.scrollLeft = current.offsetLeft - (line.clientWidth - current.clientWidth) / 2;
  }
  if (focused) (place.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? place.querySelector("[data-key]")).focus({ preventScroll: true });
}

// What the focus returns to: a bar, or the menu of an entry.
const keyOf = (focused) => (focused.closest("details")?.firstElementChild ?? focused).dataset.key;

// An open menu closes when something else is pressed, and by Escape.
export function closeMenus(place) {
  addEventListener("click", ({ target }) => {
    for (const open of place.querySelectorAll("details[open]")) if (!open.contains(target)) open.open = false;
  });
  place.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && event.target.closest("details[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
}
