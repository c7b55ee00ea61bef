import "@fontsource-variable/geist/wght.css";
import "@fontsource-variable/geist-mono/wght.css";
import "./app/tokens.css";
import "./app/base.css";

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app/App";
import { Session } from "./app/session";
import { ApiProblem } from "./transport/http";

const TRIES = 2;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // What the server refuses it refuses again; other failures may pass.
      retry: (failures, error) =>
        failures < TRIES && !(error instanceof ApiProblem && isRefusal(error.status)),
      staleTime: 5_000,
      // A server on this machine is reached without a network.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element with the id root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Session>
        <App />
      </Session>
    </QueryClientProvider>
  </StrictMode>,
);
