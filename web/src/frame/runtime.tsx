// Runs inside the frame: takes a component from the page, compiles it, shows it.
// What runs here has no origin and no network; the policy of the document holds, not this code.

import React, { useEffect } from "react";
import type { ComponentType } from "react";
import { createRoot } from "react-dom/client";
import * as jsxRuntime from "react/jsx-runtime";
import { transform } from "sucrase";

import { removeWaysOut } from "./harden";
import * as chart from "./kit/chart";
import * as icons from "./kit/icons";
import "./kit/kit.css";
import * as ui from "./kit/ui";
import type { FromFrame, Theme, ToFrame } from "./messages";

type Exports = { default?: ComponentType<ComponentProps> };
type Run = (require: (name: string) => unknown, exports: Exports) => void;

/** What every component is given. */
interface ComponentProps {
  payload: unknown;
  onResponse(value: unknown): void;
  onCancel(): void;
}

const MODULES = new Map<string, unknown>([
  ["react", React],
  ["react/jsx-runtime", jsxRuntime],
  ["@kit/ui", ui],
  ["@kit/chart", chart],
  ["@kit/icons", icons],
]);

function requireModule(name: string): unknown {
  if (MODULES.has(name)) return MODULES.get(name);
  throw new Error(`it imports ${name}, which a component may not`);
}

function start(port: MessagePort): void {
  const send = (message: FromFrame) => port.postMessage(message);
  const fail = (error: unknown, line?: number) => {
    const message = error instanceof Error ? error.message : String(error);
    send({ type: "error", message: line ? `${message} (line ${line})` : message });
  };
  window.addEventListener("error", (event) => fail(event.error ?? event.message, event.lineno));
  window.addEventListener("unhandledrejection", (event) => fail(event.reason));
  port.onmessage = (event) => {
    const message = event.data as ToFrame;
    if (message.type === "ping") send({ type: "pong" });
    else setTheme(message.theme);
    if (message.type !== "start") return;
    try {
      load(message.source, (Component) => show(Component, message.payload, send, fail), fail);
    } catch (error) {
      fail(error);
    }
  };
}

function setTheme(theme: Theme): void {
  if (theme) document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
}

// Text becomes a script only here: the name of the policy is taken, so there is no second one.
const scripts = (window as TrustedWindow).trustedTypes?.createPolicy("weft-frame", {
  createScriptURL: (address) => address,
});

interface TrustedWindow extends Window {
  trustedTypes?: {
    createPolicy(
      name: string,
      rules: { createScriptURL(address: string): string },
    ): { createScriptURL(address: string): string };
  };
}

/** Compile and run a source; `eval` is forbidden, so it runs as a script of its own. */
function load(
  source: string,
  onLoad: (Component: ComponentType<ComponentProps>) => void,
  onFail: (error: unknown) => void,
): void {
  const { code } = transform(source, {
    transforms: ["jsx", "imports"],
    jsxRuntime: "automatic",
    production: true,
  });
  const exports: Exports = {};
  Object.defineProperty(window, "weftComponent", {
    value: (run: Run) => {
      run(requireModule, exports);
      if (!exports.default) throw new Error("it has no default export");
      onLoad(exports.default);
    },
  });
  const script = document.createElement("script");
  // On the line of the source's first one, so that the lines of errors are those of the source.
  const address = URL.createObjectURL(new Blob([`weftComponent((require, exports) => {${code}\n});`]));
  script.src = scripts?.createScriptURL(address) ?? address;
  script.addEventListener("error", () => onFail("it could not be compiled"));
  removeWaysOut();
  document.head.append(script);
}

function show(
  Component: ComponentType<ComponentProps>,
  payload: unknown,
  send: (message: FromFrame) => void,
  fail: (error: unknown) => void,
): void {
  const root = document.getElementById("root")!;
  const measure = () => send({ type: "size", height: root.getBoundingClientRect().height });
  const props: ComponentProps = {
    payload,
    onResponse: (value) => send({ type: "response", json: JSON.stringify(value) ?? "" }),
    onCancel: () => send({ type: "cancel" }),
  };

  function Shown() {
    useEffect(() => {
      if (!root.hasChildNodes()) return fail("it shows nothing");
      new ResizeObserver(measure).observe(root);
      measure();
      send({ type: "ready" });
    }, []);
    return <Component {...props} />;
  }

  createRoot(root, { onUncaughtError: (error) => fail(error) }).render(<Shown />);
}

window.addEventListener("message", function take(event) {
  const port = event.ports[0];
  if (event.source !== window.parent || !port) return;
  window.removeEventListener("message", take);
  start(port);
});
