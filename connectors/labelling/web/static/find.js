"use strict";
// Finding events: a list of those that hold some words and values, or that are like one; each is labelled in the list.

let findingMore = null;    // the address of the older events in the list, if there are any
let searches = 0;          // how often was searched: a search that another one has followed shows nothing

const labelKeys = () => labels.flatMap((name, i) => classes.keys[i] ? [`${classes.keys[i].toUpperCase()} ${name}`] : []);

function openFinding() {
  if (!$("finding").open) $("finding").showModal();
  $("finding-keys").textContent = [...labelKeys(), "= more like this", "Enter opens it", "/ back to the words", "Esc closes"].join(", ");
  $("finding-like").hidden = !shown;
  $("query").select();
}

const search = () => fillFinding(`q=${encodeURIComponent($("query").value)}`);

// The events that are most like one; `id` is that of the event.
async function findLike({ query_id: question, id }) {
  openFinding();
  $("query").value = "";
  await fillFinding(`like=${encodeURIComponent(question)}`, id);
}

async function fillFinding(wanted, like) {
  const typed = $("query").value;
  $("finding-said").textContent = "Searching";
  $("finding-list").replaceChildren();
  $("finding-more").hidden = true;
  const data = await moreFinding(wanted);
  if (!data) return;
  const what = like === undefined ? `${count(data.n_found)} of ${count(data.n_events)} events.` : `The events that are most like event ${like}.`;
  $("finding-said").textContent = data.found.length ? what : `None of ${count(data.n_events)} events.`;
  if (data.found.length && $("query").value === typed) $("finding-list").querySelector("button").focus();  // else a person types the next search
}

async function moreFinding(wanted) {
  const data = await found(wanted);
  if (!data) return null;
  $("finding-more").hidden = data.next === null;
  findingMore = `${wanted.replace(/&before=\d+$/, "")}&before=${data.next}`;
  $("finding-list").append(...data.found.map(foundItem));
  return data;
}

// What the server finds when it has read all events; null: it refuses, or the result is no longer wanted.
async function found(wanted) {
  const mine = ++searches;
  for (;;) {
    let reply;
    try {
      reply = await call(`/api/find?${wanted}`);
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      reply = { ok: true, data: { is_loaded: false, error: error.message } };
    }
    if (mine !== searches || !$("finding").open) return null;
    const { ok, data } = reply;
    if (ok && data.is_loaded) return data;
    $("finding-said").textContent = data.error ? sentence(data.error) : `Reading the events: ${count(data.n_events)} so far.`;
    if (!ok) return null;
    await pause(LULL);
  }
}

function foundItem(one) {
  const item = element("li"), button = element("button"), words = element("span", undefined, "words");
  item.found = one;
  button.type = "button";
  if (one.image) button.append(thumbnail(one.image));
  words.append(element("b", `event ${one.id}`), element("span", one.text ?? "", "preview"));
  button.append(words, ...(one.op ? [given(one)] : []));
  button.addEventListener("click", () => showFound(one));
  item.append(button);
  return item;
}

// Answer about the event of a row, and go on to the next row.
async function labelFound(item, label) {
  const one = item.found;
  if (item.isBusy) return;
  item.isBusy = true;
  (item.nextElementSibling ?? item).firstChild.focus();
  const sent = { path: one.op ? "/api/correct" : "/api/answer", body: { query_id: one.query_id, label }, sender: { tab, name: myName } };
  keep(sent);
  const { ok, data } = await deliver(sent);
  $("finding-said").textContent = ok ? `Saved: ${label} for event ${one.id}.` : `Not saved: ${sentence(data.error)}`;
  const renewed = foundItem(ok ? { ...one, op: "set", label, now: label } : one), hadFocus = item.contains(document.activeElement);
  item.replaceWith(renewed);
  if (hadFocus) renewed.firstChild.focus();
}

// The event on the page, where everything that is known of it is seen.
async function showFound(one) {
  await visit($("finding"), one, ({ ok, data }) => {
    if (ok && data.question) show(data.question, data.answers);
    else say(`Event ${one.id} cannot be found any more.`);
  });
}

function findingKey(event) {
  const item = document.activeElement.closest("#finding-list li");
  if (event.target === $("query")) {
    if (event.key === "Enter") search();
    else if (event.key === "ArrowDown") $("finding-list").querySelector("button")?.focus();
    else return;
  } else if (event.key === "/") $("query").select();
  else if (!item) return;
  else if (event.key === "ArrowDown") (item.nextElementSibling?.firstChild ?? $("finding-more")).focus();
  else if (event.key === "ArrowUp") (item.previousElementSibling?.firstChild ?? $("query")).focus();
  else if (event.key === "=") findLike(item.found);
  else {
    const place = event.key.length === 1 && $("keys").checked ? classes.keys.indexOf(event.key.toLowerCase()) : -1;
    if (place < 0) return;
    labelFound(item, labels[place]);
  }
  event.preventDefault();
}

$("finding").addEventListener("keydown", (event) => {
  if (!$("finding").open) return;  // a row of a closed list has the focus for a moment
  if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && !event.isComposing) findingKey(event);
});
$("finding-open").addEventListener("click", openFinding);
$("finding-go").addEventListener("click", search);
$("finding-like").addEventListener("click", () => findLike(shown));
$("finding-more").addEventListener("click", () => moreFinding(findingMore));
$("finding-close").addEventListener("click", () => $("finding").close());
$("finding").addEventListener("click", (event) => { if (event.target === $("finding")) $("finding").close(); });
