const attack = ({ collector }) =>
  new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve("open");
    image.onerror = () => reject(new Error("blocked"));
    image.src = `${collector}/image`;
    const element = document.createElement("img");
    element.srcset = `${collector}/srcset 2x`;
    document.body.append(element);
  });
