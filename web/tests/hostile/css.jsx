const attack = ({ collector }) => {
  const rules = [
    `@import url(${collector}/import.css);`,
    `@font-face { font-family: x; src: url(${collector}/font.woff2); } body { font-family: x; }`,
    `body { background: url(${collector}/background.png); cursor: url(${collector}/cursor.png), auto; }`,
  ];
  for (const rule of rules) {
    const style = document.createElement("style");
    style.textContent = rule;
    document.body.append(style);
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules.slice(1).join(" "));
  document.adoptedStyleSheets = [sheet];
  document.body.style.backgroundImage = `url(${collector}/inline.png)`;
  document.body.style.setProperty("list-style-image", `url(${collector}/list.png)`);
  new FontFace("y", `url(${collector}/face.woff2)`).load().catch(() => undefined);
  return "tried";
};
