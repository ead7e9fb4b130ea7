// Creates elements. Text is always set as text, so that HTML in captions is shown, not interpreted.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export function drawing(viewBox, parts, properties = {}) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", viewBox);
  for (const [name, value] of Object.entries(properties)) svg.setAttribute(name, value);
  for (const [tag, given] of parts) {
    const part = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(given)) part.setAttribute(name, value);
    svg.append(part);
  }
  return svg;
}

export const unseen = (text) => element("span", { class: "unseen" }, text);
