// What every page has: parts that are marked with data-live (milliseconds) are fetched again from the server, which
// has made them safe to show, while the page is seen and nobody is at work in them.

const at = new Map();

async function renew(part) {
  if (document.hidden || part.contains(document.activeElement) || part.closest("[data-held]") || !getSelection().isCollapsed) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
  if (fresh && part.innerHTML !== fresh.innerHTML) part.replaceChildren(...fresh.childNodes);
}

function live(part) {
  let failures = 0;
  const turn = async () => {
    try {
      await renew(part);
      failures = 0;
      part.classList.remove("stale");
    } catch {
      failures++;
      part.classList.add("stale");
    }
    if (failures < 5) at.set(part, setTimeout(turn, Number(part.dataset.live) * (1 + failures)));
  };
  at.set(part, setTimeout(turn, Number(part.dataset.live)));
}

for (const part of document.querySelectorAll("[data-live]")) live(part);
