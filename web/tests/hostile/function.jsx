const attack = () => `open: ${Function("return 1 + 1")()}${(() => undefined).constructor("return 1")()}`;
