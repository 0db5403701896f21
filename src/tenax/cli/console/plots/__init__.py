"""Learning curves as pictures: in a terminal, as SVG, as PNG. Values in, text or bytes out; standard library only."""
