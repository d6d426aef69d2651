"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const evidence = JSON.parse(document.getElementById("evidence-data").textContent);
  const search = document.getElementById("search");
  const boxes = all("input[data-severity]");
  const panel = document.getElementById("evidence");
  const status = document.getElementById("matches");
  let chosen = null;

  document.documentElement.classList.add("scripted");

  function filter() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (text) => words.every((word) => text.toLowerCase().includes(word));
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.severity));
    let findings = 0;
    for (const item of all(".finding")) {
      item.hidden = !(shown.has(item.dataset.severity) && matches(item.textContent));
      findings += item.hidden ? 0 : 1;
    }
    for (const row of all("tr[data-row]")) {
      row.hidden = !matches(row.textContent);
    }
    status.textContent = `${findings} of ${all(".finding").length} findings shown`;
    light(words.length ? (id) => matches(evidence.nodes[id].search) : null);
  }

  function light(wanted) {
    const near = new Set();
    for (const node of all(".node")) {
      if (wanted === null || wanted(node.dataset.id)) near.add(node.dataset.id);
    }
    const kept = new Set(near);
    for (const edge of all(".edge")) {
      const touches = near.has(edge.dataset.from) || near.has(edge.dataset.to);
      edge.classList.toggle("dim", !touches);
      if (touches) { kept.add(edge.dataset.from); kept.add(edge.dataset.to); }
    }
    for (const node of all(".node")) node.classList.toggle("dim", !kept.has(node.dataset.id));
  }

  function choose(node) {
    for (const item of all(".node.chosen")) item.classList.remove("chosen");
    chosen = chosen === node ? null : node;
    panel.replaceChildren();
    if (chosen === null) {
      panel.textContent = panel.dataset.empty;
      filter();
      return;
    }
    node.classList.add("chosen");
    light((id) => id === node.dataset.id);
    const told = evidence.nodes[node.dataset.id];
    const title = document.createElement("h3");
    title.textContent = told.title;
    const list = document.createElement("ul");
    for (const line of told.lines) {
      const item = document.createElement("li");
      item.textContent = line;
      list.append(item);
    }
    panel.append(title, list);
    for (const found of told.findings) {
      const link = document.createElement("a");
      link.href = `#${found.id}`;
      link.textContent = found.title;
      const paragraph = document.createElement("p");
      paragraph.append(link);
      panel.append(paragraph);
    }
  }

  for (const node of all(".node")) {
    node.addEventListener("click", () => choose(node));
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(node); }
    });
  }
  for (const button of all("button[data-copy]")) {
    button.addEventListener("click", () => {
      const text = button.parentElement.querySelector("pre").textContent;
      const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
      if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, () => selectText(button)); }
      else { selectText(button); }
    });
  }

  function selectText(button) {
    getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
  }

  search.addEventListener("input", filter);
  boxes.forEach((box) => box.addEventListener("change", filter));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== null) choose(chosen);
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((item) => { item.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((item) => { item.open = false; }));
  filter();
})();
