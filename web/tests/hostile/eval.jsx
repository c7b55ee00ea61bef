const attack = () => `open: ${eval("1 + 1")}`;
