const attack = () => undefined;

const Shown = () => {
  throw new Error("a mistake of the component");
};
