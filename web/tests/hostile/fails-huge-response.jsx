const attack = (payload, { onResponse }) => {
  onResponse("x".repeat(2_000_000));
  return "tried";
};
