/** A line of output with its colours. */

import { pieces } from "./escapes";

export function Coloured({ line }: { line: string }) {
  let place = 0;
  return pieces(line).map((piece) => {
    place += piece.text.length;
    return (
      <span key={place} className={piece.className}>
        {piece.text}
      </span>
    );
  });
}
