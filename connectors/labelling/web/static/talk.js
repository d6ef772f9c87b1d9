"use strict";
// Requests to the server, and answers that wait in the browser until the server has them.

const PATIENCE = 10000;    // ms for a reply, in addition to the time that the server may wait

class Lost extends Error {}   // no reply, or one that says: try again later

// Who asks, with the key.
const sealed = ({ tab: id, name } = { tab, name: myName }) => ({ "X-Tab": id, "X-Annotator": encodeURIComponent(name || guest), Authorization: `Bearer ${token}` });

async function call(path, { body, sender, wait = 0, stop, keepalive = false } = {}) {
  const headers = sealed(sender);
  if (body) headers["Content-Type"] = "application/json";
  let reply, data;
  try {
    reply = await fetch(path, {
      method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store", keepalive,
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE + 1000 * wait), ...(stop ? [stop] : [])]),
    });
    data = await reply.json();
  } catch {
    throw new Lost("The server does not answer.");
  }
  if (reply.status === 403) throw new Lost("The key in this page’s address is missing or old: open the address that streamsvm label printed.");
  if (reply.status >= 500) throw new Lost(data.error);
  return { ok: reply.ok, data };
}

// The browser keeps an answer until the server has acknowledged it, even if this page is closed.
const placeOf = ({ body }) => "out." + (body.query_id ?? `undo ${body.number}`);
function keep(item) { store(localStorage, placeOf(item), item); }
function forget(item) { store(localStorage, placeOf(item), null); }
function kept() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith("streamsvm.out."))
      .map((key) => stored(localStorage, key.slice("streamsvm.".length))).filter(Boolean);
  } catch { return []; }
}

let wake = new AbortController();
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); wake.signal.addEventListener("abort", done); });
function hurry() {
  wake.abort();
  wake = new AbortController();
}

async function deliver(item) {
  for (let n = 0; ; n++) {
    try {
      const reply = await call(item.path, item);
      forget(item);
      trouble(null);
      return reply;
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      trouble(error.message + " Your answer is kept in this browser and will be sent again.");
      await pause(Math.min(4000, 400 * 2 ** n));
    }
  }
}
