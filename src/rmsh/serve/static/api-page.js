// Describes the HTTP API from the server's own openapi.json.

import { element } from "./elements.js";

const COLUMNS = ["Parameter", "Type", "Default", "Meaning"];

function typeOf({ type, anyOf, items, format, minimum, maximum, maxLength, maxItems, enum: choices, contentMediaType }) {
  if (anyOf) return anyOf.filter((one) => one.type !== "null").map(typeOf).join(" or ");
  if (choices) return choices.join(", ");
  if (format === "binary" || contentMediaType) return "file";
  if (type === "array") return `${typeOf(items)}${maxItems ? `, up to ${maxItems} times` : ", repeatable"}`;
  const limits = minimum !== undefined && maximum !== undefined ? `, ${minimum} to ${maximum}` : maxLength ? `, up to ${maxLength} characters` : "";
  return `${type ?? "any"}${limits}`;
}

function defaultOf(schema, required) {
  if (required) return "required";
  return schema.default === undefined || schema.default === null ? "" : Array.isArray(schema.default) ? "none" : String(schema.default);
}

// Text between backticks is code.
const marked = (text) => text.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part));

const row = (name, schema, { required, description }) =>
  element("tr", {}, element("th", { scope: "row" }, name),
    ...[typeOf(schema), defaultOf(schema, required)].map((text) => element("td", {}, text)),
    element("td", {}, ...marked(description ?? schema.description ?? "")));

// The fields of a form or JSON body, with references to the schemas of the description resolved.
function bodyRows(body, schemas) {
  const [content] = Object.values(body?.content ?? {}).filter((one) => one.schema);
  const schema = content?.schema.$ref ? schemas[content.schema.$ref.split("/").at(-1)] : content?.schema;
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => row(name, field, { required: schema.required?.includes(name) }));
}

function section(path, method, route, schemas) {
  const rows = [
    ...(route.parameters ?? []).map((one) => row(one.name, one.schema, one)),
    ...bodyRows(route.requestBody, schemas),
  ];
  const head = element("thead", {}, element("tr", {}, ...COLUMNS.map((name) => element("th", { scope: "col" }, name))));
  return element("section", { tabindex: "0", "aria-label": `${method.toUpperCase()} ${path}` },
    element("h2", {}, element("b", {}, method.toUpperCase()), element("code", {}, path)),
    element("p", {}, route.description ?? ""),
    rows.length ? element("table", {}, head, element("tbody", {}, ...rows)) : null);
}

async function show() {
  const about = document.getElementById("about");
  let response;
  try {
    response = await fetch("../openapi.json");
  } catch {
    about.textContent = "The server does not respond.";
    return;
  }
  const answer = await response.json();
  if (!response.ok) {
    about.textContent = `${answer.error} Open the search page first.`;
    return;
  }
  about.textContent = answer.info.description;
  const routes = Object.entries(answer.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => [path, method, route]));
  document.getElementById("routes").append(...routes.map((route) => section(...route, answer.components.schemas)));
}

show();
