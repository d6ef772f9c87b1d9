"use strict";
// Words: numbers and times for people, and texts as elements. Nothing here is HTML: texts stay texts.

const count = (value) => new Intl.NumberFormat("en").format(value);
const percent = (share) => `${Math.round(100 * share)} %`;
const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");

function number(value) {
  if (typeof value !== "number") return String(value);
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toExponential(3);
  return new Intl.NumberFormat("en", { maximumSignificantDigits: 5 }).format(value);
}

function time(at) {
  const then = new Date(at), isToday = then.toDateString() === new Date().toDateString();
  return then.toLocaleString([], isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function link(address, ...content) {
  const node = element("a");
  node.href = address;
  node.target = "_blank";
  node.rel = "noopener noreferrer";
  node.append(...content);
  return node;
}

// A text with links for the addresses in it.
function linked(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(/https?:\/\/[^\s<>"]+/gi)) {
    const address = withoutPunctuation(match[0]);
    nodes.push(text.slice(end, match.index), URL.canParse(address) ? link(address, address) : address);
    end = match.index + address.length;
  }
  return [...nodes, text.slice(end)];
}
function withoutPunctuation(address) {
  const bare = address.replace(/[.,;:!?'’”\]]+$/, "");
  return bare.endsWith(")") && !bare.includes("(") ? withoutPunctuation(bare.slice(0, -1)) : bare;
}

// --- instructions, as the tree that the server makes of Markdown ------------------------------------------------------

const INLINE = { strong: "strong", em: "em", code: "code" };

function line(parts) {
  return parts.map((part) => {
    if (typeof part === "string") return part;
    const [kind, ...rest] = part;
    if (kind === "a") return link(rest[0], ...line(rest[1]));
    const node = element(INLINE[kind]);
    node.append(...(kind === "code" ? rest : line(rest[0])));
    return node;
  });
}

function block([kind, ...rest]) {
  const node = element(kind === "h" ? `h${Math.min(6, rest[0] + 2)}` : kind);
  if (kind === "h") node.append(...line(rest[1]));
  else if (kind === "p") node.append(...line(rest[0]));
  else for (const parts of rest[0]) {
    const item = element("li");
    item.append(...line(parts));
    node.append(item);
  }
  return node;
}

// The instructions are open until a person closes them, and again when they change. The summary's click comes before the change.
function showGuide(blocks) {
  const guide = $("guide"), text = JSON.stringify(blocks);
  guide.hidden = blocks.length === 0;
  $("guide-text").replaceChildren(...blocks.map(block));
  guide.open = stored(localStorage, "guide") !== text;
  guide.firstElementChild.onclick = () => store(localStorage, "guide", guide.open ? text : null);
}
