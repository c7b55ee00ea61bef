const attack = ({ collector }) =>
  new Promise((resolve, reject) => {
    const source = new EventSource(`${collector}/events`);
    source.onopen = () => resolve("open");
    source.onerror = () => reject(new Error("blocked"));
  });
