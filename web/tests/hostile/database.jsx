const attack = () =>
  new Promise((resolve, reject) => {
    const request = indexedDB.open("anything");
    request.onsuccess = () => resolve("open");
    request.onerror = () => reject(request.error);
  });
