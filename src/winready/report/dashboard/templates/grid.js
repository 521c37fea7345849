"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const grid = document.getElementById("grid");
  if (!grid) return;
  const NAMES = { p: "passed", f: "failed", b: "blocked", n: "not applicable", e: "error", ".": "not selected" };
  const MARKS = { p: "✓", f: "✗", b: "■", n: "-", e: "!", ".": "" };
  const CELL = 22, HEAD = 88;
  const cluster = document.getElementById("cluster");
  const search = document.getElementById("search");
  const trouble = document.getElementById("trouble");
  const shown = document.getElementById("shown");
  const tip = document.getElementById("tip");
  const compare = document.getElementById("compare");
  const marked = [];
  let rows = [], columns = [], at = { row: 0, column: 0 }, wantsFocus = false;

  for (const name of [...new Set(data.runs.map((run) => run.cluster))].sort()) {
    cluster.append(new Option(name, name));
  }
  document.getElementById("count").textContent = `${data.runs.length} runs`;
  const wanted = new URLSearchParams(location.search);
  cluster.value = wanted.get("cluster") || "";
  search.value = wanted.get("q") || "";
  trouble.checked = wanted.get("trouble") === "1";

  const element = (tag, classes, text) => {
    const made = document.createElement(tag);
    made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const flaky = new Map();
  for (const [name, ids] of Object.entries(data.flaky)) for (const id of ids) flaky.set(id, [...(flaky.get(id) || []), name]);
  const isFlaky = (id) => (flaky.get(id) || []).filter((name) => !cluster.value || name === cluster.value);

  const choose = () => {
    columns = data.runs.map((_, index) => index).filter((index) => !cluster.value || data.runs[index].cluster === cluster.value);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = data.requirements.map((_, index) => index).filter((index) => {
      const item = data.requirements[index];
      if (!words.every((word) => item.id.includes(word))) return false;
      return !trouble.checked || columns.some((column) => "fbe".includes(item.cells[column]));
    });
    at = { row: Math.min(at.row, Math.max(rows.length - 1, 0)), column: Math.min(at.column, Math.max(columns.length - 1, 0)) };
    shown.textContent = `${rows.length} of ${data.requirements.length} requirements, ${columns.length} runs`;
    const query = new URLSearchParams();
    if (cluster.value) query.set("cluster", cluster.value);
    if (search.value) query.set("q", search.value);
    if (trouble.checked) query.set("trouble", "1");
    history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    grid.replaceChildren();
    grid.setAttribute("aria-rowcount", rows.length + 1);
    grid.setAttribute("aria-colcount", columns.length + 1);
    build();
    draw(true);
  };

  let lines = [], head = null, first = -1, last = -1;
  const build = () => {
    const width = columns.length * CELL;
    const space = element("div", "space");
    space.style.height = `${HEAD + rows.length * CELL}px`;
    head = element("div", "row head");
    head.setAttribute("role", "row");
    const corner = element("div", "who", "newest first →");
    corner.setAttribute("role", "columnheader");
    const cells = element("div", "cells");
    cells.style.width = `${width}px`;
    head.append(corner, cells);
    space.append(head);
    lines = rows.map((index, number) => {
      const line = element("div", "row");
      line.setAttribute("role", "row");
      line.setAttribute("aria-rowindex", number + 2);
      line.style.top = `${HEAD + number * CELL}px`;
      const id = data.requirements[index].id;
      const who = element("div", "who");
      who.setAttribute("role", "rowheader");
      who.title = id;
      const turns = isFlaky(id);
      if (turns.length) {
        const sign = element("span", "flaky", "≈");
        sign.title = `flaky on ${turns.join(", ")}: passed and failed in turns`;
        sign.setAttribute("aria-label", "flaky");
        who.append(sign);
      }
      who.append(id);
      const inner = element("div", "cells");
      inner.style.width = `${width}px`;
      line.append(who, inner);
      space.append(line);
      return { line, inner, index, number };
    });
    grid.append(space);
    first = last = -1;
  };

  // Only the columns in view exist, so a thousand runs cost no more than the screen shows.
  const draw = (force) => {
    const from = Math.max(0, Math.floor(grid.scrollLeft / CELL) - 8);
    const to = Math.min(columns.length, Math.ceil((grid.scrollLeft + grid.clientWidth) / CELL) + 8);
    if (!force && from === first && to === last) return;
    first = from; last = to;
    const tops = [];
    for (let place = from; place < to; place++) {
      const run = data.runs[columns[place]];
      const link = element("a", `run ${run.verdict.startsWith("Pass") ? "good" : "bad"}`, run.started.slice(5));
      link.href = `/runs/${encodeURIComponent(run.id)}`;
      link.style.left = `${place * CELL + 1}px`;
      link.title = `${run.id}: ${run.verdict}, Kubernetes ${run.version}, ${run.cluster}`;
      link.tabIndex = -1;
      link.setAttribute("role", "columnheader");
      link.setAttribute("aria-colindex", place + 2);
      link.classList.toggle("marked", marked.includes(run.id));
      tops.push(link);
    }
    head.lastChild.replaceChildren(...tops);
    for (const { inner, index, number } of lines) {
      const made = [];
      const letters = data.requirements[index].cells;
      for (let place = from; place < to; place++) {
        const letter = letters[columns[place]];
        const cell = element("div", `cell ${letter}`, MARKS[letter]);
        cell.style.left = `${place * CELL + 1}px`;
        cell.dataset.row = number;
        cell.dataset.column = place;
        cell.setAttribute("role", "gridcell");
        cell.setAttribute("aria-colindex", place + 2);
        cell.setAttribute("aria-label", NAMES[letter]);
        cell.tabIndex = number === at.row && place === at.column ? 0 : -1;
        made.push(cell);
      }
      inner.replaceChildren(...made);
    }
    if (wantsFocus) focus();
  };
  const cellAt = (row, column) => grid.querySelector(`[data-row="${row}"][data-column="${column}"]`);
  const focus = () => { const cell = cellAt(at.row, at.column); if (cell) { cell.focus({ preventScroll: true }); wantsFocus = false; } };
  const place = (cell) => {
    const row = Number(cell.dataset.row), column = Number(cell.dataset.column);
    const requirement = data.requirements[rows[row]], index = columns[column];
    return { row, column, requirement, run: data.runs[index], letter: requirement.cells[index], why: data.why[`${rows[row]}.${index}`] };
  };
  const open = (cell) => { const { requirement, run } = place(cell); location.href = `/runs/${encodeURIComponent(run.id)}#${requirement.id}`; };
  const mark = (id) => {
    const known = marked.indexOf(id);
    if (known >= 0) marked.splice(known, 1); else marked.push(id);
    if (marked.length > 2) marked.shift();
    compare.disabled = marked.length !== 2;
    compare.textContent = marked.length === 2 ? "Compare the two marked runs" : marked.length ? "Mark one more run" : "Compare two runs";
    draw(true);
  };
  const tell = (cell) => {
    const { requirement, run, letter, why } = place(cell);
    tip.replaceChildren(element("b", "", `${requirement.id}: ${NAMES[letter]}`), document.createElement("br"), `${run.started}, ${run.id}`);
    if (why !== undefined) tip.append(document.createElement("br"), data.reasons[why]);
    tip.hidden = false;
    const box = cell.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${box.bottom + 6 + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
  };

  grid.addEventListener("scroll", () => { tip.hidden = true; requestAnimationFrame(() => draw(false)); }, { passive: true });
  addEventListener("resize", () => draw(false));
  grid.addEventListener("click", (event) => {
    if (event.target.matches(".cell")) open(event.target);
    const link = event.target.closest(".run");
    if (link && (event.shiftKey || event.ctrlKey)) { event.preventDefault(); mark(decodeURIComponent(link.pathname.split("/").pop())); }
  });
  grid.addEventListener("mouseover", (event) => { if (event.target.matches(".cell")) tell(event.target); else tip.hidden = true; });
  grid.addEventListener("mouseleave", () => { tip.hidden = true; });
  grid.addEventListener("focusin", (event) => { if (event.target.matches(".cell")) { const spot = place(event.target); at = { row: spot.row, column: spot.column }; tell(event.target); } });
  grid.addEventListener("focusout", () => { tip.hidden = true; });
  grid.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [0, -20], PageDown: [0, 20], Home: [0, -1e6], End: [0, 1e6] };
    if (!event.target.matches(".cell")) return;
    if (event.key === "Enter") return open(event.target);
    if (event.key === " ") { event.preventDefault(); wantsFocus = true; return mark(place(event.target).run.id); }
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    at = { row: Math.min(Math.max(at.row + move[0], 0), rows.length - 1), column: Math.min(Math.max(at.column + move[1], 0), columns.length - 1) };
    const name = grid.querySelector(".who").offsetWidth;
    const left = at.column * CELL, top = HEAD + at.row * CELL;
    if (left < grid.scrollLeft) grid.scrollLeft = left;
    if (left + CELL + name > grid.scrollLeft + grid.clientWidth) grid.scrollLeft = left + CELL + name - grid.clientWidth;
    if (top - HEAD < grid.scrollTop) grid.scrollTop = top - HEAD;
    if (top + CELL > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + CELL - grid.clientHeight;
    wantsFocus = true;
    draw(true);
  });
  compare.addEventListener("click", () => {
    const older = [...marked].sort((one, other) => data.runs.findIndex((run) => run.id === other) - data.runs.findIndex((run) => run.id === one));
    location.href = `/compare?a=${encodeURIComponent(older[0])}&b=${encodeURIComponent(older[1])}`;
  });
  for (const control of [cluster, trouble]) control.addEventListener("change", choose);
  search.addEventListener("input", choose);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
  });
  choose();
})();
