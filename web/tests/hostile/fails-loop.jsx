const attack = () => {
  for (;;);
};
