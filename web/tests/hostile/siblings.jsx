const attack = ({ collector }) => {
  const channel = new MessageChannel();
  let reached = "closed";
  channel.port1.onmessage = () => (reached = "open");
  for (let index = 0; index < parent.length; index += 1) {
    if (parent[index] === window) continue;
    parent[index].postMessage("", "*", index ? [] : [channel.port2]);
    try {
      parent[index].location = `${collector}/sibling`;
    } catch {
      // The next one.
    }
  }
  parent.postMessage({ type: "response", json: "1" }, "*");
  return new Promise((resolve) => setTimeout(() => resolve(reached), 100));
};
