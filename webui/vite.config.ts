/// <reference types="vitest/config" />
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** What most pages have in common, and no page, dialog or menu of its own. */
const SHARED = /src\/(?:services|ui|keys|format|density|theme)(?!.*(?:Menu|Editor|Grid|Log|windows|Dialog\.tsx))/;
/** What tables of any length are made of. */
const LISTED = /src\/ui\/(?:Grid|heights|windows)|src\/actions\/(?:picked|selection|beside)/;

/** What the master fills in where it serves the page. */
const base: Plugin = {
  name: "tenax-base",
  apply: "serve",
  transformIndexHtml: (html) => html.replace('<base href="./" />', '<base href="/ui/" />'),
};

/**
 * What is asked for together is one file: a browser asks a master for six files at once, and each more of them is a way
 * there and back. First what every page needs; then what most of them share. The rest comes with its page.
 */
const groups = [
  { name: "page", tags: ["$initial" as const], priority: 2 },
  { name: "shared", minShareCount: 6, test: SHARED, includeDependenciesRecursively: false, priority: 1 },
  { name: "listed", test: LISTED, includeDependenciesRecursively: false },
];

/** The master that `tenax dev` passes requests on to. */
const master = process.env.TENAX_MASTER ?? "http://127.0.0.1:8080";

export default defineConfig(({ command }) => ({
  // Built, every address is relative to <base href>, which the master fills in: it works below any prefix.
  base: command === "build" ? "./" : "/ui/",
  plugins: [react(), tailwindcss(), base],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups } } },
  },
  server: { proxy: { "/api": { target: master } } },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
}));
