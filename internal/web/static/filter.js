// A field with data-filter hides the elements that do not hold its text, and groups without any. Where the field names
// an element with data-filter-count, that says how many are left.
for (const field of document.querySelectorAll("[data-filter]")) {
  const all = [...document.querySelectorAll(field.dataset.filter)];
  const apply = () => {
    const text = field.value.trim().toLowerCase();
    for (const one of all) one.hidden = !one.textContent.toLowerCase().includes(text);
    for (const group of document.querySelectorAll("[data-filter-group]")) group.hidden = !group.querySelector(field.dataset.filter + ":not([hidden])");
    const count = document.getElementById(field.dataset.filterCount);
    if (count) count.textContent = text ? `${all.filter((one) => !one.hidden).length} of ${all.length}` : "";
  };
  field.addEventListener("input", apply);
  if (field.value) apply(); // as the browser remembers it
}
