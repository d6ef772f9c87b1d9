"use strict";
// The image: large, and larger. A click or the key Z zooms in and out; a zoomed image can be dragged.

const ZOOMS = [1, 1.5, 2, 3, 4, 6, 8];
const TINY = 64;           // pixels, below which an image is drawn with visible pixels

let zoom = 1;

function showImage(address, refused) {
  $("image-block").hidden = address === null && refused === null;
  $("frame").hidden = $("zooming").hidden = address === null;
  $("no-image").hidden = true;
  $("image").removeAttribute("src");
  URL.revokeObjectURL(fetched);
  zoomTo(1);
  if (address !== null && address.startsWith("/")) fetchImage(address);
  else if (address !== null) $("image").src = address;
  else if (refused !== null) noImage(/^https?:/i.test(refused) ? "This image is not shown, because its server is not on the list of image hosts: " : "There is no such image: ", refused);
}

let fetched = "";          // the address of a file that was fetched

// A file of the server's folder, null if there is none: the request carries the key, which an image's own request could not.
async function fileAt(address) {
  const reply = await fetch(address, { headers: sealed(), signal: AbortSignal.timeout(PATIENCE) });
  return reply.ok ? reply.blob() : null;
}

async function fetchImage(address) {
  const question = shown;
  try {
    const content = await fileAt(address);
    if (shown !== question) return;
    if (content) $("image").src = fetched = URL.createObjectURL(content);
    else noImage("This image cannot be shown: ", question.id);
  } catch {
    if (shown === question) noImage("The server does not answer. Look at the question again for its image: ", question.id);
  }
}

function noImage(why, address) {
  $("frame").hidden = $("zooming").hidden = true;
  $("image").removeAttribute("src");
  $("no-image").hidden = false;
  const short = address.slice(0, 200);
  $("no-image").replaceChildren(why, /^https?:\/\//i.test(address) && URL.canParse(address) ? link(address, short) : short);
}

// The height that an image may have: what the answers, which lie above the page's end, leave of the window.
function fittingHeight() {
  const top = $("frame").getBoundingClientRect().top + scrollY, below = $("zooming").offsetHeight + $("answer").offsetHeight;
  const isPhone = matchMedia("(max-width: 480px)").matches;
  return Math.max(isPhone ? 110 : 200, Math.min(innerHeight - top - below, innerHeight * (isPhone ? .5 : .38)));
}

// The width at which the whole image is seen, as large as there is room.
function fittingWidth() {
  const { naturalWidth: width, naturalHeight: height } = $("image");
  const room = $("frame").clientWidth - 2, most = width < TINY ? 28 : 2;
  return Math.max(16, Math.min(room, most * width, fittingHeight() * width / (height || 1)));
}

// Zoom, and keep the point of the image (from 0 to 1) in place.
function zoomTo(factor, x = .5, y = .5) {
  zoom = factor;
  const frame = $("frame"), image = $("image");
  frame.style.maxHeight = `${fittingHeight() + 2}px`;
  image.style.width = image.naturalWidth ? `${fittingWidth() * zoom}px` : "";
  image.classList.toggle("tiny", image.naturalWidth < TINY);
  frame.classList.toggle("zoomed", zoom > 1);
  frame.scrollLeft = x * image.clientWidth - frame.clientWidth / 2;
  frame.scrollTop = y * image.clientHeight - frame.clientHeight / 2;
  $("zoom").textContent = percent(zoom);
  $("smaller").setAttribute("aria-disabled", zoom === ZOOMS[0]);
  $("larger").setAttribute("aria-disabled", zoom === ZOOMS.at(-1));
}

function zoomBy(step) {
  const at = ZOOMS.findIndex((factor) => factor >= zoom) + step;
  zoomTo(ZOOMS[Math.max(0, Math.min(ZOOMS.length - 1, at))]);
}
function toggleZoom(x, y) {
  if (!$("image-block").hidden && !$("frame").hidden) zoomTo(zoom > 1 ? 1 : 3, x, y);
}

let grip = null;           // where a drag began

$("frame").addEventListener("pointerdown", (event) => {
  if (event.button || event.pointerType === "touch") return;
  grip = { x: event.clientX, y: event.clientY, left: $("frame").scrollLeft, top: $("frame").scrollTop, moved: false };
  if (zoom > 1) $("frame").setPointerCapture(event.pointerId);
});
$("frame").addEventListener("pointermove", (event) => {
  if (!grip) return;
  const [dx, dy] = [event.clientX - grip.x, event.clientY - grip.y];
  grip.moved ||= Math.hypot(dx, dy) > 4;
  $("frame").scrollLeft = grip.left - dx;
  $("frame").scrollTop = grip.top - dy;
});
$("frame").addEventListener("click", (event) => {
  const wasDragged = grip?.moved;
  grip = null;
  if (wasDragged) return;
  const box = $("image").getBoundingClientRect();
  toggleZoom((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
});
$("frame").addEventListener("pointercancel", () => { grip = null; });
$("image").addEventListener("load", () => zoomTo(1));
$("image").addEventListener("error", () => noImage("This image cannot be shown: ", $("image").src));
$("smaller").addEventListener("click", () => zoomBy(-1));
$("larger").addEventListener("click", () => zoomBy(1));
$("fit").addEventListener("click", () => toggleZoom());
addEventListener("resize", () => zoomTo(zoom));
new ResizeObserver(() => zoomTo(zoom)).observe($("guide"));
