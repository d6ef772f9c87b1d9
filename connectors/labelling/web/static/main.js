"use strict";
// What happens: looking for questions, answering, undoing, keys.

const LOOK = 15;           // s that the server may wait for a change before it replies
const LULL = 250;          // ms between two requests
const GUARD = 500;         // ms during which no answer counts after the question was replaced
const TYPING = 3000;       // ms during which no key answers, after a person wanted to type a class
const IDLE = 60000;        // ms without a key or a movement after which other annotators may get the question

let looking = new AbortController(), seen = -1;

// Ignore the reply to an earlier request.
function overtake() {
  looking.abort();
  looking = new AbortController();
  seen = -1;
}

async function look(wait) {
  const mine = looking.signal;
  let reply;
  try {
    reply = await call(`/api/next?wait=${wait}&seen=${seen}`, { wait, stop: mine });
  } catch (error) {
    if (mine.aborted) return;
    throw error;
  }
  if (mine.aborted) return;
  const { ok, data } = reply;
  if (!ok) throw new Lost(data.error);
  trouble(null);
  seen = data.seen;
  makeLabels(data);
  showStats(data.stats);
  undoable = data.undo;
  showUndo();
  if (!reviewed) showNext(data);
}

function showNext(data) {
  const before = shown && shown.query_id;
  if (data.question) {
    show(data.question);
    if (before && before !== data.question.query_id) {
      guardUntil = performance.now() + GUARD;
      say("That question is no longer needed. Here is another one.");
    }
  } else {
    showNothing(data.stats);
    if (before) say("That question is no longer needed.");
  }
}

async function next() {
  shown = reviewed = deciding = null;
  try { await look(0); } catch (error) { failed(error); }
  busy(false);
}

function failed(error) {
  if (!(error instanceof Lost)) throw error;
  trouble(error.message + " Trying again.");
}

let aliveAt = Date.now();
for (const sign of ["pointerdown", "pointermove", "keydown", "scroll"]) {
  document.addEventListener(sign, () => { aliveAt = Date.now(); }, { capture: true, passive: true });
}

// Each request renews this tab's reservation of its question.
async function follow() {
  for (;;) {
    await pause(LULL);
    if (isBusy || document.hidden || (shown && Date.now() - aliveAt > IDLE)) continue;
    try { await look(LOOK); } catch (error) { failed(error); await pause(4 * LULL); }
  }
}

// Who closes the page leaves the question to others; the request outlives the page.
addEventListener("pagehide", () => { call("/api/release", { body: {}, keepalive: true }).catch(() => {}); });

function mayAct() { return !isBusy && shown && performance.now() >= guardUntil; }

// Send an answer, and say what became of it.
async function act(path, body, done) {
  const question = shown, isHidden = $("guess").hidden, others = body.alike ? " and those like it" : "";
  const isDecision = Boolean(deciding);
  const item = { path: isDecision ? "/api/decide" : reviewed?.length ? "/api/correct" : path, body: { query_id: question.query_id, ...body }, sender: { tab, name: myName } };
  const isCorrection = Boolean(reviewed?.length);
  busy(true);
  overtake();
  keep(item);
  const { ok, data } = await deliver(item);
  const revealed = isHidden && question.margin !== null ? ` The model’s guess was: ${guess(question)}.` : "";
  if (!ok) say(`Not saved: ${data.error}.`);
  else if (isDecision) say(`Decided: event ${question.id} is ${body.label}.`);
  else if (isCorrection) say(`Corrected: event ${question.id} is now ${body.label ?? done.toLowerCase()}.`);
  else if (data.outcome === "stale") say(`Not saved: event ${question.id} has a newer answer.`);
  else say(`${body.label ? `Saved: ${data.label ?? done} for` : `${done}:`} event ${question.id}${others}${data.outcome === "changed" ? ", instead of another answer" : ""}.${revealed}`);
  if (isDecision) openDisputes();
  await next();
}

function answer(name) {
  if (mayAct()) act("/api/answer", { label: name, ...(isForAll() ? { alike: true } : {}) }, name);
}

// The class that the box names: one that there is, the only one left, or a new one.
function answerFound() {
  const name = $("class-name").value.trim(), found = findClasses();
  const twin = labels.includes(name) ? name : labels.find((one) => alike(one) === alike(name));
  const label = twin ?? (labels.length > MANY && found.length === 1 ? found[0] : classes.may_add ? name : "");
  if (!name || !mayAct()) return;
  if (!label) return say(classes.is_open ? `There is no room for “${name}”: ${classes.limit} classes are the limit (label.max_classes). Choose another class, or merge two of them.` : `There is no class “${name}”.`);
  $("class-name").value = "";
  $("class-name").blur();
  findClasses();
  answer(label);
}

function leaveFinder() {
  $("class-name").value = "";
  $("class-name").blur();
  findClasses();
}
function skip() {
  if (deciding || reviewed?.length === 0) leave();
  else if (mayAct()) act("/api/skip", reviewed ? { op: "skip" } : {}, "Skipped");
}
function ignore() {
  if (deciding || reviewed?.length === 0) leave();
  else if (mayAct()) act("/api/ignore", reviewed ? { op: "ignore" } : {}, "Ignored");
}

async function undo() {
  if (isBusy || !undoable) return;
  const item = { path: "/api/undo", body: { number: undoable.number }, sender: { tab, name: myName } };
  busy(true);
  overtake();
  keep(item);
  const { ok, data } = await deliver(item);
  say(ok ? undone(data) : `Not undone: ${data.error}.`);
  await next();
}

function undone({ outcome, answer: one }) {
  if (outcome === "replaced") return `Not undone: another annotator has changed the answer for event ${one.id}.`;
  if (outcome === "restored") return `Undone: the answer for event ${one.id} is again what it was before “${said(one)}”.`;
  return `Taken back: ${said(one)} for event ${one.id}. Here it is again.`;
}

const KEYS = new Map([["s", skip], ["i", ignore], ["u", undo], ["h", openHistory], ["/", openFinding], ["=", () => { if (shown) findLike(shown); }], ["z", () => toggleZoom()], ["+", () => { if (!$("alike-block").hidden) $("alike").click(); }], ["n", findClass], ["q", openDisputes], ["#", openClasses], ["escape", leave]]);

// Where no box is, what is typed next must answer nothing.
function findClass() {
  if (!$("find").hidden) return $("class-name").focus();
  guardUntil = performance.now() + TYPING;
  say("No class can be added. Choose one of those there are.");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || !$("keys").checked || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input[type=text]") && event.target.checkVisibility()) {  // the box of a closed list has the focus for a moment
    if (event.target === $("class-name") && event.key === "Enter") answerFound();
    else if (event.target === $("class-name") && event.key === "Escape") leaveFinder();
    else if (event.key === "Enter") event.target.blur();
    return;
  }
  const action = KEYS.get(event.key.toLowerCase());
  const place = event.key.length === 1 ? (classes.keys ?? []).indexOf(event.key.toLowerCase()) : -1;
  if (action) action();
  else if (place >= 0) answer(labels[place]);
  else return;
  event.preventDefault();
});

$("class-name").addEventListener("input", findClasses);
$("skip").addEventListener("click", skip);
$("ignore").addEventListener("click", ignore);
$("undo").addEventListener("click", undo);
$("rest-undo").addEventListener("click", undo);
$("again").addEventListener("click", hurry);
$("more").addEventListener("click", () => showFeatures(shown, $("more").getAttribute("aria-expanded") !== "true"));
$("name").addEventListener("change", () => {
  myName = $("name").value.trim();
  store(localStorage, "name", myName);
  overtake();
});
$("hide-guess").addEventListener("change", () => {
  store(localStorage, "hide-guess", $("hide-guess").checked);
  if (shown) showGuess();
});
$("alike").addEventListener("change", () => { if (!shown?.almost) store(localStorage, "alike", $("alike").checked); });
$("alike-show").addEventListener("click", () => findLike(shown));
$("keys").addEventListener("change", () => store(localStorage, "keys", $("keys").checked));
document.addEventListener("visibilitychange", () => document.hidden ? overtake() : hurry());

async function start() {
  readAddress();
  window.addEventListener("hashchange", readAddress);
  $("name").value = myName = stored(localStorage, "name") ?? "";
  $("keys").checked = stored(localStorage, "keys") ?? true;
  $("hide-guess").checked = stored(localStorage, "hide-guess") ?? false;
  if (tab) channel.postMessage({ ask: tab, from: me });
  else newTab();
  await findToken();
  for (const item of kept()) {
    const { ok, data } = await deliver(item);
    say(ok ? "An earlier answer was waiting in this browser; it is saved now." : `An earlier answer was not saved: ${data.error}.`);
  }
  await introduce();
  await next();
  follow();
}

async function introduce() {
  try {
    const { data } = await call("/api/about");
    makeLabels(data);
    showGuide(data.instructions);
  } catch (error) { failed(error); }
}
start();
