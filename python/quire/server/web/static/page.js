"use strict";
// Updates numbers, and adds messages as they arrive. All text is set as text, never as markup.

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function keepNumbers(place) {
  const source = new EventSource(place.dataset.live);
  const rows = new Map();
  for (const row of document.querySelectorAll("[data-topic]")) rows.set(row.dataset.topic, row);
  source.addEventListener("open", () => {
    place.hidden = false;
    place.classList.remove("away");
    place.textContent = "Live";
  });
  source.addEventListener("error", () => {
    place.classList.add("away");
    place.textContent = "Not connected";
  });
  source.addEventListener("queues", (event) => {
    for (const queue of JSON.parse(event.data)) {
      const row = rows.get(queue.topic);
      if (!row) continue;
      for (const cell of row.querySelectorAll("[data-field]")) {
        const text = queue[cell.dataset.field];
        if (text !== undefined && cell.textContent !== text) cell.textContent = text;
      }
    }
  });
}

function messageOf(row) {
  const item = element("li", "new");
  const head = element("div", "head");
  const link = element("a", "", row.index);
  link.href = row.url;
  head.append(link);
  if (row.time) {
    const time = element("time", "", row.time.text);
    time.dateTime = row.time.iso;
    time.title = row.time.title;
    head.append(time);
  }
  head.append(element("span", "", row.size));
  item.append(head);
  if (row.why) item.append(element("p", "why", row.why));
  if (row.note) item.append(element("p", "note", row.note));
  if (row.fields.length) {
    const list = element("dl", "fields");
    for (const [name, value] of row.fields) {
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", value));
      list.append(pair);
    }
    item.append(list);
  } else {
    item.append(element("pre", "", row.text));
  }
  if (row.cut) {
    const more = element("p", "more");
    const rest = element("a", "", `More of message ${row.index}`);
    rest.href = row.url;
    more.append(rest);
    item.append(more);
  }
  return item;
}

function follow(button) {
  const list = document.getElementById("messages");
  const status = button.parentElement.querySelector("[role=status]");
  const most = 300;
  let source = null;
  function stop(text) {
    source.close();
    source = null;
    button.setAttribute("aria-pressed", "false");
    status.textContent = text;
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    if (source) {
      stop("");
      return;
    }
    source = new EventSource(button.dataset.follow);
    button.setAttribute("aria-pressed", "true");
    source.addEventListener("following", () => { status.textContent = "Following"; });
    source.addEventListener("error", () => { status.textContent = "Not connected"; });
    source.addEventListener("trouble", (event) => stop(JSON.parse(event.data).text));
    source.addEventListener("skipped", () => {
      status.textContent = "Messages arrive too fast to be shown: some were left out";
    });
    source.addEventListener("messages", (event) => {
      const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 40;
      for (const row of JSON.parse(event.data).rows) list.append(messageOf(row));
      while (list.children.length > most) list.firstElementChild.remove();
      if (atEnd) window.scrollTo(0, document.body.scrollHeight);
    });
  });
}

for (const place of document.querySelectorAll("[data-live]")) keepNumbers(place);
for (const button of document.querySelectorAll("[data-follow]")) follow(button);

document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const link = rel && !event.target.closest("[tabindex='0']") && document.querySelector(`.pages a[rel=${rel}]`);
  const field = document.querySelector(`[data-key="${event.key === "/" ? "/" : ""}"]`);
  if (link) link.click();
  else if (field) {
    event.preventDefault();
    field.focus();
  }
});
