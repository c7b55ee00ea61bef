const attack = () => {
  if (document.referrer || location.search || location.hash) return `open: ${document.referrer}${location.href}`;
  return `open: ${window.parent.location.href}`;
};
