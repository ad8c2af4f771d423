// A field with data-filter hides the elements that do not hold its text, and groups without any.
for (const field of document.querySelectorAll("[data-filter]")) {
  field.addEventListener("input", () => {
    const text = field.value.trim().toLowerCase();
    for (const one of document.querySelectorAll(field.dataset.filter)) one.hidden = !one.textContent.toLowerCase().includes(text);
    for (const group of document.querySelectorAll("[data-filter-group]")) group.hidden = !group.querySelector(field.dataset.filter + ":not([hidden])");
  });
}
