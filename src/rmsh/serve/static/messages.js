// Messages shown instead of results: no hits, an error, or a request for the access token.

import { Problem } from "./api.js";
import { element } from "./elements.js";

const place = document.getElementById("message");

const button = (words, onclick) => element("button", { type: "button", onclick }, words);
const told = (headline, sentence) => element("p", {}, element("strong", {}, headline), sentence);

function say(kind, role, ...parts) {
  place.className = `message ${kind}`;
  if (role) place.setAttribute("role", role);
  else place.removeAttribute("role");
  place.hidden = false;
  place.replaceChildren(...parts);
}

export const silence = () => { place.hidden = true; };
export const isSilent = () => place.hidden;

export function sayNothingFound(headline, sentence, [words, onclick]) {
  say("", null, told(headline, sentence), button(words, onclick));
}

export function sayProblem(error, again) {
  if (!(error instanceof Problem)) console.error(error);
  const sentence = error instanceof Problem ? error.message : "Something went wrong on this page; reload it.";
  say("problem", "alert", told("That did not work", sentence), button("Try again", again));
}

export function askToken(sentence, enter) {
  const field = element("input", { type: "password", id: "token", required: true, autocomplete: "current-password", placeholder: "Token" });
  const form = element("form", {}, element("label", { class: "unseen", for: "token" }, "Token"), field, element("button", { type: "submit" }, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    enter(field.value.trim());
  });
  say("", null, told("This library is private", sentence), form);
  field.focus();
}
