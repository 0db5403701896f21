"""The search methods, a file each; `registry` names them."""
