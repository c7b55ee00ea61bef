const attack = ({ collector }) => {
  const video = document.createElement("video");
  video.poster = `${collector}/poster`;
  video.src = `${collector}/video`;
  document.body.append(video);
  new Audio(`${collector}/audio`).play().catch(() => undefined);
  return "tried";
};
