/// <reference types="vitest/config" />
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** What the master fills in where it serves the page. */
const base: Plugin = {
  name: "tenax-base",
  apply: "serve",
  transformIndexHtml: (html) => html.replace('<base href="./" />', '<base href="/ui/" />'),
};

/** The master that `tenax dev` passes requests on to. */
const master = process.env.TENAX_MASTER ?? "http://127.0.0.1:8080";

export default defineConfig(({ command }) => ({
  // Built, every address is relative to <base href>, which the master fills in: it works below any prefix.
  base: command === "build" ? "./" : "/ui/",
  plugins: [react(), tailwindcss(), base],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
  server: { proxy: { "/api": { target: master } } },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
}));
