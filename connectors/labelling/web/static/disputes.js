"use strict";
// Doubtful answers, for the person who decides: people disagree, or the model contradicts. Here the names are shown.

async function openDisputes() {
  if (document.querySelector("dialog[open]")) return;
  $("disputes-said").textContent = "";
  $("disputes-list").replaceChildren();
  $("disputes").showModal();
  try { showDisputes((await call("/api/disputes")).data.disputes); } catch (error) {
    $("disputes").close();
    failed(error);
  }
}

function showDisputes(disputes) {
  $("disputes-said").textContent = disputes.length ? "Choose one to decide it. What you decide holds; it is no vote." : "There are none.";
  $("disputes-list").replaceChildren(...disputes.map(disputeItem));
  $("disputes-list").querySelector("button")?.focus();
}

function disputeItem(one) {
  const item = element("li"), button = element("button"), words = element("span", undefined, "words");
  button.type = "button";
  if (one.image) button.append(thumbnail(one.image));
  words.append(element("b", `event ${one.id}`), element("span", one.text ?? "", "preview"), element("span", DISPUTES[one.kind], "soft"));
  button.append(words, element("span", votes(one.answers), "given"));
  button.addEventListener("click", () => openDispute(one));
  item.append(button);
  return item;
}

async function openDispute(one) {
  await visit($("disputes"), one, ({ data }) => {
    show(data.question ?? { ...FORGOTTEN, query_id: one.query_id, id: one.id }, one.answers, one);
    say("");
  });
}

$("open-disputes").addEventListener("click", openDisputes);
$("disputes-close").addEventListener("click", () => $("disputes").close());
