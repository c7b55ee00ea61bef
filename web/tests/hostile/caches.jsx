const attack = async () => `open: ${await caches.keys()}`;
