"use strict";
(() => {
  const main = document.querySelector("main");
  const run = main.dataset.run;
  const get = (id) => document.getElementById(id);
  const MARKS = { passed: "✓", failed: "✗", blocked: "■", "not-applicable": "-", error: "!", running: "…", waiting: "·" };
  const rows = new Map();
  const fixtures = new Set();
  let judged = 0;

  const duration = (seconds) => seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  const show = (id, outcome, reason, seconds) => {
    let row = rows.get(id);
    if (!row) {
      row = document.createElement("tr");
      row.innerHTML = '<td><span class="badge"></span></td><th scope="row"></th><td class="soft"></td>';
      rows.set(id, row);
      get("list").append(row);
    }
    const badge = row.querySelector(".badge");
    badge.className = `badge ${outcome}`;
    badge.textContent = `${MARKS[outcome]} ${outcome}`;
    row.dataset.outcome = outcome;
    row.children[1].textContent = id;
    if (reason && outcome !== "passed") {
      const why = document.createElement("span");
      why.className = "why";
      why.textContent = reason;
      row.children[1].append(why);
    }
    if (seconds) row.children[2].textContent = duration(seconds);
  };
  const handle = (event) => {
    switch (event.event) {
      case "cluster":
        get("cluster").textContent = `Kubernetes ${event.version}: ${event.nodes.map((node) => `${node.name} (${node.os} ${node.build})`).join(", ")}`;
        break;
      case "plan":
        get("progress").max = Math.max(judged + event.requirements.length, 1);
        for (const name of event.fixtures) fixtures.add(name);
        for (const item of event.requirements) if (!rows.has(item.id)) show(item.id, "waiting");
        break;
      case "fixture":
        fixtures.delete(event.name);
        break;
      case "running":
        show(event.id, "running");
        break;
      case "finished":
        judged += 1;
        show(event.id, event.outcome, event.reason, event.seconds);
        break;
      case "verdict":
        get("state").textContent = event.text;
        document.title = `${event.text} · ${run} · winready`;
        main.classList.add("over");
        get("done").hidden = false;
        break;
    }
    get("progress").value = judged;
    get("judged").textContent = judged;
    get("fixtures").textContent = fixtures.size ? `starting pods and services: ${[...fixtures].join(", ")}` : event.at ? `${duration(event.at)} gone` : "";
  };
  const source = new EventSource(`/runs/${encodeURIComponent(run)}/events`);
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    handle(event);
    if (event.event === "verdict") source.close();
  };
})();
