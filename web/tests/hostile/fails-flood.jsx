const attack = () =>
  new Promise(() => {
    // The port is in no variable of a component, but is `this` of the next message.
    const post = MessagePort.prototype.postMessage;
    MessagePort.prototype.postMessage = function () {
      for (let count = 0; count < 100_000; count += 1) Reflect.apply(post, this, [{ type: "size", height: count }]);
    };
  });
