const attack = () => undefined;

const Shown = () => null;
