"use strict";
// The token stays in this page: no cookie, no storage.
const access = document.getElementById("access");
const token = document.getElementById("token");
const refused = document.getElementById("refused");
const operations = document.getElementById("operations");

function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
}

async function show() {
  refused.textContent = "";
  try {
    const reply = await ask("docs/operations");
    if (reply.ok) {
      operations.innerHTML = await reply.text(); // escaped by the server; it may run no script
      access.hidden = true;
      return;
    }
    if (reply.status !== 401 || token.value) {
      refused.textContent = (await reply.json()).error;
    }
  } catch (error) {
    refused.textContent = `No answer: ${error.message}`;
  }
  access.hidden = false;
}

async function send(form) {
  const shown = form.querySelector("output");
  const body = form.querySelector("textarea");
  const options = { method: form.dataset.method };
  if (body) {
    options.body = body.value;
    options.headers = { "Content-Type": "application/json" };
  }
  shown.textContent = "…";
  try {
    const reply = await ask(form.dataset.path, options);
    let text = await reply.text();
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // it is no JSON and is shown as it is
    }
    shown.textContent = `${reply.status}\n${text}`;
  } catch (error) {
    shown.textContent = `No answer: ${error.message}`;
  }
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target === access) show();
  else send(event.target);
});
show();
