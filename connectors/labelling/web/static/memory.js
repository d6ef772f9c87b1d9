"use strict";
// What a tab remembers: its id, the annotator's name, the token. A browser may refuse storage: then memory serves.

const $ = (id) => document.getElementById(id);

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
const guest = stored(localStorage, "guest") ?? `guest ${randomId().slice(0, 4)}`;  // two tabs without a name are one person
store(localStorage, "guest", guest);
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
