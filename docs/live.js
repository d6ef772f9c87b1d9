const canvas = document.querySelector("#live canvas"), told = document.querySelector("#live p");
const pen = canvas.getContext("2d"), SIZE = canvas.width, CELL = 6, COLOURS = ["#f4b183", "#8ab4f8"];
const [low, high] = [-3.2, 3.2], place = (v) => ((v - low) / (high - low)) * SIZE;
const ground = new OffscreenCanvas(SIZE, SIZE);

function drawGround() {
  const brush = ground.getContext("2d");
  for (let i = 0; i < SIZE; i += CELL) {
    for (let j = 0; j < SIZE; j += CELL) {
      const at = (k) => low + ((k + CELL / 2) / SIZE) * (high - low);
      const left = predictSet([at(i), -at(j)]);
      brush.fillStyle = left.length > 1 ? "#ffffff" : COLOURS[labels.indexOf(left[0])];
      brush.fillRect(i, j, CELL, CELL);
    }
  }
}

function drawRecord([a, b, y], left, age) {
  pen.globalAlpha = 1 - age;
  pen.fillStyle = ["#c55a11", "#1a73e8"][y];
  pen.beginPath();
  pen.arc(place(a), place(-b), 5, 0, 2 * Math.PI);
  pen.fill();
  if (left.length > 1 || left[0] !== labels[y]) {
    pen.strokeStyle = left.length > 1 ? "#808080" : "#000000";
    pen.lineWidth = 2;
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

let n = 0, asked = 0, wrong = 0, seconds = 0, shown = [];

function next() {
  const record = records[n % records.length], start = performance.now();
  const left = predictSet(record.slice(0, 2));
  seconds += (performance.now() - start) / 1000;
  n += 1;
  asked += left.length > 1;
  wrong += left.length === 1 && left[0] !== labels[record[2]];
  shown = [...shown, [record, left]].slice(-60);
  pen.drawImage(ground, 0, 0);
  shown.forEach(([own, said], i) => drawRecord(own, said, (shown.length - 1 - i) / 60));
  told.textContent = `${n} records were scored here: ${((100 * asked) / n).toFixed(0)} % were asked, ` +
    `${((100 * wrong) / n).toFixed(1)} % were decided wrongly. A record takes ${((1e6 * seconds) / n).toFixed(0)} µs.`;
}

drawGround();
next();
setInterval(next, 100);
