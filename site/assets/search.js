"use strict";

// find returns what has all words of a query, the best first. An entry is [page, anchor, title, title of the page, text]. A word that
// stands in a title weighs more than one in a text, and a whole word more than a part of one.
function find(index, query, most) {
  var words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  var found = [];
  index.forEach(function (entry, order) {
    var score = 0;
    for (var i = 0; i < words.length; i++) {
      var one = 8 * weight(entry[2], words[i]) + 4 * weight(entry[3], words[i]) + weight(entry[4], words[i]);
      if (!one) return;
      score += one;
    }
    found.push({ entry: entry, score: score, order: order });
  });
  found.sort(function (a, b) { return b.score - a.score || a.order - b.order; });
  return found.slice(0, most).map(function (f) { return f.entry; });
}

// weight is 0 if a text lacks a word, 1 if it has it as a part of another, 3 if as a whole.
function weight(text, word) {
  text = text.toLowerCase();
  var part = 0;
  for (var at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!inner(text.charAt(at - 1)) && !inner(text.charAt(at + word.length))) return 3;
    part = 1;
  }
  return part;
}

function inner(c) { return /[\p{L}\p{N}_]/u.test(c); }

// excerpt returns the part of a text where the first of the words stands.
function excerpt(text, query) {
  var first = query.toLowerCase().split(/\s+/).filter(Boolean).map(function (w) { return text.toLowerCase().indexOf(w); })
    .filter(function (n) { return n >= 0; });
  var from = Math.max(0, Math.min.apply(null, first.concat(text.length)) - 80);
  if (!first.length) from = 0;
  return (from > 0 ? "... " : "") + text.slice(from, from + 240) + (from + 240 < text.length ? " ..." : "");
}

function show(query) {
  var most = 100, found = find(softvpiIndex, query, most + 1), list = document.getElementById("found");
  document.getElementById("count").textContent = !found.length ? "Nothing has all of these words." :
    found.length > most ? "More than " + most + "; the best of them:" : found.length + " found:";
  found.slice(0, most).forEach(function (e) {
    var item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
    link.href = e[0] + (e[1] ? "#" + e[1] : "");
    link.textContent = e[2] === e[3] ? e[2] : e[3] + ": " + e[2];
    text.textContent = excerpt(e[4], query);
    item.append(link, text);
    list.append(item);
  });
}

if (typeof module !== "undefined") {
  module.exports = { find: find, excerpt: excerpt };
} else {
  var query = new URLSearchParams(location.search).get("q") || "";
  document.querySelector("input[name=q]").value = query;
  if (query.trim()) show(query);
}
