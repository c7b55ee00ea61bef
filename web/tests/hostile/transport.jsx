const attack = async ({ collector }) => {
  await new WebTransport(`${collector.replace("http:", "https:")}/transport`).ready;
  return "open";
};
