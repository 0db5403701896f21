import { type RefObject, useEffect, useState } from "react";

/** Whether it is in view, or almost: what is not is not mounted. */
export function useInView(place: RefObject<HTMLElement | null>): boolean {
  const [inView, setInView] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const watcher = new IntersectionObserver(
      (entries) => setInView(entries.at(-1)?.isIntersecting ?? false),
      // Margins hold only for what scrolls itself.
      { root: document.getElementById("main"), rootMargin: "80px" },
    );
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, [place]);
  return inView;
}
