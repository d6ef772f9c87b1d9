"use strict";
// How far the labelling is, and what is said when there is no question.

function showNothing(stats) {
  shown = null;
  $("question").hidden = true;
  $("rest").hidden = false;
  const [title, text] = whyNothing(stats);
  $("rest-title").textContent = title;
  $("rest-text").textContent = text;
}

function whyNothing(stats) {
  const { verdict, waiting } = stats, goesOn = " This page continues by itself.";
  if (stats.trouble) return ["The questions cannot be read", stats.trouble + "." + goesOn];
  if (!stats.loaded) return ["Reading the questions", "This takes a moment."];
  if (stats.heard_at === null) return ["No trainer yet", sentence(stats.trainer) + goesOn];
  if (verdict.stop && !waiting) return ["There are enough labels", sentence(verdict.why)];
  if (stats.trainer) return ["The trainer does not react", sentence(stats.trainer) + goesOn];
  if (waiting) return ["Waiting for the next question", "Other annotators have the open questions." + goesOn];
  return ["Waiting for the next question", "The trainer has no question for now." + goesOn];
}
const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");

function showStats(stats) {
  const { positive, negative } = stats, n = positive + negative;
  $("n-labels").textContent = count(n);
  $("bar-pos").style.flex = `${positive} 0 0`;
  $("bar-neg").style.flex = `${negative} 0 0`;
  $("n-pos").textContent = `${labels[0]}: ${count(positive)}${n ? ` (${percent(positive / n)})` : ""}`;
  $("n-neg").textContent = `${labels[1]}: ${count(negative)}${n ? ` (${percent(negative / n)})` : ""}`;
  $("quota").textContent = (stats.remaining === null ? "There is no limit on labels." : `Labels left to give: ${count(stats.remaining)}.`)
    + (stats.unheard ? ` Answers not learned yet: ${count(stats.unheard)}.` : "")
    + (stats.refused ? ` Damaged questions, not shown: ${count(stats.refused)}.` : "");
  const { stop, audit, why } = stats.verdict;
  $("verdict").className = "verdict" + (stop ? " stop" : audit ? " audit" : "");
  $("verdict-title").textContent = stats.heard_at === null ? "Not known yet" : stop ? "✓ Enough" : audit ? "◎ Final check" : "Not yet";
  $("verdict-why").textContent = sentence(why);
  const line = (column) => stats.curve.filter((row) => row[column] !== null).map((row) => [row[0], row[column]]);
  $("efficiency").replaceChildren(plot([{ points: line(2), style: "one" }, { points: line(3), style: "two" }], {
    about: `The model guessed right on ${latest(line(2), percent)} of the random questions, on ${latest(line(3), percent)} of those it chose`, high: 1, low: 0, format: percent,
  }));
  $("support").replaceChildren(plot([{ points: line(1), style: "ink" }], {
    about: `Support vectors: ${latest(line(1), count)}`, low: 0, format: number,
  }));
  $("counts").replaceChildren(...COUNTS.map(([name, title]) => {
    const group = element("div");
    group.append(element("dt", title), element("dd", count(stats[name])));
    return group;
  }));
}
const latest = (points, format) => points.length ? format(points.at(-1)[1]) : "not known yet";
