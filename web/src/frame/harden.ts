// Ways out of the frame that a content-security policy does not close. Each of them is taken away
// before a component runs, and cannot be had from another document: the policy forbids frames,
// markup from text (trusted types) and new windows.

const { apply } = Reflect;

/** Elements that open a connection, another document, or change the policy of this one. */
const REFUSED: Record<string, true> = Object.assign(Object.create(null), {
  base: true,
  embed: true,
  fencedframe: true,
  frame: true,
  frameset: true,
  iframe: true,
  link: true,
  meta: true,
  object: true,
  portal: true,
  script: true,
});

/** Globals that speak to others past the policy: WebRTC, and what makes elements in other ways. */
const GLOBALS = ["RTCPeerConnection", "webkitRTCPeerConnection", "XSLTProcessor"];

const METHODS: [string, string[]][] = [
  ["CustomElementRegistry", ["define"]],
  ["DOMImplementation", ["createDocument"]],
  ["Document", ["parseHTML", "parseHTMLUnsafe", "execCommand", "write", "writeln"]],
  ["Element", ["setHTML", "setHTMLUnsafe"]],
  ["ShadowRoot", ["setHTML", "setHTMLUnsafe"]],
  // They move the history of the whole tab.
  ["History", ["back", "forward", "go"]],
];

export function removeWaysOut(): void {
  const found = window as unknown as Record<string, { prototype: object } | undefined>;
  for (const name of GLOBALS) delete found[name];
  for (const [name, methods] of METHODS) {
    const type = found[name];
    // Some of them are static as well.
    for (const place of type ? [type, type.prototype] : []) {
      for (const method of methods) Reflect.deleteProperty(place, method);
    }
  }
  refuseElements("createElement");
  refuseElements("createElementNS");
}

function refuseElements(method: "createElement" | "createElementNS"): void {
  const create = Document.prototype[method] as (...given: unknown[]) => Element;
  const nameOf = Object.getOwnPropertyDescriptor(Element.prototype, "localName")!.get!;
  const guarded = function (this: Document, ...given: unknown[]) {
    // The element says what it is: a name may say different things when it is read twice. No method
    // of an object is called, since a component can replace those.
    const element = apply(create, this, given);
    if ((apply(nameOf, element, []) as string) in REFUSED) {
      throw new Error(`a component may not make this element: ${apply(nameOf, element, [])}`);
    }
    return element;
  };
  Object.defineProperty(Document.prototype, method, { value: guarded });
}
