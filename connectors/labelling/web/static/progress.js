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
  if (isSpent(stats) && !waiting) return ["All planned answers are given", "Thank you."];
  if (verdict.stop && !waiting) return ["No more questions", "Thank you.", sentence(verdict.why)];
  if (stats.trainer) return ["Waiting for the model", "It has not reacted to your answers for a while. They are safe. " + goesOn, sentence(stats.trainer)];
  if (waiting) return ["Waiting for the next question", "Other annotators have the open questions. " + goesOn];
  return ["Waiting for the next question", "The model is choosing the next event. " + goesOn];
}

// Whether asking has ended only because all planned answers are given.
const isSpent = ({ remaining, verdict }) => verdict.spent || remaining === 0;

// Title, text and style of what is known about the number of answers.
function enough(stats) {
  const { heard_at: heard, missed, verdict: { stop, audit } } = stats;
  if (heard === null) return ["Not known yet", "", ""];
  if (isSpent(stats)) return ["All planned answers are given", stillMissed(missed) || "Whether the model is good enough is not known.", ""];
  if (stats.recall) return [stop ? "✓ The promise is kept" : "Not yet", sentence(stats.recall), stop ? "stop" : audit ? "audit" : ""];
  if (stop) return ["✓ The last answers agreed with the model", stillMissed(missed) || "How many it still overlooks is not known: no event picked at random has an answer yet.", "stop"];
  if (audit) return ["◎ Final check", "The model seems to know enough. Some more events show whether that is so. " + stillMissed(missed), "audit"];
  return ["Not yet", "The model still learns from your answers. Please go on.", ""];
}

// How many events with the first label the model may still overlook; empty if that is not known.
function stillMissed({ at_most: most, n_unlabelled: n }) {
  if (most === null) return "";
  return `Among the ${count(n)} events without an answer, the model overlooks at most ${count(most)} of “${labels[0]}” (with 95 % certainty, by events picked at random).`;
}

function showStats(stats) {
  const { positive, negative, remaining } = stats, n = classes.is_multiclass ? stats.labels : positive + negative;
  $("n-labels").textContent = count(n);
  $("quota").textContent = remaining === null ? "" : remaining ? `· ${count(remaining)} to go` : "· all planned ones";
  $("quota-bar").hidden = remaining === null;
  $("quota-bar").value = remaining === null ? 0 : n / (n + remaining || 1);
  $("bar-pos").style.flex = `${positive} 0 0`;
  $("bar-neg").style.flex = `${negative} 0 0`;
  $("n-pos").textContent = `${labels[0]}: ${count(positive)}${n ? ` (${percent(positive / n)})` : ""}`;
  $("n-neg").textContent = `${labels[1]}: ${count(negative)}${n ? ` (${percent(negative / n)})` : ""}`;
  if (classes.is_multiclass) showClasses(stats.classes ?? []);
  const [title, text, style] = enough(stats);
  $("verdict").className = `verdict ${style}`;
  $("verdict-title").textContent = title;
  $("verdict-text").textContent = text;
  $("open-disputes").hidden = !stats.disputes;
  $("open-disputes").textContent = `Review doubtful answers (${count(stats.disputes)})`;
  showCurve(stats.curve);
  $("counts").replaceChildren(...COUNTS.map(([name, title]) => {
    const group = element("div");
    group.append(element("dt", title), element("dd", count(stats[name])));
    return group;
  }));
  showNotes(stats);
}

// The labels of each class, in place of the two sides.
function showClasses(found) {
  $("bar-pos").parentElement.hidden = true;
  $("n-pos").textContent = found.filter(([, n]) => n).map(([name, n]) => `${name}: ${count(n)}`).join(", ");
  $("n-neg").textContent = "";
}

function showCurve(curve) {
  const column = (i) => curve.filter((row) => row[i] !== null).map((row) => [row[0], row[i]]);
  const [random, hard] = [column(2), column(3)], latest = (points) => points.length ? percent(points.at(-1)[1]) : "not known yet";
  $("efficiency").replaceChildren(plot([{ points: random, style: "one" }, { points: hard, style: "two" }], {
    about: `The model guesses right: on events picked at random ${latest(random)}, on events that it found hard ${latest(hard)}`, high: 1, low: 0, format: percent,
  }));
}

// An annotator's answers, speed and agreement with the others.
function about({ name, n_labels: n, per_hour: speed, agreement }) {
  const who = name.replace(/^(page|terminal):/, "").replace(/#.*/, "") || "no name";
  return `${who}: ${count(n)} answers` + (speed === null ? "" : `, ${count(Math.round(speed))} an hour`)
    + (agreement === null ? "" : `, ${percent(agreement)} as the others`) + ".";
}

// What the person who runs this wants to know.
function showNotes(stats) {
  const notes = [
    ...stats.annotators.map(about), sentence(stats.verdict.why), sentence(stats.trainer), sentence(stats.trouble),
    stats.unresolved && `Open questions that people disagree about: ${count(stats.unresolved)}.`,
    stats.agreement.share !== null && `Annotators agree in ${percent(stats.agreement.share)} of the answers to the same question.`,
    stats.rechecks && `Doubtful answers asked again: ${count(stats.rechecks)}, of which changed: ${count(stats.revised)}.`,
    stats.unheard && `Answers not learned yet: ${count(stats.unheard)}.`,
    stats.refused && `Damaged questions, not shown: ${count(stats.refused)}.`,
  ].filter(Boolean);
  $("notes").replaceChildren(...(notes.length ? notes : ["Nothing to report."]).map((note) => element("li", note)));
}
