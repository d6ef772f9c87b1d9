"use strict";
// How far the labelling is, in words that an annotator knows.

const COUNTS = [["offered", "events"], ["asked", "questions"], ["answered", "answered"], ["skipped", "skipped"], ["ignored", "ignored"], ["retracted", "taken back"], ["corrected", "corrected"]];

function showNothing(stats) {
  shown = reviewed = null;
  $("question").hidden = true;
  $("rest").hidden = false;
  const [title, text, note] = whyNothing(stats);
  $("rest-title").textContent = title;
  $("rest-text").textContent = text;
  $("rest-note").hidden = !note;
  $("rest-note").textContent = note ? `For the person in charge: ${note}` : "";
}

function whyNothing(stats) {
  const { verdict, waiting } = stats, goesOn = "This page continues by itself.";
  if (stats.trouble) return ["The questions cannot be read", goesOn, sentence(stats.trouble)];
  if (!stats.loaded) return ["Reading the questions", "This takes a moment."];
  if (stats.heard_at === null) return ["No questions yet", goesOn, sentence(stats.trainer)];
  if (stats.remaining === 0 && !waiting) return ["All planned answers are given", "Thank you."];
  if (verdict.stop && !waiting) return ["There are enough answers", "Thank you.", sentence(verdict.why)];
  if (stats.trainer) return ["Waiting for the model", "It has not reacted to your answers for a while. They are safe. " + goesOn, sentence(stats.trainer)];
  if (waiting) return ["Waiting for the next question", "Other annotators have the open questions. " + goesOn];
  return ["Waiting for the next question", "The model is choosing the next event. " + goesOn];
}

// Title, text and style of what is known about the number of answers.
function enough({ heard_at: heard, remaining, verdict: { stop, audit } }) {
  if (heard === null) return ["Not known yet", "", ""];
  if (remaining === 0) return ["All planned answers are given", "This does not say whether the model is good enough.", ""];
  if (stop) return ["✓ Enough", "The model is sure about the other events, and events picked at random agreed. A rare kind that nobody has seen may still be missing.", "stop"];
  if (audit) return ["◎ Final check", "The model seems to know enough. Some more events show whether that is so.", "audit"];
  return ["Not yet", "The model still learns from your answers. Please go on.", ""];
}

function showStats(stats) {
  const { positive, negative, remaining } = stats, n = positive + negative;
  $("n-labels").textContent = count(n);
  $("quota").textContent = remaining === null ? "" : `· ${count(remaining)} to go`;
  $("quota-bar").hidden = remaining === null;
  $("quota-bar").value = remaining === null ? 0 : n / (n + remaining || 1);
  $("bar-pos").style.flex = `${positive} 0 0`;
  $("bar-neg").style.flex = `${negative} 0 0`;
  $("n-pos").textContent = `${labels[0]}: ${count(positive)}${n ? ` (${percent(positive / n)})` : ""}`;
  $("n-neg").textContent = `${labels[1]}: ${count(negative)}${n ? ` (${percent(negative / n)})` : ""}`;
  const [title, text, style] = enough(stats);
  $("verdict").className = `verdict ${style}`;
  $("verdict-title").textContent = title;
  $("verdict-text").textContent = text;
  showCurve(stats.curve);
  $("counts").replaceChildren(...COUNTS.map(([name, title]) => {
    const group = element("div");
    group.append(element("dt", title), element("dd", count(stats[name])));
    return group;
  }));
  showNotes(stats);
}

function showCurve(curve) {
  const column = (i) => curve.filter((row) => row[i] !== null).map((row) => [row[0], row[i]]);
  const [random, hard] = [column(2), column(3)], latest = (points) => points.length ? percent(points.at(-1)[1]) : "not known yet";
  $("efficiency").replaceChildren(plot([{ points: random, style: "one" }, { points: hard, style: "two" }], {
    about: `The model guesses right: on events picked at random ${latest(random)}, on events that it found hard ${latest(hard)}`, high: 1, low: 0, format: percent,
  }));
}

// What the person who runs this wants to know.
function showNotes(stats) {
  const notes = [
    sentence(stats.verdict.why), sentence(stats.trainer), sentence(stats.trouble),
    stats.unresolved && `Open questions that people disagree about: ${count(stats.unresolved)}.`,
    stats.agreement.share !== null && `Annotators agree in ${percent(stats.agreement.share)} of the answers to the same question.`,
    stats.rechecks && `Doubtful answers asked again: ${count(stats.rechecks)}, of which changed: ${count(stats.revised)}.`,
    stats.unheard && `Answers not learned yet: ${count(stats.unheard)}.`,
    stats.refused && `Damaged questions, not shown: ${count(stats.refused)}.`,
  ].filter(Boolean);
  $("notes").replaceChildren(...(notes.length ? notes : ["Nothing to report."]).map((note) => element("li", note)));
}
