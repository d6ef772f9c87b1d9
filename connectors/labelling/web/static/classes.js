"use strict";
// The classes, to be renamed, merged and removed.

async function openClasses() {
  if (!classes.is_multiclass || document.querySelector("dialog[open]")) return;
  $("classes-said").textContent = "";
  $("class-changes").showModal();
  try { showClassList((await call("/api/classes")).data); } catch (error) {
    $("class-changes").close();
    failed(error);
  }
}

function showClassList({ classes: found, changes }) {
  $("classes-list").replaceChildren(...found.map((one) => classItem(one, found)));
  $("classes-past").hidden = changes.length === 0;
  $("classes-changes").replaceChildren(...changes.map((one) => element("li", `${changeInWords(one)}${one.by && `, by ${one.by}`}, ${time(one.at)}`)));
}

function changeInWords({ op, from, to }) {
  if (op === "restore") return `“${from}” came again`;
  return op === "remove" ? `“${from}” was removed` : `“${from}” ${op === "merge" ? "was merged into" : "was renamed to"} “${to}”`;
}

function classItem(one, all) {
  const item = element("li", undefined, "class"), others = all.map(({ name }) => name).filter((name) => name !== one.name);
  const twin = others.find((name) => alike(name) === alike(one.name));
  const words = element("span", undefined, "words");
  words.append(element("b", one.name), element("span", `${count(one.n)} ${one.n === 1 ? "answer" : "answers"}${twin ? `. Is this the same as “${twin}”? Then merge them.` : ""}`, "soft"));
  const ways = element("span", undefined, "ways");
  const way = (name, form) => {
    const button = element("button", name);
    button.type = "button";
    button.setAttribute("aria-label", `${name} ${one.name}`);
    button.addEventListener("click", () => ask(item, button, form()));
    return button;
  };
  ways.append(way("Rename", () => renaming(one)), ...(others.length ? [way("Merge", () => merging(one, others, twin))] : []), way("Remove", () => removing(one)));
  item.append(words, ways);
  return item;
}

// Ask in the place of a class's buttons; Escape goes back to them.
function ask(item, button, { form, field }) {
  const back = () => { form.remove(); item.lastElementChild.hidden = false; button.focus(); };
  const cancel = element("button", "Cancel");
  cancel.type = "button";
  cancel.addEventListener("click", back);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    back();
  });
  form.append(cancel);
  item.lastElementChild.hidden = true;
  item.insertBefore(form, item.lastElementChild);
  field.focus();
}

function formOf(text, field, verb, send) {
  const form = element("form", undefined, "ways"), label = element("label", text), button = element("button", verb);
  if (field) label.append(field);
  button.type = "submit";
  form.append(label, button);
  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  return { form, field: field ?? button };
}

function renaming({ name }) {
  const field = element("input");
  field.type = "text";
  field.maxLength = 100;
  field.value = name;
  return formOf("New name ", field, "Rename", () => changeClass(name, field.value));
}

function merging({ name, n }, others, twin) {
  const field = element("select");
  field.append(...others.map((one) => element("option", one)));
  if (twin) field.value = twin;
  return formOf(`Its ${count(n)} answers count as `, field, "Merge", () => changeClass(name, field.value));
}

function removing({ name, n }) {
  return formOf(`Its ${count(n)} answers are taken back. They stay in the history. `, null, "Remove", () => changeClass(name, null));
}

async function changeClass(from, to) {
  try {
    const { ok, data } = await call("/api/classes", { body: { from, to } });
    $("classes-said").textContent = ok ? `Done: ${changeInWords({ op: data.op, from, to })}.` : `Not done: ${data.error}.`;
    if (!ok) return;
    showClassList(data);
    ($("classes-list").querySelector("button") ?? $("classes-close")).focus();
    hurry();
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
    $("classes-said").textContent = `Not done: ${error.message} Please try again.`;
  }
}

$("open-classes").addEventListener("click", openClasses);
$("classes-close").addEventListener("click", () => $("class-changes").close());
