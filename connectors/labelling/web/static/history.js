"use strict";
// Earlier answers: a list in pages, and one of them on the page again, to be corrected.

let older = null;          // the number of the oldest answer in the list, if there are older ones
let pages = 0;             // how often a page was asked for: one that another has followed is not shown
let visiting = null;       // stops the request for an earlier question, while there is one

async function openHistory() {
  if ($("history").open) return;
  $("history").showModal();
  await fillHistory();
}

async function fillHistory() {
  older = null;
  $("history-list").replaceChildren();
  await moreHistory();
}

async function moreHistory() {
  const before = older === null ? "" : `&before=${older}`, mine = ++pages;
  let reply;
  try {
    reply = await call(`/api/history?of=${$("history-of").value}${before}`);
  } catch (error) {
    $("history").close();
    return failed(error);
  }
  if (mine !== pages) return;
  const { answers, is_all: isAll } = reply.data;
  $("history-list").append(...answers.map(historyItem));
  $("history-empty").hidden = $("history-list").childElementCount > 0;
  $("history-more").hidden = isAll;
  older = answers.at(-1)?.number ?? older;
}

function historyItem(one) {
  const item = element("li"), button = element("button"), words = element("span", undefined, "words");
  button.type = "button";
  if (one.image) button.append(thumbnail(one.image));
  const by = one.by && $("history-of").value === "all" ? `${one.by}, ` : "";
  words.append(element("b", `event ${one.id}`), element("span", one.text ?? "", "preview"), element("span", by + time(one.at), "soft"));
  button.append(words, given(one));
  button.addEventListener("click", () => review(one));
  item.append(button);
  return item;
}

function thumbnail(address) {
  const picture = element("img", undefined, "thumbnail");
  picture.alt = "";
  picture.referrerPolicy = "no-referrer";
  if (!address.startsWith("/")) picture.src = address;
  else {
    picture.dataset.file = address;
    inSight.observe(picture);
  }
  return picture;
}

// Small copies of files are fetched when they come into sight.
const inSight = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) {
    inSight.unobserve(target);
    fillThumbnail(target);
  }
});

async function fillThumbnail(picture) {
  const content = await fileAt(picture.dataset.file).catch(() => null);
  if (!content) return;
  picture.addEventListener("load", () => URL.revokeObjectURL(picture.src), { once: true });
  picture.src = URL.createObjectURL(content);
}

// An answer as a list shows it.
function given(one) {
  const style = one.op !== "set" || classes.is_multiclass ? "" : one.label === labels[0] ? " pos" : " neg";
  return element("span", said(one), "given" + style);
}

const FORGOTTEN = { x: {}, unusual: {}, text: null, image: null, refused_image: null, series: null, fields: {}, margin: null, score: null, guess: null };

async function review(one) {
  const { query_id: id, id: event } = one;
  await visit($("history"), one, ({ ok, data }) => {
    if (!ok || !data.answers.length) return say(`Event ${event} has no answer any more.`);
    show(data.question ?? { ...FORGOTTEN, query_id: id, id: event }, data.answers);
    say(data.question ? "" : `What event ${event} was is forgotten; its answer can be corrected.`);
  });
}

// Go from a list to one of its events, and show what the server says of it. To leave meanwhile shows nothing.
async function visit(list, { query_id: id }, showReply) {
  list.close();
  visiting?.abort();
  const mine = visiting = new AbortController();
  await idle();
  busy(true);
  overtake();
  try {
    showReply(await call(`/api/review?query_id=${encodeURIComponent(id)}`, { stop: mine.signal }));
  } catch (error) { if (!mine.signal.aborted) failed(error); }
  if (visiting === mine) visiting = null;
  busy(false);
  if (!reviewed) hurry();
}

// Leave an earlier answer as it is.
async function leave() {
  visiting?.abort();
  if (!reviewed || isBusy) return;
  busy(true);
  await next();
}

$("earlier").addEventListener("click", openHistory);
$("rest-earlier").addEventListener("click", openHistory);
$("back").addEventListener("click", leave);
$("history-of").addEventListener("change", fillHistory);
$("history-more").addEventListener("click", moreHistory);
$("history-close").addEventListener("click", () => $("history").close());
$("history").addEventListener("click", (event) => { if (event.target === $("history")) $("history").close(); });
