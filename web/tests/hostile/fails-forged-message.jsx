const attack = () =>
  new Promise(() => {
    const post = MessagePort.prototype.postMessage;
    MessagePort.prototype.postMessage = function () {
      Reflect.apply(post, this, [{ type: "run", command: "cancel" }]);
    };
  });
