const attack = async () => {
  const ways = [
    () => navigator.mediaDevices.getUserMedia({ audio: true, video: true }),
    () => navigator.clipboard.readText(),
    () => navigator.clipboard.writeText("secret"),
    () => new Promise((resolve, reject) => navigator.geolocation.getCurrentPosition(resolve, reject)),
    () => document.documentElement.requestFullscreen(),
    () => document.body.requestPointerLock(),
    () => document.requestStorageAccess(),
    () => Notification.requestPermission().then((answer) => answer === "granted" || Promise.reject(answer)),
  ];
  const found = await Promise.allSettled(ways.map(async (way) => way()));
  const open = found.flatMap((way, index) => (way.status === "fulfilled" ? [index] : []));
  return open.length ? `open: ${open}` : "closed";
};
