const attack = ({ collector }) => {
  const link = document.createElement("a");
  link.href = `${collector}/blank`;
  link.target = "_blank";
  document.body.append(link);
  link.click();
  return window.open(`${collector}/popup`) ? "open" : "closed";
};
