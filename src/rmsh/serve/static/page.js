// The page: handles input, keeps the URL in step, queries the server and shows the response.

import * as api from "./api.js";
import { card, makeReachable, walk } from "./cards.js";
import { showDetails } from "./details.js";
import { element } from "./elements.js";
import { closeMenus, showFacets } from "./facets.js";
import { askToken, isSilent, sayNothingFound, sayProblem, silence } from "./messages.js";
import { catchPictures } from "./pictures.js";
import { clearResults, kindWord, showNarrow, showQueryCode, showTitle, spoken } from "./results.js";
import { filterOf, fromAddress, hasFact, isEmpty, optionsOf, parametersOf, partsOf, toAddress, withFact, withParts, without, withoutFact } from "./state.js";

const byId = (id) => document.getElementById(id);
const [form, words, where, filter, codes, hits, more, details, facets] = ["search", "words", "where", "filter", "codes", "hits", "more", "details", "facets"].map(byId);
const previews = new Map(); // code -> the picture it was made of, as long as the page is open

let state = fromAddress(location.search);
let library = null; // what the server tells about itself,
let ready = null; // when it has told
let known = null; // what can be narrowed down by, if the server tells
let shown = null; // the answer on the page, with all its pages
let running = new AbortController();
let typing = 0;

// Asking

function show(next, { replace = false } = {}) {
  state = next;
  const address = toAddress(state);
  if (address !== (location.search || "./")) history[replace ? "replaceState" : "pushState"](null, "", address);
  return run();
}

const run = ({ skip = 0 } = {}) =>
  answered(skip, (signal) => {
    reflect();
    const asked = parametersOf(state, { skip, codes: codes.checked });
    return isEmpty(state) ? look(asked, signal) : api.search(asked, signal);
  });

async function searchPicture(file) {
  await ready;
  if (!library) return undefined;
  if (!library.takes.includes("image")) return fail(new api.Problem("This library has no image encoder; search by words or by an item."));
  if (file.size > library.most_upload) return fail(new api.Problem(`The image has ${Math.ceil(file.size / 2 ** 20)} MB; at most ${library.most_upload >> 20} MB are allowed.`));
  return answered(0, async (signal) => {
    const alone = isEmpty(base());
    const next = alone ? without(state) : state;
    const answer = await api.searchByPicture(file, optionsOf(next, { codes: codes.checked }), signal);
    const { code, model } = answer.query;
    previews.set(code, URL.createObjectURL(file));
    state = withParts({ ...next, model }, [...partsOf(next).filter((part) => part.value !== code), { kind: "code", value: code }]);
    history.pushState(null, "", toAddress(state)); // the code stands for the picture: a link to it works
    if (alone) words.value = "";
    reflect();
    return alone ? answer : api.search(parametersOf(state, { codes: codes.checked }), signal);
  });
}

// What a new part is added to: the query, or nothing if a query has one part only.
const base = () => (library?.composes ? state : without(state));

// One question at a time: a newer one takes the place of one that waits for its answer.
async function answered(skip, question) {
  running.abort();
  const own = (running = new AbortController());
  busy(true);
  await ready;
  if (!library) return;
  try {
    render(await question(own.signal), skip);
  } catch (error) {
    if (error.name === "AbortError") return;
    fail(error);
  }
  if (own === running) busy(false);
}

// Nothing is asked yet: all that passes a filter, or some of what lies near a random code, and less near.
async function look(asked, signal) {
  if (filterOf(state)) return api.search({ ...asked, code: "00".repeat(Math.ceil(library.bits / 8)), model: library.model }, signal);
  const answer = await api.search({ ...asked, ...randomCode(), k: 96 }, signal);
  const step = Math.max(1, Math.floor(answer.hits.length / 12));
  return { ...answer, hits: answer.hits.filter((_, place) => place % step === 0).slice(0, 12) };
}

function randomCode() {
  const bytes = crypto.getRandomValues(new Uint8Array(Math.ceil(library.bits / 8)));
  if (library.bits % 8) bytes[bytes.length - 1] &= (1 << library.bits % 8) - 1;
  return { code: [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(""), model: library.model };
}

// Showing

function reflect() {
  // Nobody is interrupted while writing.
  if (document.activeElement !== words) words.value = state.text;
  if (document.activeElement !== where) where.value = state.where;
  form.elements.to.value = state.to;
  reflectFacets();
  filter.querySelector("summary").textContent = state.where ? "Filter (on)" : "Filter";
  const [parts, list] = [partsOf(state), byId("parts")];
  const another = library?.composes ? "Add words" : "Or describe something";
  words.placeholder = words.disabled ? "Search by one of its items" : state.parts.length ? another : "Describe what you are looking for";
  list.hidden = parts.length < 2 && !state.parts.length;
  list.replaceChildren(...(list.hidden ? [] : parts.map((part) => partChip(part, parts))));
}

// Menus stay open, and bars in focus, as long as nothing else is chosen.
function reflectFacets() {
  const key = JSON.stringify(state.facts);
  if (!known || facets.dataset.facts === key) return;
  facets.dataset.facts = key;
  showFacets(facets, known, state, (next) => show({ ...state, facts: next.facts }));
}

const PARTS = {
  text: ({ value }) => [null, value],
  item: ({ value }) => [api.pictureAddress(value, 320), "Like this item"],
  code: ({ value }) => [previews.get(value), "Like your image"],
};

// A part of the query: whether it is added or subtracted, what it is, and a button that removes it.
function partChip(part, parts) {
  const [src, told] = PARTS[part.kind](part);
  const change = (...instead) => {
    const next = withParts(state, parts.flatMap((other) => (other === part ? instead : [other])));
    words.value = next.text;
    show(next).then(() => (byId("parts").querySelector("button") ?? words).focus());
  };
  const sign = parts.length > 1 && element("button", {
    type: "button", class: "sign", title: part.minus ? "Add it instead" : "Subtract it instead",
    "aria-label": `${told}: ${part.minus ? "subtracted; add it instead" : "added; subtract it instead"}`,
    onclick: () => change({ ...part, minus: !part.minus }),
  }, part.minus ? "−" : "+");
  const image = src ? element("img", { src, alt: "", onerror: (event) => event.target.remove() }) : null;
  const remove = element("button", { type: "button", "aria-label": `${told}: remove`, onclick: () => change() }, "×");
  return element("li", { class: part.minus ? "minus" : undefined }, sign || null, image, element("span", {}, told), remove);
}

function render(answer, skip) {
  if (skip) shown.hits.push(...answer.hits);
  else shown = answer;
  const resting = isEmpty(state);
  silence();
  document.title = resting ? library.name : `${state.text || "Search"} · ${library.name}`;
  showTitle(state, answer.to, shown);
  showQueryCode(answer.query, codes.checked && !resting);
  showNarrow(state, shown.hits, toggleFact);
  hits.className = `hits ${answer.to === "text" ? "texts" : "pictures"}`;
  const cards = answer.hits.map((hit) => cardOf(hit, answer, resting));
  hits.replaceChildren(...(skip ? [...hits.children, ...cards] : cards));
  makeReachable(hits, skip ? cards[0] : hits.firstElementChild);
  more.hidden = !answer.more || (resting && !filterOf(state));
  if (!shown.hits.length) nothingFound();
  byId("status").textContent = resting ? "" : spoken(answer, skip);
  if (skip) cards[0]?.querySelector(".onward").focus();
}

function cardOf(hit, answer, resting) {
  const onPart = library.composes && !resting ? (minus) => addPart(hit, minus) : null;
  const ways = { linkTo: (by) => toAddress(onward(hit, by)), onOnward: (event, by) => follow(event, hit, by), onPart };
  return card(hit, {
    query: answer.query,
    to: answer.to,
    showDistance: !resting,
    ...ways,
    onDetails: () => showDetails(details, hit, { query: answer.query, compared: !resting, ...ways }).catch(fail),
  });
}

function nothingFound() {
  const other = state.to === "image" ? "text" : "image";
  if (!library.items) sayNothingFound("This library is empty", "Add images and texts, then search again.", ["Reload", start]);
  else if (filterOf(state)) sayNothingFound("No item matches the filter", shown.hints.join(" ") || "Change or clear the filter to see more.", ["Clear the filter", () => show({ ...state, facts: [], where: "" })]);
  else sayNothingFound(`There are no ${kindWord(state.to, 0)} here`, `This library may contain only ${kindWord(other, 0)}.`, [`Search ${kindWord(other, 0)}`, () => show({ ...state, to: other })]);
}

function fail(error) {
  clearResults();
  hits.replaceChildren();
  more.hidden = true;
  details.close();
  if (error.status === 401) askToken(error.message, (token) => api.signIn(token).then(start, fail));
  else sayProblem(error, () => (library ? run() : start()));
}

function busy(is) {
  hits.setAttribute("aria-busy", String(is));
  if (is && !hits.children.length && isSilent()) {
    hits.replaceChildren(...Array.from({ length: 8 }, () => element("li", { class: "waiting", "aria-hidden": "true" })));
  }
}

// Going on

const onward = (hit, by) => ({ ...without(state), parts: [{ kind: "item", value: hit.id }], by });

function addPart(hit, minus) {
  details.close();
  scrollTo({ top: 0, behavior: "smooth" });
  const others = partsOf(state).filter((part) => part.kind !== "item" || part.value !== hit.id);
  show(withParts(state, [...others, { kind: "item", value: hit.id, minus }])).then(() => byId("parts").lastElementChild.lastElementChild.focus());
}

function follow(event, hit, by) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the browser opens it elsewhere
  event.preventDefault();
  details.close();
  scrollTo({ top: 0, behavior: "smooth" });
  show(onward(hit, by)).then(() => byId("results").focus({ preventScroll: true }));
}

function toggleFact(name, value) {
  show((hasFact(state, name, value) ? withoutFact : withFact)(state, name, value));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  const text = words.value.trim();
  const next = text || state.text ? { ...base(), text } : state;
  show({ ...next, where: where.value.trim() });
});

words.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const text = words.value.trim();
    if (text !== state.text) show({ ...base(), text }, { replace: Boolean(state.text) });
  }, 350);
});

form.addEventListener("change", (event) => {
  if (event.target.name === "to") show({ ...state, to: event.target.value });
});

codes.addEventListener("change", () => {
  localStorage.setItem("rmsh-codes", codes.checked ? "1" : "");
  run();
});

byId("home").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(fromAddress(""));
});

addEventListener("keydown", (event) => {
  const writing = event.target.closest?.("input:not([type=radio], [type=checkbox]), dialog");
  if (event.key !== "/" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  words.focus();
  words.select();
});

more.addEventListener("click", () => run({ skip: shown.hits.length }));
words.addEventListener("keydown", (event) => {
  const first = hits.querySelector(".onward");
  if (event.key !== "ArrowDown" || !first) return;
  event.preventDefault();
  first.focus();
});
hits.addEventListener("keydown", (event) => walk(hits, event, words));
hits.addEventListener("focusin", (event) => makeReachable(hits, event.target.closest("li")));
closeMenus(facets);
details.addEventListener("click", (event) => event.target === details && details.close());
addEventListener("popstate", () => {
  state = fromAddress(location.search);
  [words.value, where.value] = [state.text, state.where];
  run();
});
catchPictures({ choose: byId("choose"), file: byId("file"), overlay: byId("drop") }, searchPicture, (sentence) => fail(new api.Problem(sentence)));

async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname + location.search); // it does not stay in the address
  try {
    if (token) await api.signIn(token);
    library = await api.about();
  } catch (error) {
    return fail(error);
  }
  byId("name").textContent = library.name;
  byId("facts").replaceChildren(`${library.items.toLocaleString("en")} items`, element("span", { class: "extra" }, ` · ${library.bits}-bit codes · ${library.method}`));
  byId("credit").textContent = library.credit;
  byId("warning").textContent = library.warning;
  words.disabled = !library.takes.includes("text");
  byId("choose").hidden = !library.takes.includes("image");
  byId("composing").hidden = !library.composes;
  codes.checked = localStorage.getItem("rmsh-codes") === "1";
  api.facets().then((found) => { known = found; reflectFacets(); }, () => {}); // the page works without them
  return library;
}

function start() {
  ready = begin();
  return ready.then(() => library && run());
}

start();
