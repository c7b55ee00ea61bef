const attack = async ({ server }) => `open: ${await (await fetch(`${server}/api/me`, { credentials: "include" })).text()}`;
