const attack = async ({ stun }) => {
  const Connection = window.RTCPeerConnection ?? window.webkitRTCPeerConnection;
  const connection = new Connection({ iceServers: [{ urls: stun }] });
  connection.createDataChannel("x");
  await connection.setLocalDescription(await connection.createOffer());
  await new Promise((resolve) => setTimeout(resolve, 500));
  return "open";
};
