const attack = async () => {
  setTimeout("window.wasRun = true", 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  return window.wasRun ? "open" : "closed";
};
