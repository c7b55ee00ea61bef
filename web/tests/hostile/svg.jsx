const attack = ({ collector }) => {
  const make = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
  const svg = make("svg");
  for (const name of ["image", "use", "feImage", "a"]) {
    const part = make(name);
    part.setAttribute("href", `${collector}/${name}.svg#x`);
    svg.append(part);
  }
  document.body.append(svg);
  return "tried";
};
