const attack = () =>
  new Promise(() => {
    setTimeout(() => {
      throw new Error("a mistake of the component");
    });
  });
