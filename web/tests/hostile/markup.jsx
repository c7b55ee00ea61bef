const attack = ({ collector }) => {
  const text = `<iframe src="${collector}/markup"></iframe><link rel="preconnect" href="${collector}/">`;
  const ways = [
    () => (document.body.innerHTML += text),
    () => (document.createElement("div").outerHTML = text),
    () => document.body.insertAdjacentHTML("beforeend", text),
    () => document.write(text),
    () => document.body.append(...new DOMParser().parseFromString(text, "text/html").body.children),
    () => document.body.append(document.createRange().createContextualFragment(text)),
    () => document.body.setHTMLUnsafe(text),
    () => document.body.setHTML(text, { sanitizer: { elements: ["link"], attributes: ["rel", "href"] } }),
    () => document.body.append(...Document.parseHTMLUnsafe(text).body.children),
    () => (document.createElement("template").innerHTML = text),
    () => document.execCommand("insertHTML", false, text),
    () => trustedTypes.createPolicy("another", { createHTML: (html) => html }).createHTML(text),
    () => trustedTypes.createPolicy("weft-frame", { createHTML: (html) => html }).createHTML(text),
  ];
  const open = ways.flatMap((way, index) => {
    try {
      way();
      return [index];
    } catch {
      return [];
    }
  });
  return open.length ? `open: ${open}` : "closed";
};
