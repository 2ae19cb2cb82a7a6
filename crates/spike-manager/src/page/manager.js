"use strict";
// Shows the database and the jobs, and starts commands. The server's answers are shown as text, never as markup.

const find = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en-US");
const selected = { application: null, job: null };
let state = { applications: [], jobs: [] };
let shown = {};

/** An element with properties and children. */
function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function complain(message) {
  find("problem").textContent = message;
  find("problem").hidden = !message;
}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** Starts a command, and shows its job. */
async function start(command) {
  try {
    complain("");
    selected.job = await ask("jobs", command);
    await refresh();
  } catch (error) {
    complain(error.message);
  }
}

/** Does something with the fields of a form when it is sent. */
function on(form, action) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    action(Object.fromEntries(new FormData(form)));
  });
  return form;
}

function bytes(size) {
  const units = ["bytes", "KB", "MB", "GB"];
  let unit = 0;
  for (; size >= 1000 && unit < 3; unit++) size /= 1000;
  return `${size.toFixed(unit && size < 10 ? 1 : 0)} ${units[unit]}`;
}

const percent = (value) => (value === null ? "–" : `${value.toFixed(1)} %`);
const count = (value) => (value === null ? "–" : number.format(value));
const name = (path) => path.split("/").pop();
const total = (images, key) => images.reduce((sum, image) => sum + (image[key] || 0), 0);

/** The share of the executed instructions that the optimized images do without. */
function gain(images) {
  const optimized = images.filter((image) => image.removed !== null);
  if (!optimized.length) return null;
  const removed = optimized.reduce((sum, image) => sum + image.removed * image.executed, 0);
  return removed / Math.max(total(images, "executed"), 1);
}

function showApplications() {
  const list = state.applications.map((application) =>
    element("li", {}, element("button", {
      type: "button",
      "aria-current": application.name === selected.application,
      onclick: () => { selected.application = application.name; show(); },
    },
    element("strong", {}, application.name),
    element("span", { className: `badge ${application.phase}` }, application.phase),
    element("small", { title: application.images[0].path }, application.images[0].path))));
  if (!list.length) list.push(element("li", { className: "empty" }, "None is registered yet."));
  find("applications").replaceChildren(...list);
}

function versions(application) {
  const button = (version) => element("button", {
    type: "button",
    "aria-pressed": version === application.phase,
    onclick: () => start({ command: "use", application: application.name, version }),
  }, version);
  return element("span", { className: "versions", title: "What is executed when the program is started" },
    ...["original", "instrumented", "optimized"].map(button));
}

function figures(images) {
  const figure = (term, value) => element("div", {}, element("dt", {}, term), element("dd", {}, value));
  return element("dl", { className: "figures" },
    figure("Images", count(images.length)),
    figure("Profiled instructions", count(total(images, "executed"))),
    figure("Instrumented runs", count(images[0].loads)),
    figure("Removed by optimization", percent(gain(images))));
}

function imageRow(image) {
  const badge = (is, text) => is ? element("span", { className: `badge ${text}` }, text) : null;
  const right = (text) => element("td", { className: "number" }, text);
  return element("tr", {},
    element("td", {}, name(image.path), element("small", {}, image.path),
      image.note ? element("small", { className: "note" }, image.note) : null),
    element("td", {}, image.role),
    right(bytes(image.size)),
    element("td", {}, badge(image.instrumented, "instrumented"), " ", badge(image.optimized, "optimized")),
    right(count(image.executed)),
    right(count(image.code)),
    right(count(image.optimized_code)),
    right(percent(image.removed)));
}

function imageTable(images) {
  const heads = ["Image", "Role", "Size", "Versions", "Profiled instructions", "Code", "Optimized code", "Removed"];
  const head = (text, at) => element("th", { className: at === 2 || at > 3 ? "number" : "" }, text);
  return element("div", { className: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map(head))),
    element("tbody", {}, ...images.map(imageRow))));
}

function actions(application) {
  const field = (label, properties) => element("label", {}, label, element("input", properties));
  const form = (title, text, fields, action) => on(element("form", {}, element("h3", {}, title), element("p", {}, text), ...fields,
    element("button", { className: title === "Remove" ? "danger" : "" }, title)), action);
  const own = application.name;
  return element("div", { className: "actions" },
    form("Instrument", "Makes images that count, and chooses them.",
      [element("label", { className: "check" }, element("input", { type: "checkbox", name: "replace" }), "forget what was collected")],
      (fields) => start({ command: "instrument", application: own, replace: "replace" in fields })),
    form("Optimize", "Makes optimized images by the profile, and chooses them.",
      [field("Options", { name: "options", placeholder: "--blocks ext-tsp …" })],
      (fields) => start({ command: "optimize", application: own, options: fields.options })),
    form("Export", "Writes the optimized images, or the profile.",
      [field("Folder for images", { name: "folder", placeholder: "/path/of/a/folder" }),
        field("File for the profile", { name: "profile", placeholder: "/path/of/a/file" })],
      (fields) => start({ command: "export", application: own, ...fields })),
    form("Remove", "Removes the application, its versions and its profile. The originals stay.", [],
      () => confirm(`Remove ${own} with its versions and its profile?`) && start({ command: "remove", application: own })));
}

function showApplication() {
  const application = state.applications.find((one) => one.name === selected.application);
  if (!application) {
    find("application").replaceChildren(element("p", { className: "empty" },
      "Register a program. Its libraries are found; the files themselves are never changed."));
    return;
  }
  const title = element("div", { className: "title" }, element("h2", {}, application.name), versions(application));
  find("application").replaceChildren(title, figures(application.images), imageTable(application.images), actions(application));
}

function jobRow(job) {
  const going = !job.end;
  const kind = going ? "going" : job.end.succeeded ? "done" : "failed";
  const stop = element("button", {
    type: "button", className: "plain",
    onclick: (event) => { event.stopPropagation(); ask(`jobs/${job.id}/stop`, {}).then(refresh); },
  }, "Stop");
  return element("li", {
    tabIndex: 0, "aria-current": job.id === selected.job,
    onclick: () => { selected.job = job.id; showJobs(); },
    onkeydown: (event) => { if (event.key === "Enter") { selected.job = job.id; showJobs(); } },
  },
  element("span", { className: `badge ${kind}` }, going ? "running" : job.end.description),
  element("code", { title: job.title }, `pathlength ${job.title}`),
  element("span", { className: "number" }, `${job.seconds.toFixed(1)} s`),
  going ? stop : element("span"),
  going && job.line ? element("small", {}, job.line) : null);
}

async function showJobs() {
  const rows = state.jobs.map(jobRow);
  if (!rows.length) rows.push(element("li", { className: "empty" }, "Nothing was started from this page yet."));
  find("list").replaceChildren(...rows);
  const job = state.jobs.find((one) => one.id === selected.job);
  find("output").hidden = !job;
  if (!job) return;
  const { output } = await ask(`jobs/${job.id}`);
  const text = output || "(no output)";
  if (find("output").textContent !== text) {
    find("output").textContent = text;
    find("output").scrollTop = find("output").scrollHeight;
  }
}

/** Shows what has changed since it was shown last, so that forms keep what was typed. */
function show() {
  const parts = {
    applications: [[state.applications, selected.application], showApplications],
    application: [state.applications.find((one) => one.name === selected.application) || null, showApplication],
    jobs: [[state.jobs, selected.job], showJobs],
  };
  for (const [part, [data, action]] of Object.entries(parts)) {
    const text = JSON.stringify(data);
    if (shown[part] !== text) {
      shown[part] = text;
      action();
    }
  }
}

async function refresh() {
  try {
    state = await ask("state");
  } catch (error) {
    complain(`The manager does not answer: ${error.message}`);
    return;
  }
  if (state.problem) complain(state.problem);
  find("database").textContent = `Database: ${state.folder}`;
  if (!state.applications.some((one) => one.name === selected.application)) {
    selected.application = state.applications.length ? state.applications[0].name : null;
  }
  if (selected.job === null && state.jobs.length) selected.job = state.jobs[0].id;
  show();
}

/** Asks again: soon while a job runs. */
async function follow() {
  await refresh();
  setTimeout(follow, state.jobs.some((job) => !job.end) ? 500 : 3000);
}

on(find("register"), (fields) => { start({ command: "register", ...fields }); find("register").reset(); });
on(find("run"), ({ line, folder, version }) => start(version === "collect"
  ? { command: "collect", line, folder } : { command: "run", line, folder, version }));
find("collect").onclick = () => start({ command: "collect", line: "", folder: "" });
follow();
