const attack = () => {
  location.reload();
  return "tried";
};
