const attack = ({ collector }) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`${collector.replace("http", "ws")}/socket`);
    socket.onopen = () => resolve("open");
    socket.onerror = () => reject(new Error("blocked"));
  });
