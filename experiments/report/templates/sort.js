// Numbers sort as numbers, an interval by its mean; then texts; empty cells last.
"use strict";
const number = /^[-+\u2212]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?=$|[\s,;%\[])/i;
const inWords = new Intl.Collator("en", {numeric: true});
const rank = (text) => text === "" ? 2 : number.test(text) ? 0 : 1;
const value = (text) => parseFloat(text.replace("\u2212", "-"));

function sort(header, index) {
  const body = header.closest("table").tBodies[0];
  const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const lines = Array.from(body.rows, (row) => [row.cells[index].textContent.trim(), row]);
  lines.sort(([a], [b]) => {
    if (rank(a) !== rank(b)) return rank(a) - rank(b);
    return sign * (rank(a) ? inWords.compare(a, b) : value(a) - value(b));
  });
  body.append(...lines.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  Array.from(table.tHead.rows[0].cells).forEach((header, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header, index));
    header.append(button);
  });
}
