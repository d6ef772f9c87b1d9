"use strict";
// What a tab remembers: its id, the annotator's name, the token. A browser may refuse storage: then memory serves.

const $ = (id) => document.getElementById(id);
const SHOWN = 14;          // features that are shown before "show all"
const LOOK = 15;           // s that the server may wait for a change before it replies
const LULL = 250;          // ms between two requests
const GUARD = 500;         // ms during which no answer counts after the question was replaced
const IDLE = 60000;        // ms without a key or a movement after which other annotators may get the question
const UNDO = 60000;        // ms during which the last answer can be taken back
const PATIENCE = 10000;    // ms for a reply, in addition to the time that the server may wait
const COUNTS = [["offered", "events seen"], ["asked", "asked"], ["answered", "answered"], ["skipped", "skipped"], ["ignored", "ignored"], ["retracted", "taken back"]];
const REASONS = {
  seed: ["First examples", "Picked at random: the model first needs a few labels of each kind."],
  boundary: ["The model is unsure", "Of the events that it looked at, the model is least sure of this one."],
  explore: ["Random check", "Picked at random, to find mistakes that the model does not suspect."],
  audit: ["Final check", "The model seems good enough. Events picked at random show whether it is."],
};

function stored(area, key) {
  try { return JSON.parse(area.getItem("streamsvm." + key)); } catch { return null; }
}
function store(area, key, value) {
  try {
    if (value === null) area.removeItem("streamsvm." + key);
    else area.setItem("streamsvm." + key, JSON.stringify(value));
  } catch { /* the page works without storage */ }
}
const randomId = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");

// A reload keeps the tab's id and so its question. A duplicated tab inherits the id, and takes a new one as soon as the
// other tab answers it.
const me = randomId();
let tab = stored(sessionStorage, "tab"), myName = "";
const channel = new BroadcastChannel("streamsvm");
channel.onmessage = ({ data }) => {
  if (data.beg && token) channel.postMessage({ token, to: data.beg });
  if (data.to === me && data.token) setToken(data.token);
  if (data.ask === tab) channel.postMessage({ taken: tab, to: data.from });
  if (data.to === me && data.taken === tab) {
    newTab();
    overtake();
  }
};
function newTab() {
  tab = randomId();
  store(sessionStorage, "tab", tab);
  remember(null);
}

// The token comes with the address, in the part that browsers send to no server. A tab keeps it for a reload, and asks the
// other tabs if it was opened without a token.
let token = stored(sessionStorage, "token");

function setToken(value) {
  token = value;
  store(sessionStorage, "token", token);
  hurry();
}
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) setToken(given);
  history.replaceState(null, "", "/");   // keeps the token off the screen and out of bookmarks
}
async function findToken() {
  if (token) return;
  channel.postMessage({ beg: me });
  for (let n = 0; n < 20 && !token; n++) await new Promise((done) => { setTimeout(done, 25); });
}
