"use strict";
// node docs_page.js SCRIPT TOKEN: what the script of /docs does in a page, as a person would use it.
// Requests go to standard output, one a line, and replies come from standard input.
const readline = require("node:readline");

const [script, token] = process.argv.slice(2);
const replies = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const elements = {};
for (const id of ["access", "token", "refused", "operations"]) {
  elements[id] = { id, value: "", textContent: "", innerHTML: "", hidden: id === "access" };
}
const listeners = [];
globalThis.document = {
  getElementById: (id) => elements[id],
  addEventListener: (kind, listener) => listeners.push([kind, listener]),
};
globalThis.fetch = async (path, options) => {
  console.log(JSON.stringify({ path, options }));
  const { status, text } = JSON.parse((await replies.next()).value);
  return { status, ok: status < 300, text: async () => text, json: async () => JSON.parse(text) };
};
const idle = () => new Promise((resolve) => setTimeout(resolve, 100));

async function until(condition) {
  for (let k = 0; k < 300; k += 1) {
    if (condition()) return;
    await idle();
  }
  throw new Error("It did not happen.");
}

async function submit(target) {
  let isPrevented = false;
  const event = { target, preventDefault: () => { isPrevented = true; } };
  for (const [kind, listener] of listeners) if (kind === "submit") listener(event);
  if (!isPrevented) throw new Error("The browser would leave the page.");
}

async function main() {
  new Function(script)();
  await until(() => elements.operations.innerHTML || !elements.access.hidden);
  const askedForToken = !elements.access.hidden;
  if (askedForToken) {
    elements.token.value = token;
    submit(elements.access);
    await until(() => elements.operations.innerHTML);
  }
  const output = { textContent: "" };
  const body = { value: '{"records": [{"x0": 0, "x1": 1, "x2": 2}]}' };
  submit({
    dataset: { method: "POST", path: "predict" },
    querySelector: (what) => (what === "output" ? output : body),
  });
  await until(() => output.textContent.length > 5);
  console.log(JSON.stringify({
    asked_for_token: askedForToken,
    is_hidden_at_the_end: elements.access.hidden,
    operations: elements.operations.innerHTML,
    shown: output.textContent,
  }));
  process.exit(0);
}

main();
