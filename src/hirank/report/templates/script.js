"use strict";
// Errors are kept in an attribute, where a test or an inspector can see them.
const root = document.documentElement;
window.addEventListener("error", (event) => {
  root.dataset.errors = ((root.dataset.errors || "") + " " + event.message).trim();
});

// A link selects what is shown: #search=...&feature=...&sort=...&theme=dark
const wanted = new URLSearchParams(location.hash.slice(1));
if (["dark", "light"].includes(wanted.get("theme"))) root.dataset.theme = wanted.get("theme");
document.querySelectorAll(".needs-script").forEach((part) => { part.hidden = false; });

const select = document.getElementById("feature");
if (select) {
  const show = () => {
    document.querySelectorAll("figure[data-feature]").forEach((figure) => {
      figure.hidden = figure.dataset.feature !== select.value;
    });
  };
  const option = [...select.options].find((one) => one.textContent === wanted.get("feature"));
  if (option) select.value = option.value;
  select.addEventListener("change", show);
  show();
}

const search = document.getElementById("search");
if (search) {
  const rows = [...document.querySelectorAll("#cells tbody tr")];
  const texts = rows.map((row) => (row.cells[0].textContent + " " + row.cells[1].textContent).toLowerCase());
  const found = document.getElementById("found");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      if (!row.hidden) count += 1;
    });
    found.textContent = count.toLocaleString("en") + " shown";
    found.dataset.count = count;
  };
  if (wanted.has("search")) search.value = wanted.get("search");
  search.addEventListener("input", filter);
  filter();
}

document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => {
    const cell = row.cells[at];
    const given = cell.dataset.value;
    return given === undefined ? cell.textContent : given === "" ? NaN : Number(given);
  };
  const order = (a, b) => {
    if (typeof a === "string") return a.localeCompare(b, "en", { numeric: true });
    return isNaN(a) ? (isNaN(b) ? 0 : 1) : isNaN(b) ? -1 : a - b;
  };
  heads.forEach((head, at) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = [...table.tBodies[0].rows].map((row) => [value(row, at), row]);
      keyed.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
      table.tBodies[0].append(...keyed.map((pair) => pair[1]));
    });
  });
  const by = heads.findIndex((head) => head.textContent === wanted.get("sort"));
  if (by >= 0 && table.id === "cells") heads[by].querySelector("button").click();
});

const measure = () => {
  root.dataset.width = root.clientWidth;
  root.dataset.overflow = root.scrollWidth - root.clientWidth;
};
window.addEventListener("resize", measure);
window.addEventListener("load", () => { measure(); root.dataset.ready = "yes"; });
