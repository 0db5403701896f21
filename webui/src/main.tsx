import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { client, router } from "./router";
import "./styles.css";
// Every page follows the theme of the system, also those without a menu for it.
import "./theme";

const place = document.getElementById("root");
if (!place) throw new Error("index.html has no #root");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
