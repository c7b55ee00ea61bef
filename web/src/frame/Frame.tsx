import { useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";

import { Bones } from "../parts";
import styles from "./Frame.module.css";
import { FrameLink, TICK_MS } from "./link";
import type { Theme } from "./messages";

export interface FrameProps {
  /** The JSX of a component, from a package. It runs in the frame only. */
  source: string;
  payload: unknown;
  /** What the frame is for, for screen readers. */
  title: string;
  onResponse(value: unknown): void;
  onCancel(): void;
  /** The component cannot be used; the frame is gone. */
  onFail(reason: string): void;
}

/** A component of a package, kept from the page, from cookies and from every network. */
export function Frame(props: FrameProps) {
  const { source, payload } = props;
  const key = useMemo(() => JSON.stringify([source, payload]), [source, payload]);
  return <OpenFrame key={key} {...props} />;
}

function OpenFrame({ source, payload, title, onResponse, onCancel, onFail }: FrameProps) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [state, setState] = useState<"starting" | "ready" | "failed">("starting");
  const [height, setHeight] = useState(0);

  const respond = useEffectEvent(onResponse);
  const cancel = useEffectEvent(onCancel);
  const fail = useEffectEvent((reason: string) => {
    setState("failed");
    onFail(reason);
  });
  const begin = useEffectEvent((link: FrameLink) => link.load({ type: "start", source, payload, theme: theme() }));

  // Before the frame can have loaded: its first document is the only one that counts.
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const channel = new MessageChannel();
    const link = new FrameLink({
      post: (message) => channel.port1.postMessage(message),
      isPersonActive: () => navigator.userActivation?.isActive ?? true,
      onSize: setHeight,
      onReady: () => setState("ready"),
      onResponse: respond,
      onCancel: cancel,
      onFail: fail,
    });
    channel.port1.onmessage = (event) => link.receive(event.data);
    const onLoad = () => {
      // The frame has no origin that could be named; the page's policy lets no other document in.
      if (element.contentWindow && !isOpen) element.contentWindow.postMessage("", "*", [channel.port2]);
      isOpen = true;
      begin(link);
    };
    let isOpen = false;
    element.addEventListener("load", onLoad);
    const timer = setInterval(() => link.tick(), TICK_MS);
    const observer = new MutationObserver(() => channel.port1.postMessage({ type: "theme", theme: theme() }));
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      link.close();
      channel.port1.close();
      clearInterval(timer);
      observer.disconnect();
      element.removeEventListener("load", onLoad);
    };
  }, []);

  if (state === "failed") return null;
  return (
    <div className={styles.frame}>
      {state === "starting" && <Bones lines={3} />}
      <iframe
        ref={frame}
        src="/frame"
        sandbox="allow-scripts allow-forms"
        title={title}
        className={state === "ready" ? undefined : styles.hidden}
        style={{ height }}
      />
    </div>
  );
}

function theme(): Theme {
  return (document.documentElement.dataset["theme"] ?? "") as Theme;
}
