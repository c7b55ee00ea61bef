const attack = ({ collector }) => {
  const page = "http://www.w3.org/1999/xhtml";
  const ways = [
    () => document.createElement("iframe"),
    () => document.createElementNS(page, "x:iframe"),
    () => new Document().createElementNS(page, "iframe"),
    () => document.implementation.createDocument(page, "iframe").documentElement,
    () => document.createElement("object"),
    () => document.createElement("embed"),
    () => {
      let turn = 0;
      return document.createElement({ toString: () => (turn++ ? "div" : "iframe") });
    },
    () => {
      Set.prototype.has = () => false;
      String.prototype.toLowerCase = () => "div";
      Function.prototype.call = () => "div";
      return document.createElement("IFRAME");
    },
    () => {
      customElements.define("a-frame", class extends HTMLIFrameElement {}, { extends: "iframe" });
      return document.createElement("iframe", { is: "a-frame" });
    },
  ];
  const made = ways.flatMap((way) => {
    try {
      const element = way();
      element.src = element.data = `${collector}/nested`;
      document.body.append(element);
      return [element.localName];
    } catch {
      return [];
    }
  });
  return made.length ? `open: ${made}` : "closed";
};
