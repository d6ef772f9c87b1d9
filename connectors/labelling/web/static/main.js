"use strict";
// What happens: looking for questions, answering, undoing, keys.

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
  makeLabels(data.labels);
  showStats(data.stats);
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
  shown = null;
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

function mayAct() { return !isBusy && shown && performance.now() >= guardUntil; }

async function act(path, body, done) {
  const question = shown;
  const item = { path, body: { query_id: question.query_id, ...body }, sender: { tab, name: myName } };
  busy(true);
  overtake();
  keep(item);
  const { ok, data } = await deliver(item);
  if (ok) done(question, data, item.sender);
  else say(`Not saved: ${data.error}.`);
  await next();
}

function answer(i) {
  if (!mayAct()) return;
  const label = labels[i];
  act("/api/answer", { label }, ({ id }, { outcome }, sender) => {
    if (outcome === "stale") return say(`Not saved: event ${id} has a newer answer.`);
    remember({ id, label, sender, at: Date.now() });
    say(`Saved: ${label} for event ${id}${outcome === "changed" ? ", instead of another answer" : ""}.`);
  });
}
function skip() {
  if (mayAct()) act("/api/skip", {}, ({ id }) => say(`Skipped: event ${id}.`));
}
function ignore() {
  if (mayAct()) act("/api/ignore", {}, ({ id }) => say(`Ignored: event ${id}.`));
}

async function undo() {
  if (isBusy || !last || Date.now() - last.at >= UNDO) return;
  busy(true);
  overtake();
  try {
    const { ok, data } = await call("/api/undo", { body: {}, sender: last.sender });
    say(ok ? `Taken back: ${last.label} for event ${last.id}. Here it is again.` : `Not taken back: ${data.error}.`);
    remember(null);
    await next();
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
    trouble(error.message + " Your answer may still count: try Undo again.");
    busy(false);
  }
}

// The answer that can be taken back; it survives a reload.
function remember(answered) {
  last = answered;
  store(sessionStorage, "last", last);
  showUndo();
  if (last) setTimeout(showUndo, last.at + UNDO - Date.now());
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || !$("keys").checked) return;
  if (event.target.matches("input[type=text]")) {
    if (event.key === "Enter") event.target.blur();
    return;
  }
  const action = new Map([["s", skip], ["i", ignore], ["u", undo]]).get(event.key.toLowerCase());
  const place = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
  if (action) action();
  else if (place >= 0 && place < labels.length) answer(place);
  else return;
  event.preventDefault();
});

$("skip").addEventListener("click", skip);
$("ignore").addEventListener("click", ignore);
$("undo").addEventListener("click", undo);
$("rest-undo").addEventListener("click", undo);
$("again").addEventListener("click", hurry);
$("image").addEventListener("load", () => $("image").classList.toggle("tiny", $("image").naturalWidth < 64));
$("image").addEventListener("error", () => noImage($("image").src));
$("more").addEventListener("click", () => showFeatures(shown, $("more").getAttribute("aria-expanded") !== "true"));
$("name").addEventListener("change", () => {
  myName = $("name").value.trim();
  store(localStorage, "name", myName);
  overtake();
});
$("keys").addEventListener("change", () => store(localStorage, "keys", $("keys").checked));
document.addEventListener("visibilitychange", () => document.hidden ? overtake() : hurry());

async function start() {
  readAddress();
  window.addEventListener("hashchange", readAddress);
  $("name").value = myName = stored(localStorage, "name") ?? "";
  $("keys").checked = stored(localStorage, "keys") ?? true;
  remember(stored(sessionStorage, "last"));
  if (tab) channel.postMessage({ ask: tab, from: me });
  else newTab();
  await findToken();
  for (const item of kept()) {
    const { ok, data } = await deliver(item);
    say(ok ? "An earlier answer was waiting in this browser; it is saved now." : `An earlier answer was not saved: ${data.error}.`);
  }
  await next();
  follow();
}
start();
