const attack = async ({ collector }) => `open: ${(await fetch(`${collector}/fetch`, { mode: "no-cors" })).type}`;
