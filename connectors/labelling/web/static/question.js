"use strict";
// The question: what is shown of the event.

const SHOWN = 14;          // values that are shown before "show all"
const SLOW = 2000;         // ms without a reply after which the page says so
const TICK = 20;           // ms after which a busy page is looked at again
const FAR = 6;             // standard deviations
const MANY = 20;           // classes, above which there is a box to search them
const REASONS = {
  seed: ["First examples", "The model first needs a few answers of each kind."],
  boundary: ["The model is unsure", "Of the events that it looked at, the model is least sure of this one."],
  novel: ["Something new", "This event is unlike those that have an answer."],
  explore: ["A look elsewhere", "Picked to find mistakes that the model does not suspect."],
  recheck: ["Please check again", "An earlier answer to this one does not fit the others. It is not shown."],
  spare: ["Meanwhile", "Others have the open questions. This event was picked at random, so that you need not wait."],
  found: ["Found", "The model did not ask about it."],
  undecided: ["Not decided", "The model cannot tell surely enough to decide this one alone."],
  check: ["A decision is checked", "The model decided this one alone. It is picked at random, to see how often it is wrong."],
  review: ["Looks positive", "All events that look like this one are asked about."],
  hunt: ["Like one just found", "A random check has found one that the model did not suspect. This is the most like it."],
  audit: ["Random check", "Picked at random. Answers like this one show how good the model is."],
};

let shown = null;          // the question on the page
let reviewed = null;       // the answers to it, if it is an earlier one, or one that the annotator has found
let deciding = null;       // the disagreement that the answer decides, if it does
let undoable = null;       // the answer that can be undone
let guardUntil = 0, isBusy = true, labels = [];
let classes = {};          // what the server says of the classes: labels, keys, is_multiclass, may_add, is_open, limit

function trouble(text) {
  if (text) $("trouble").textContent = text;
  $("banner").hidden = !text;
}
function say(text) { $("said").textContent = text; }

let slowly;
function busy(value) {
  isBusy = value;
  clearTimeout(slowly);
  if (value) slowly = setTimeout(() => trouble("The server has not answered yet. What you did is kept in this browser."), SLOW);
  for (const button of document.querySelectorAll(".answer button")) button.setAttribute("aria-disabled", value);
  showUndo();
}

// Wait until the page is no longer busy.
async function idle() { while (isBusy) await pause(TICK); }

function showUndo() {
  const can = Boolean(undoable) && !isBusy;
  $("undo").setAttribute("aria-disabled", !can);
  $("undo").setAttribute("aria-label", can ? `Undo: ${said(undoable)} (key U)` : "Undo (key U), nothing to undo");
  $("rest-undo").hidden = !can;
}

// An answer in words.
const said = ({ op, label, now }) => op === "set" || op === "decide" ? (now === label ? label : `${label} (now ${now ?? "removed"})`) : op === "retract" ? "taken back" : op === "skip" ? "skipped" : "ignored";

function makeLabels({ labels: names, is_multiclass, may_add, is_open, limit, keys }) {
  const found = { labels: names, is_multiclass, may_add, is_open, limit, keys };
  if (JSON.stringify(found) === JSON.stringify(classes)) return;
  classes = found;
  labels = names;
  $("labels").classList.toggle("several", is_multiclass);
  $("labels").style.setProperty("--longest", Math.max(...labels.map((name) => name.length), 0));  // so that short names take little room
  $("labels").replaceChildren(...labels.map((name, i) => {
    const button = element("button", undefined, is_multiclass ? "" : i ? "neg" : "pos"), letter = keys[i].toUpperCase();
    const key = element("kbd", letter);
    key.setAttribute("aria-hidden", "true");
    button.type = "button";
    button.append(...(letter ? [key] : []), element("span", name));
    button.setAttribute("aria-label", letter ? `${name} (key ${letter})` : name);
    button.setAttribute("aria-disabled", isBusy);
    button.addEventListener("click", () => answer(name));
    return button;
  }));
  makeFinder();
  $("key-list").textContent = [...labelKeys(), ...($("find").hidden ? [] : [`N ${$("class-name").placeholder.toLowerCase()}`]), "S skip (cannot tell)", "I ignore (useless event)", "U undo", "H earlier answers", "/ find", "= more like this", "Z zoom"].join(", ");
}

// The box that finds a class among many, or adds one.
function makeFinder() {
  const isMany = labels.length > MANY, words = isMany && classes.may_add ? "Find or add a class" : isMany ? "Find a class" : classes.may_add ? "Add a class" : `No more than ${classes.limit} classes`;
  $("find").hidden = !isMany && !classes.is_open;
  $("open-classes").hidden = !classes.is_multiclass;
  $("class-name").placeholder = words;
  $("class-name").setAttribute("aria-label", `${words} (key N)`);
  findClasses();
}

// A name without what tells "Alpha" from "alpha".
const alike = (name) => name.normalize("NFKC").toLowerCase().replace(/\s/g, "");

// The classes that the box asks for; all of them if there are few.
function findClasses() {
  const wanted = $("class-name").value.trim().toLowerCase();
  const names = labels.filter((name) => labels.length <= MANY || name.toLowerCase().includes(wanted));
  [...$("labels").children].forEach((button, i) => { button.hidden = !names.includes(labels[i]); });
  return names;
}

const TIED = ["Please decide", "People disagree about this one, and your answer decides. Theirs are not shown, so that you judge for yourself."];

function show(question, answers = null, dispute = null) {
  const isNew = !shown || shown.query_id !== question.query_id || reviewed !== answers;
  shown = question;
  reviewed = answers;
  deciding = dispute;
  $("rest").hidden = true;
  $("question").hidden = false;
  if (!isNew) return;
  const [title, why] = question.is_tied ? TIED : deciding ? ["Your decision", ""] : answers?.length ? ["Earlier answer", ""] : answers ? REASONS.found : REASONS[question.reason] || [question.reason, ""];
  $("reason").textContent = title;
  $("because").textContent = why;
  $("ident").textContent = "event " + question.id;
  showReviewed(answers);
  showImage(question.image, question.refused_image);
  showText(question.text);
  showFields(question.fields);
  showSeries(question.series);
  showGuess();
  showAlike();
  showTable(question);
  window.scrollTo({ top: 0 });
}

const DISPUTES = {
  tied: "People disagree, and the question waits for one more of them.",
  settled: "People disagree.",
  doubt: "The model contradicts this answer.",
};

// Who answered what.
const votes = (answers) => answers.map((one) => `${one.by || "Without a name"}: ${said(one)}`).join(" · ");

// What was answered before, if this is an earlier question.
function showReviewed(answers) {
  $("reviewed").hidden = !answers;
  if (!answers) return;
  if (deciding) return $("reviewed-text").replaceChildren(`${DISPUTES[deciding.kind]} `, element("b", votes(deciding.answers) || "The earlier answer is forgotten"), ". Your answer decides, whatever others say.");
  if (!answers.length) return $("reviewed-text").replaceChildren("You have found this event. Choose a label for it.");
  const newest = answers.at(-1), others = answers.slice(0, -1).map((one) => `${said(one)}${one.by && ` by ${one.by}`}`);
  $("reviewed-text").replaceChildren(
    "The answer is ", element("b", said(newest)), `${newest.by && `, by ${newest.by}`}, ${time(newest.at)}.`,
    others.length ? ` Before: ${others.join(", ")}.` : "", " Choose another one to correct it.",
  );
}

// The guess in words: as a share, if the model gives one.
function guess({ score, margin, guess: label }) {
  if (classes.is_multiclass) return label === null ? "none yet" : `${label}, ${percent(score)} sure`;
  if (score !== null && percent(score) === percent(.5)) return "undecided";
  if (score !== null) return score >= .5 ? `${labels[0]}, ${percent(score)} sure` : `${labels[1]}, ${percent(1 - score)} sure`;
  const likely = margin > 0 ? labels[0] : labels[1];
  return Math.abs(margin) >= 1 ? `${likely}, sure` : Math.abs(margin) >= .3 ? `rather ${likely}` : `unsure, perhaps ${likely}`;
}

function showGuess() {
  const isKnown = shown.margin !== null;
  $("guess").hidden = !isKnown || ($("hide-guess").checked && !reviewed);
  const speaking = (shown.speaking ?? []).map(({ id, label }) => `${id} (${label})`);
  $("speaking").hidden = $("guess").hidden || !speaking.length;
  $("speaking").textContent = `${speaking.length > 1 ? "These answers speak" : "This answer speaks"} most for the model’s guess: ${speaking.join(", ")}.`;
  if (!isKnown) return;
  $("marker").parentElement.hidden = classes.is_multiclass;
  const place = shown.score ?? 1 / (1 + Math.exp(-2 * shown.margin));
  $("marker").style.left = `${100 * Math.min(.985, Math.max(.015, 1 - place))}%`;   // the sides are those of the buttons
  $("opinion").textContent = guess(shown);
}

// Copies, which one answer may be for; events that are only almost the same, if a person says so each time.
const isForAll = () => !$("alike-block").hidden && $("alike").checked;

function showAlike() {
  const n = shown.alike?.length ?? 0;
  $("alike-block").hidden = n === 0 || Boolean(reviewed);
  $("alike").checked = !shown.almost && (stored(localStorage, "alike") ?? true);
  $("alike-text").replaceChildren("Also for ", element("b", `${count(n)} ${shown.almost ? "almost like it" : "like it"}`), " ", element("kbd", "+"));
}

function showText(text) {
  $("text-block").hidden = text === null;
  $("text").replaceChildren(...linked(text ?? ""));
  $("text").scrollTop = 0;
}

// Other fields of the event, such as those of `streamsvm produce --show`.
function showFields(fields) {
  const names = Object.keys(fields);
  $("fields-block").hidden = names.length === 0;
  $("fields").replaceChildren(...names.flatMap((name) => [element("dt", name), element("dd", fields[name])]));
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

// The table is folded where there is something else to look at.
function showTable(question) {
  $("table-block").open = question.image === null && question.text === null && question.series === null;
  $("table-title").textContent = `Values (${count(Object.keys(question.x).length)})`;
  showFeatures(question, false);
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
        cell.append(unusualBadge(unusual[name]));
      }
      row.append(cell);
    }
    return row;
  }));
  $("more").hidden = names.length <= SHOWN || (!all && some.length === names.length);
  $("more").textContent = all ? "Show fewer values" : `Show all ${names.length} values`;
  $("more").setAttribute("aria-expanded", all);
}

function unusualBadge(by) {
  const badge = element("span", `${by > 0 ? "▲" : "▼"} ${Math.abs(by) >= FAR ? "extremely" : "unusually"} ${by > 0 ? "high" : "low"}`, "badge");
  badge.title = `${number(Number(Math.abs(by).toPrecision(2)))} standard deviations ${by > 0 ? "above" : "below"} the mean`;
  return badge;
}
