"use strict";
(() => {
  const main = document.querySelector("main");
  const run = main.dataset.run;
  const get = (id) => document.getElementById(id);
  const MARKS = { passed: "✓", failed: "✗", blocked: "■", "not-applicable": "-", error: "!", running: "…", waiting: "·", unjudged: "·" };
  const OUTCOMES = ["failed", "error", "blocked", "passed", "not-applicable"];
  const rows = new Map();
  const fixtures = new Set();
  let planned = 0, gone = 0, expected = 0, scale = 1;

  const duration = (seconds) => {
    if (seconds < 60) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds);
    return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(whole / 3600)} h ${Math.floor(whole % 3600 / 60)} min`;
  };
  const element = (tag, classes, text = "") => {
    const made = document.createElement(tag);
    made.className = classes;
    made.textContent = text;
    return made;
  };
  // Many nodes are told by their kinds: a thousand names tell nothing.
  const list = (nodes) => {
    if (nodes.length <= 12) return nodes.map((node) => `${node.name} (${node.os} ${node.build})`).join(", ");
    const kinds = new Map();
    for (const { os, build } of nodes) kinds.set(`${os} ${build}`, (kinds.get(`${os} ${build}`) || 0) + 1);
    return [...kinds].map(([kind, count]) => `${count} nodes ${kind}`).join(", ");
  };
  const show = (id, outcome, reason, seconds) => {
    let row = rows.get(id);
    if (!row) {
      row = document.createElement("tr");
      const cells = [document.createElement("td"), document.createElement("th"), element("td", "soft")];
      cells[1].scope = "row";
      row.append(...cells);
      rows.set(id, row);
      get("list").append(row);
    }
    row.dataset.outcome = outcome;
    row.children[0].replaceChildren(element("span", `badge ${outcome}`, `${MARKS[outcome]} ${outcome}`));
    row.children[1].textContent = id;
    if (reason && outcome !== "passed") row.children[1].append(element("span", "why", reason));
    if (seconds) row.children[2].textContent = duration(seconds);
  };
  const advise = (place, name, outcome, words, reason) => {
    const row = document.createElement("tr"), title = element("th", "", name), cell = document.createElement("td");
    title.scope = "row";
    cell.append(element("span", `badge ${outcome}`, `${MARKS[outcome]} ${words}`));
    if (reason && outcome !== "passed") title.append(element("span", "why", reason));
    row.append(cell, title);
    get(place).append(row);
    get(place).closest("section").hidden = false;
  };
  const summarise = () => {
    const counts = new Map();
    for (const row of rows.values()) counts.set(row.dataset.outcome, (counts.get(row.dataset.outcome) || 0) + 1);
    const judged = OUTCOMES.reduce((sum, name) => sum + (counts.get(name) || 0), 0);
    get("progress").max = Math.max(planned, judged, 1);
    get("progress").value = judged;
    get("judged").textContent = planned ? `${judged} of ${Math.max(planned, judged)} judged` : `${judged} judged`;
    get("counts").replaceChildren(...OUTCOMES.filter((name) => counts.has(name)).map((name) => element("li", `badge ${name}`, `${MARKS[name]} ${counts.get(name)} ${name}`)));
    const words = gone ? [`${duration(gone)} gone`] : [];
    if (expected && !main.classList.contains("over")) words.push(`about ${duration(expected)} expected`);
    if (fixtures.size) words.push(`starting pods and services: ${[...fixtures].join(", ")}`);
    get("now").textContent = words.length ? `· ${words.join(" · ")}` : "";
  };
  const end = (text, good) => {
    get("state").textContent = text;
    get("state").className = good ? "good" : "bad";
    document.title = `${text} · ${run} · winready`;
    main.classList.add("over");
    fixtures.clear();
    get("done").hidden = false;
  };
  const handle = (event) => {
    if (event.at) gone = event.at;
    switch (event.event) {
      case "started":
        get("state").textContent = "is in progress";
        scale = event.scale || 1;
        break;
      case "cluster":
        get("cluster").textContent = `Kubernetes ${event.version}${event.simulated ? ", a simulated cluster (sandbox)" : ""}: ${list(event.nodes)}`;
        break;
      case "plan":
        expected = event.expected / scale;
        for (const name of event.fixtures) fixtures.add(name);
        for (const item of event.requirements) if (!rows.has(item.id)) show(item.id, "waiting");
        planned = rows.size;
        break;
      case "fixture":
        fixtures.delete(event.name);
        break;
      case "running":
        show(event.id, "running");
        break;
      case "finished":
        show(event.id, event.outcome, event.reason, event.seconds);
        break;
      case "feature":
        advise("features", event.id, event.outcome, event.odd ? "contradiction" : event.outcome, event.reason);
        break;
      case "workload":
        advise("workloads", event.name, event.outcome, event.ready ? "ready" : "not ready", event.reason);
        break;
      case "verdict":
        end(event.text, event.verdict === "Pass");
        break;
      case "cut-off":
        for (const [id, row] of rows) if (!OUTCOMES.includes(row.dataset.outcome)) show(id, "unjudged");
        end("was cut off", false);
        get("cut").hidden = false;
        break;
    }
    summarise();
  };
  const source = new EventSource(`${document.body.dataset.base}runs/${encodeURIComponent(run)}/events`);
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (main.classList.contains("lost")) { main.classList.remove("lost"); get("state").textContent = "is in progress"; }
    handle(event);
    if (event.event === "verdict" || event.event === "cut-off") source.close();
  };
  source.onerror = () => {
    if (main.classList.contains("over")) return;
    main.classList.add("lost");
    get("state").textContent = "cannot be followed: the dashboard does not answer; trying again";
  };
})();
