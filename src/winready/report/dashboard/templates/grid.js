"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const grid = document.getElementById("grid");
  if (!grid) return;
  const NAMES = { p: "passed", f: "failed", b: "blocked", n: "not applicable", e: "error", u: "not judged", c: "contradiction", d: "known by data only", ".": "not selected" };
  const READY = { p: "ready", f: "not ready", b: "cannot be told", ".": "not asked about" };
  const MARKS = { p: "✓", f: "✗", b: "■", n: "-", e: "!", u: "◦", c: "≠", d: "·", ".": "" };
  const CELL = 22, HEAD = 100, GROUP = 28, PAGE = 25, WHOLE = 40, NOTE = 220;
  const base = document.body.dataset.base;
  const filter = document.getElementById("filter");
  const search = document.getElementById("search");
  const trouble = document.getElementById("trouble");
  const shown = document.getElementById("shown");
  const tip = document.getElementById("tip");
  const compare = document.getElementById("compare");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const marked = [];
  const unfolded = new Set();
  // Rows of the grid in the order in which the reasons count them; areas fold the features below them.
  const all = [
    ...data.requirements.map((item) => ({ ...item, kind: "requirement", group: item.category })),
    ...data.features.map((item) => ({ ...item, kind: "feature", group: "Features" })),
    ...data.workloads.map((item) => ({ ...item, kind: "workload", group: "Workloads" })),
    ...data.rules.map((item) => ({ ...item, kind: "rule", group: "Rules of the run" })),
  ];
  all.forEach((item, number) => { item.number = number; item.text = `${item.id} ${item.name || ""} ${item.area || ""}`.toLowerCase(); });
  const those = (kind) => all.filter((item) => item.kind === kind);
  const areas = data.areas.map((item) => ({ ...item, kind: "area", group: "Features", members: those("feature").filter((each) => each.area === item.id) }));
  let rows = [], columns = [], at = { row: 0, column: 0 }, wantsFocus = false;

  const wanted = new URLSearchParams(location.search);
  search.value = wanted.get("find") || "";
  trouble.checked = wanted.get("trouble") === "1";

  const element = (tag, classes, text) => {
    const made = document.createElement(tag);
    made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const SIGNS = { passed: "✓", failed: "✗", blocked: "■" };
  const flaky = new Map();
  for (const [name, ids] of Object.entries(data.flaky)) for (const id of ids) flaky.set(id, [...(flaky.get(id) || []), name]);
  const isFlaky = (id) => flaky.get(id) || [];

  const pick = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrow = words.length > 0 || trouble.checked;
    const fits = (item) => words.every((word) => item.text.includes(word)) && (!trouble.checked || columns.some((column) => "fbec".includes(item.cells[column])));
    const told = (item) => columns.some((column) => item.cells[column] !== ".");
    const rules = those("rule").filter((item) => told(item) && fits(item));
    const found = { requirement: those("requirement").filter(fits), feature: 0, workload: those("workload").filter((item) => told(item) && fits(item)) };
    const folded = [];
    for (const area of areas) {
      const members = area.members.filter((item) => told(item) && fits(item));
      if (!members.length) continue;
      found.feature += members.length;
      area.open = narrow || unfolded.has(area.id);
      folded.push(area, ...(area.open ? members : []));
    }
    rows = [...rules, ...found.requirement, ...folded, ...found.workload];
    at = { row: Math.min(at.row, Math.max(rows.length - 1, 0)), column: Math.min(at.column, Math.max(columns.length - 1, 0)) };
    const counts = [`${found.requirement.length} of ${data.requirements.length} requirements`];
    if (data.features.length) counts.push(`${found.feature} of ${data.features.length} features`);
    if (data.workloads.length) counts.push(`${found.workload.length} of ${data.workloads.length} workloads`);
    shown.textContent = `${counts.join(", ")}, ${columns.length} ${columns.length === 1 ? "run" : "runs"}`;
    grid.replaceChildren();
    grid.classList.toggle("whole", rows.length <= WHOLE);
    grid.setAttribute("aria-colcount", columns.length + 1);
    build();
    draw(true);
  };
  const choose = () => {
    columns = data.runs.map((_, index) => index);
    const query = new URLSearchParams(location.search);
    for (const [name, value] of [["find", search.value], ["trouble", trouble.checked ? "1" : ""]]) {
      if (value) query.set(name, value); else query.delete(name);
    }
    history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    pick();
    listed = PAGE;
    enumerate();
  };
  const fold = (area) => {
    const { scrollLeft, scrollTop } = grid;
    if (!unfolded.delete(area)) unfolded.add(area);
    pick();
    grid.scrollLeft = scrollLeft;
    grid.scrollTop = scrollTop;
    draw(true);
    for (const button of grid.querySelectorAll(".fold")) if (button.dataset.area === area) button.focus({ preventScroll: true });
  };

  const makeFold = (area) => {
    const button = element("button", "fold", `${area.open ? "▾" : "▸"} ${area.id} (${area.members.length})`);
    button.type = "button";
    button.dataset.area = area.id;
    button.setAttribute("aria-expanded", area.open);
    return button;
  };
  let lines = [], head = null, first = -1, last = -1;
  const build = () => {
    const width = columns.length * CELL;
    const space = element("div", "space");
    head = element("div", "row head");
    head.setAttribute("role", "row");
    const corner = element("div", "who", "newest first →");
    corner.setAttribute("role", "columnheader");
    const cells = element("div", "cells");
    cells.style.width = `${width}px`;
    head.append(corner, cells);
    space.append(head);
    lines = [];
    const noted = [];
    let top = HEAD, category = "", spoken = 1;
    rows.forEach((item, number) => {
      const { id, kind, group: own } = item;
      if (own !== category) {
        category = own;
        const title = element("div", "row group");
        title.setAttribute("role", "row");
        title.setAttribute("aria-rowindex", ++spoken);
        title.style.top = `${top}px`;
        const name = element("div", "who", own);
        if (kind !== "requirement" && kind !== "rule") name.append(element("span", "aside", " advisory, no part of the verdict"));
        name.setAttribute("role", "rowheader");
        title.append(name);
        space.append(title);
        top += GROUP;
      }
      const line = element("div", "row");
      line.setAttribute("role", "row");
      line.setAttribute("aria-rowindex", ++spoken);
      line.style.top = `${top}px`;
      const who = element("div", "who");
      who.setAttribute("role", "rowheader");
      who.title = item.name ? `${id}: ${item.name}` : id;
      const turns = kind === "requirement" ? isFlaky(id) : [];
      if (turns.length) {
        const sign = element("span", "flaky", "≈");
        sign.title = `flaky on ${turns.join(", ")}: passed and failed in turns`;
        sign.setAttribute("role", "img");
        sign.setAttribute("aria-label", "flaky");
        who.append(sign);
      }
      const prefix = `${own.toLowerCase()}.`;
      if (kind === "area") who.append(makeFold(item));
      else who.append(kind === "requirement" && id.startsWith(prefix) ? id.slice(prefix.length) : id.replace(/^rule\./, ""));
      who.classList.toggle("member", kind === "feature");
      const inner = element("div", "cells");
      inner.style.width = `${width}px`;
      line.append(who, inner);
      space.append(line);
      if (columns.length) noted.push([line, item]);
      lines.push({ inner, item, number, top });
      top += CELL;
    });
    space.style.height = `${top}px`;
    grid.setAttribute("aria-rowcount", spoken);
    grid.append(space);
    // Few runs leave room: there stands what the newest run says, or what the row is about.
    const room = grid.clientWidth - head.firstChild.offsetWidth - width - 24;
    for (const [line, item] of room < NOTE ? [] : noted) {
      const letter = item.cells[columns[0]], why = data.why[`${item.number}.${columns[0]}`];
      const bad = "febc".includes(letter) && why !== undefined;
      const note = element("div", bad ? "note bad" : "note", bad ? data.reasons[why] : item.statement || item.name || "");
      note.style.width = `${room}px`;
      note.setAttribute("aria-hidden", "true");
      line.append(note);
    }
    first = last = -1;
  };

  // Only the columns in view exist, and scrolling makes only those that come into it: a thousand runs cost no more than
  // the screen shows.
  const makeHead = (place) => {
    const run = data.runs[columns[place]];
    const link = element("a", `run ${run.tone}`);
    link.append(element("span", "when", run.started.slice(5)), element("span", "sign", SIGNS[run.tone]));
    link.href = `${base}runs/${encodeURIComponent(run.id)}`;
    link.title = `${run.id}: ${run.verdict}, Kubernetes ${run.version}, ${run.cluster}${run.why ? `\n${run.why}` : ""}`;
    link.tabIndex = -1;
    link.classList.toggle("marked", marked.includes(run.id));
    const top = element("div", "top");
    top.style.left = `${place * CELL + 1}px`;
    top.setAttribute("role", "columnheader");
    top.setAttribute("aria-colindex", place + 2);
    top.append(link);
    return top;
  };
  const nameOf = (item, letter) => (item.kind === "workload" ? READY : NAMES)[letter] || NAMES[letter];
  const makeCell = (item, number, place) => {
    const letter = item.cells[columns[place]];
    const cell = element("div", `cell ${letter}`, MARKS[letter]);
    cell.style.left = `${place * CELL + 1}px`;
    cell.dataset.row = number;
    cell.dataset.column = place;
    cell.setAttribute("role", "gridcell");
    cell.setAttribute("aria-colindex", place + 2);
    cell.setAttribute("aria-label", nameOf(item, letter));
    cell.tabIndex = number === at.row && place === at.column ? 0 : -1;
    return cell;
  };
  const draw = (force) => {
    const from = Math.max(0, Math.floor(grid.scrollLeft / CELL) - 8);
    const to = Math.min(columns.length, Math.ceil((grid.scrollLeft + grid.clientWidth) / CELL) + 8);
    if (!force && from === first && to === last) return;
    const anew = force || from >= last || to <= first;
    const fill = (inner, make) => {
      const range = (start, end) => Array.from({ length: Math.max(end - start, 0) }, (_, step) => make(start + step));
      if (anew) { inner.replaceChildren(...range(from, to)); return; }
      for (let place = first; place < Math.min(from, last); place++) inner.firstChild.remove();
      for (let place = last; place > Math.max(to, first); place--) inner.lastChild.remove();
      inner.prepend(...range(from, first));
      inner.append(...range(last, to));
    };
    fill(head.lastChild, makeHead);
    for (const { inner, item, number } of lines) fill(inner, (place) => makeCell(item, number, place));
    first = from; last = to;
    if (wantsFocus) focus();
  };
  const cellAt = (row, column) => grid.querySelector(`[data-row="${row}"][data-column="${column}"]`);
  const focus = () => { const cell = cellAt(at.row, at.column); if (cell) { cell.focus({ preventScroll: true }); wantsFocus = false; } };
  const place = (cell) => {
    const row = Number(cell.dataset.row), column = Number(cell.dataset.column);
    const item = rows[row], index = columns[column];
    return { row, column, item, index, run: data.runs[index], letter: item.cells[index], why: data.why[`${item.number}.${index}`] };
  };
  const sectionOf = (item) => ({ requirement: item.id, feature: `feature-${item.id}`, area: "features", workload: "workloads", rule: item.id })[item.kind];
  const open = (cell) => { const { item, run } = place(cell); location.href = `${base}runs/${encodeURIComponent(run.id)}#${encodeURIComponent(sectionOf(item))}`; };
  const mark = (id) => {
    const known = marked.indexOf(id);
    if (known >= 0) marked.splice(known, 1); else marked.push(id);
    if (marked.length > 2) marked.shift();
    compare.disabled = marked.length !== 2;
    compare.textContent = ["Mark two runs to compare", "Mark one more run", "Compare the two marked runs"][marked.length];
    draw(true);
    for (const box of list.querySelectorAll("input")) box.checked = marked.includes(box.value);
  };

  // The runs as a list: for fingers, for screen readers, and for what the grid has no room for.
  const ORDER = "febupn";
  const RANKS = { f: 0, e: 1, b: 1, n: 2, p: 3 };
  const outcomes = (column) => {
    const counts = {};
    for (const { cells } of data.requirements) counts[cells[column]] = (counts[cells[column]] || 0) + 1;
    return [...ORDER].filter((letter) => counts[letter]).map((letter) => [letter, counts[letter]]);
  };
  const changes = (column) => {
    const earlier = data.runs.map((_, index) => index).filter((index) => index > column && data.runs[index].cluster === data.runs[column].cluster);
    if (!earlier.length) return null;
    // A run that was interrupted leaves to the one before it what it had not judged.
    const whole = earlier.findIndex((index) => data.runs[index].tone !== "blocked");
    const before = whole < 0 ? earlier : earlier.slice(0, whole + 1);
    const found = { worse: [], better: [] };
    for (const { id, cells } of data.requirements) {
      const last = before.find((index) => cells[index] in RANKS);
      const step = RANKS[cells[column]] - RANKS[cells[last]];
      if (step) found[step < 0 ? "worse" : "better"].push(id);
    }
    return found;
  };
  let listed = PAGE;
  const enumerate = () => {
    list.replaceChildren(...columns.slice(0, listed).map((column) => {
      const run = data.runs[column];
      const row = element("tr", run.tone);
      const box = element("input", "");
      box.type = "checkbox";
      box.value = run.id;
      box.checked = marked.includes(run.id);
      box.setAttribute("aria-label", `compare run ${run.id}`);
      const link = element("a", "", run.started);
      link.href = `${base}runs/${encodeURIComponent(run.id)}`;
      link.title = run.id;
      const tally = element("td", "tally");
      for (const [letter, count] of outcomes(column)) {
        const badge = element("span", `cell ${letter}`, `${MARKS[letter]} ${count}`);
        badge.title = `${count} ${NAMES[letter]}`;
        tally.append(badge);
      }
      for (const text of [run.features, run.workloads]) if (text) tally.append(element("span", "aside", text));
      const step = element("td", "step");
      for (const [name, ids] of Object.entries(changes(column) || {})) {
        if (!ids.length) continue;
        const part = element("span", name, `${name === "worse" ? "▼" : "▲"} ${ids.length} ${name}`);
        part.title = ids.join("\n");
        step.append(part);
      }
      if (!step.childNodes.length && outcomes(column).length) step.append(element("span", "soft", changes(column) ? "no change" : "first run"));
      const cells = [element("td", ""), element("th", ""), element("td", "verdict", `${SIGNS[run.tone]} ${run.verdict}`), tally, step, element("td", "", run.version), element("td", "", run.cluster)];
      if (run.why) cells[2].append(element("span", "because", run.why));
      ["", "started", "verdict", "outcomes", "since the run before", "Kubernetes", "cluster"].forEach((name, index) => { if (index > 2) cells[index].dataset.name = name; });
      cells[0].append(box);
      cells[1].append(link);
      cells[1].scope = "row";
      row.append(...cells);
      return row;
    }));
    const left = columns.length - listed;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(left, 100)} more of ${left}`;
  };
  const tell = (cell) => {
    const { item, index, run, letter, why } = place(cell);
    let heading = `${item.id}: ${nameOf(item, letter)}`;
    if (item.kind === "area") {
      const counts = [..."cfebpnd"].map((each) => [item.members.filter(({ cells }) => cells[index] === each).length, NAMES[each]]);
      heading = `${item.id}: ${counts.filter(([count]) => count).map((pair) => pair.join(" ")).join(", ") || NAMES["."]}`;
    }
    tip.replaceChildren(element("b", "", heading), document.createElement("br"), `${run.started}, ${run.id}`);
    if (why !== undefined) tip.append(document.createElement("br"), data.reasons[why]);
    tip.hidden = false;
    const box = cell.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${box.bottom + 6 + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
  };

  grid.addEventListener("scroll", () => { tip.hidden = true; requestAnimationFrame(() => draw(false)); }, { passive: true });
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (wide === innerWidth) return draw(false);
    wide = innerWidth;
    const { scrollLeft, scrollTop } = grid;
    pick();
    grid.scrollTo(scrollLeft, scrollTop);
    draw(true);
  });
  grid.addEventListener("click", (event) => {
    if (event.target.matches(".cell")) open(event.target);
    if (event.target.matches(".fold")) fold(event.target.dataset.area);
    const link = event.target.closest(".run");
    if (link && (event.shiftKey || event.ctrlKey || event.metaKey)) { event.preventDefault(); mark(decodeURIComponent(link.pathname.split("/").pop())); }
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
    const left = at.column * CELL, top = lines[at.row].top;
    if (left < grid.scrollLeft) grid.scrollLeft = left;
    if (left + CELL + name > grid.scrollLeft + grid.clientWidth) grid.scrollLeft = left + CELL + name - grid.clientWidth;
    if (top - HEAD - GROUP < grid.scrollTop) grid.scrollTop = top - HEAD - GROUP;
    if (top + CELL > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + CELL - grid.clientHeight;
    wantsFocus = true;
    draw(true);
    focus();
  });
  compare.addEventListener("click", () => {
    const older = [...marked].sort((one, other) => data.runs.findIndex((run) => run.id === other) - data.runs.findIndex((run) => run.id === one));
    location.href = `${base}compare?a=${encodeURIComponent(older[0])}&b=${encodeURIComponent(older[1])}`;
  });
  list.addEventListener("change", (event) => mark(event.target.value));
  more.addEventListener("click", () => { listed += 100; enumerate(); });
  trouble.addEventListener("change", choose);
  // What is looked for in the grid stays while other runs are asked for.
  filter.addEventListener("submit", () => {
    for (const [name, value] of [["find", search.value], ["trouble", trouble.checked ? "1" : ""]]) {
      if (!value) continue;
      const kept = element("input", "");
      Object.assign(kept, { type: "hidden", name, value });
      filter.append(kept);
    }
    for (const field of filter.elements) if (field.name && !field.value) field.disabled = true;
  });
  search.addEventListener("input", choose);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
  });
  choose();
})();
