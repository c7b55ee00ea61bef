const attack = ({ collector }) =>
  new Promise((resolve, reject) => {
    const code = `fetch("${collector}/worker"); postMessage(1)`;
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const worker = new Worker(address);
    worker.onmessage = () => resolve("open");
    worker.onerror = () => reject(new Error("blocked"));
    new SharedWorker(address);
    navigator.serviceWorker?.register("/theme.js").then(() => resolve("open"), reject);
  });
