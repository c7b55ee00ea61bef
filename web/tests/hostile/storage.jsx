const attack = () => {
  const stores = ["localStorage", "sessionStorage"].filter((name) => {
    try {
      return window[name];
    } catch {
      return false;
    }
  });
  return stores.length ? `open: ${stores}` : "closed";
};
