"use strict";
// The question: what is shown of the event.

let shown = null, guardUntil = 0, isBusy = true, labels = [];
let last = null;           // the answer that can be taken back

function trouble(text) {
  if (text) $("trouble").textContent = text;
  $("banner").hidden = !text;
}
function say(text) { $("said").textContent = text; }

function busy(value) {
  isBusy = value;
  for (const button of document.querySelectorAll(".answer button")) button.setAttribute("aria-disabled", value);
  showUndo();
}

function showUndo() {
  const can = Boolean(last) && Date.now() - last.at < UNDO && !isBusy;
  $("undo").setAttribute("aria-disabled", !can);
  $("undo").setAttribute("aria-label", can ? `Undo: ${last.label} (key U)` : "Undo (key U), nothing to undo");
  $("rest-undo").hidden = !can;
}

function number(value) {
  if (typeof value !== "number") return String(value);
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toExponential(3);
  return new Intl.NumberFormat("en", { maximumSignificantDigits: 5 }).format(value);
}
const count = (value) => new Intl.NumberFormat("en").format(value);
const percent = (share) => `${Math.round(100 * share)} %`;

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function makeLabels(names) {
  if (JSON.stringify(names) === JSON.stringify(labels)) return;
  labels = names;
  $("labels").replaceChildren(...labels.map((name, i) => {
    const button = element("button", undefined, i ? "neg" : "pos");
    const key = element("kbd", i + 1);
    key.setAttribute("aria-hidden", "true");
    button.type = "button";
    button.append(key, element("span", name));
    button.setAttribute("aria-label", `${name} (key ${i + 1})`);
    button.setAttribute("aria-disabled", isBusy);
    button.addEventListener("click", () => answer(i));
    return button;
  }));
  $("key-list").textContent = [...labels.map((name, i) => `${i + 1} ${name}`), "S skip (cannot tell)", "I ignore (useless event)", "U undo"].join(", ");
  $("high").textContent = labels[0];
  $("low").textContent = labels[1];
}

function show(question) {
  const isNew = !shown || shown.query_id !== question.query_id;
  shown = question;
  $("rest").hidden = true;
  $("question").hidden = false;
  if (!isNew) return;
  const [title, why] = REASONS[question.reason] || [question.reason, ""];
  $("reason").textContent = title;
  $("because").textContent = why;
  $("ident").textContent = "event " + question.id;
  showScore(question);
  showText(question.text);
  showImage(question.image);
  showSeries(question.series);
  showFeatures(question, false);
  window.scrollTo({ top: 0 });
}

function showScore({ score, margin }) {
  const place = score ?? 1 / (1 + Math.exp(-2 * margin));
  $("marker").style.left = `${100 * Math.min(.985, Math.max(.015, place))}%`;
  const sure = score === null ? "" : place >= .5 ? `${percent(score)} ${labels[0]}, ` : `${percent(1 - score)} ${labels[1]}, `;
  $("opinion").title = "The margin says how far this event is from the border between the two labels: near 0, the model is unsure.";
  $("opinion").textContent = `${sure}margin ${margin < 0 ? "−" : "+"}${Math.abs(margin).toFixed(2)}`;
}

function showText(text) {
  $("text-block").hidden = text === null;
  $("text").textContent = text ?? "";
  $("text").scrollTop = 0;
}

function showImage(address) {
  $("image-block").hidden = address === null;
  $("no-image").hidden = true;
  $("image").hidden = false;
  if (address === null) return $("image").removeAttribute("src");
  if (/^(https?:\/\/|data:image\/)/i.test(address)) $("image").src = address;
  else noImage(address);
}
function noImage(address) {
  $("image").hidden = true;
  $("image").removeAttribute("src");
  $("no-image").hidden = false;
  $("no-image").textContent = `This image cannot be shown: ${address.slice(0, 200)}`;
}

function showSeries(values) {
  $("series-block").hidden = values === null;
  if (values !== null) {
    const last = values.length - 1;
    $("series").replaceChildren(plot([{ points: values.map((y, x) => [x, y]), style: "ink" }], {
      width: Math.max(240, $("series").clientWidth), height: 120, about: `Series of ${values.length} values, from ${number(least(values))} to ${number(most(values))}`, ends: ["first", last ? "last" : ""],
    }));
  }
}

function showFeatures({ x, unusual }, all) {
  const isUnusual = (name) => Object.hasOwn(unusual, name), weight = (name) => isUnusual(name) ? Math.abs(unusual[name]) : 0;
  const names = Object.keys(x).sort((a, b) => weight(b) - weight(a) || (x[b] !== 0) - (x[a] !== 0));
  $("table-block").hidden = names.length === 0;
  const some = all ? names : names.slice(0, Math.max(SHOWN, Math.min(40, Object.keys(unusual).length)));
  const isOdd = names.some(isUnusual);
  $("odd-head").hidden = !isOdd;
  $("features").replaceChildren(...some.map((name) => {
    const row = element("tr", undefined, isUnusual(name) ? "odd" : "");
    const head = element("th", name), value = element("td", number(x[name]), x[name] === 0 ? "number zero" : "number");
    head.scope = "row";
    value.title = String(x[name]);
    row.append(head, value);
    if (isOdd) {
      const cell = element("td");
      if (isUnusual(name)) {
        const by = unusual[name];
        const badge = element("span", `${by > 0 ? "▲" : "▼"} ${number(Number(Math.abs(by).toPrecision(2)))} σ`, "badge");
        badge.append(element("span", by > 0 ? " above the mean" : " below the mean", "far"));
        cell.append(badge);
      }
      row.append(cell);
    }
    return row;
  }));
  $("more").hidden = names.length <= SHOWN || (!all && some.length === names.length);
  $("more").textContent = all ? "Show fewer features" : `Show all ${names.length} features`;
  $("more").setAttribute("aria-expanded", all);
}
