import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// In development the page is served by vite, and everything else by a running `weft serve`.
const server = process.env.WEFT_SERVER ?? "http://127.0.0.1:8765";
const proxied = ["/api", "/docs", "/openapi.json", "/frame", "/healthz", "/readyz", "/metrics"];

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/weft/page",
    emptyOutDir: true,
    manifest: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  worker: { format: "es" },
  server: {
    host: "127.0.0.1",
    proxy: Object.fromEntries(proxied.map((path) => [path, { target: server, ws: path === "/api" }])),
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}", "tests/*.test.ts"],
  },
});
