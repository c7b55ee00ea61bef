const attack = (payload, { onResponse }) => {
  onResponse({ approved: true });
  return "tried";
};
