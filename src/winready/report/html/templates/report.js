"use strict";
(() => {
  const rows = [...document.querySelectorAll("#requirements .req")];
  const tools = document.querySelector(".tools");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const expand = document.getElementById("expand");
  const toggles = [...document.querySelectorAll("button[data-outcome]")];
  const texts = new Map();
  tools.hidden = false;

  const text = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const apply = () => {
    const wanted = new Set(toggles.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.outcome));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits = wanted.has(row.dataset.outcome) && words.every((word) => text(row).includes(word));
      row.hidden = !fits;
      count += fits;
    }
    for (const category of document.querySelectorAll(".category")) {
      category.hidden = !category.querySelector(".req:not([hidden])");
    }
    shown.textContent = count === rows.length ? `${count} shown` : `${count} of ${rows.length} shown`;
  };
  const reveal = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!row || !row.classList.contains("req")) return;
    if (row.hidden) {
      search.value = "";
      for (const button of toggles) button.setAttribute("aria-pressed", "true");
      apply();
    }
    row.open = true;
    row.scrollIntoView();
    row.querySelector("summary").focus({ preventScroll: true });
  };
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 60); });
  for (const button of toggles) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  }
  expand.addEventListener("click", () => {
    const open = rows.some((row) => !row.hidden && !row.open);
    for (const row of rows) if (!row.hidden) row.open = open;
    expand.textContent = open ? "Close all" : "Open all";
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && document.activeElement === search) { search.value = ""; apply(); search.blur(); }
  });
  addEventListener("hashchange", reveal);
  apply();
  reveal();
})();
