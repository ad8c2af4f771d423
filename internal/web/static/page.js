// What every page has. Parts that are marked with data-live (milliseconds) are fetched again from the server, which has
// made them safe to show, while the page is seen and nobody is at work in them. Forms with data-confirm ask first.

const resting = (part) => !document.hidden && !part.contains(document.activeElement) && !part.closest("[data-held]") &&
  getSelection().isCollapsed;

async function renew(part) {
  if (!resting(part)) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html", "X-Renew": part.id }, redirect: "error" });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
  // Somebody may have begun to work in it while the answer was on its way.
  if (fresh && resting(part) && part.innerHTML !== fresh.innerHTML) part.replaceChildren(...fresh.childNodes);
}

function live(part) {
  const every = Number(part.dataset.live);
  const trouble = document.createElement("p");
  trouble.className = "problem";
  trouble.setAttribute("role", "status");
  trouble.textContent = "No answer: the driver has stopped, or the session has ended. Below is what was last seen.";
  let failures = 0;
  const turn = async () => {
    try {
      await renew(part);
      failures = 0;
      part.classList.remove("stale");
      trouble.remove();
    } catch {
      failures++;
      part.classList.add("stale");
      if (failures === 2) part.before(trouble);
    }
    setTimeout(turn, Math.min(15000, every * 2 ** failures));
  };
  setTimeout(turn, every);
}

for (const part of document.querySelectorAll("[data-live]")) live(part);

// ask shows a question; answering yes sends the form.
function ask(form, submitter) {
  const dialog = document.createElement("dialog");
  const text = document.createElement("p");
  const row = document.createElement("form");
  text.id = "question";
  text.textContent = form.dataset.confirm;
  dialog.setAttribute("aria-labelledby", text.id);
  row.method = "dialog";
  row.className = "actions";
  for (const [value, label, kind] of [["yes", form.dataset.yes, "primary"], ["no", "Cancel", ""]]) {
    const b = document.createElement("button");
    b.value = value;
    b.textContent = label;
    b.className = kind;
    row.append(b);
  }
  dialog.append(text, row);
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue !== "yes") { submitter?.focus(); return; }
    delete form.dataset.confirm;
    form.requestSubmit(submitter);
  });
  dialog.showModal();
}

document.addEventListener("submit", (e) => {
  if (!e.target.dataset.confirm) return;
  e.preventDefault();
  ask(e.target, e.submitter);
});
