"use strict";
// Earlier answers: a list in pages, and one of them on the page again, to be corrected.

let older = null;          // the number of the oldest answer in the list, if there are older ones

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
  const before = older === null ? "" : `&before=${older}`;
  let reply;
  try {
    reply = await call(`/api/history?of=${$("history-of").value}${before}`);
  } catch (error) {
    $("history").close();
    return failed(error);
  }
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

async function review({ query_id: id, id: event }) {
  $("history").close();
  await idle();
  busy(true);
  overtake();
  try {
    const { ok, data } = await call(`/api/review?query_id=${encodeURIComponent(id)}`);
    if (!ok || !data.answers.length) say(`Event ${event} has no answer any more.`);
    else {
      show(data.question ?? { ...FORGOTTEN, query_id: id, id: event }, data.answers);
      say(data.question ? "" : `What event ${event} was is forgotten; its answer can be corrected.`);
    }
  } catch (error) { failed(error); }
  busy(false);
  if (!reviewed) hurry();
}

// Leave an earlier answer as it is.
async function leave() {
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
