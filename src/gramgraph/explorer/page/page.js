// The page of the server: the token comes from the fragment of the address, and goes into a header.
import { mount } from "./app.js";
import { readFragment } from "./case.js";

const token = readFragment(location.hash).token;

async function send(path, headers, body, signal) {
  const answer = await fetch(path, { method: "POST", headers: { "X-Gramgraph-Token": token, ...headers }, body, signal });
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
  return answer.json();
}

// A connection that was idle may have been closed just now: a question is asked once more on a new one.
async function again(path, headers, body, signal) {
  try {
    return await send(path, headers, body, signal);
  } catch (error) {
    if (error.status || error.name === "AbortError") throw error;
    return send(path, headers, body, signal);
  }
}

const backend = {
  keepsFragment: true,
  ask: (name, body, signal) => again("/api/" + name, { "Content-Type": "application/json" }, JSON.stringify(body), signal),
  upload: (file) => send("/upload", { "Content-Type": "application/octet-stream", "X-File-Name": encodeURIComponent(file.name) }, file),
};

mount(document.getElementById("app"), backend, { token });
