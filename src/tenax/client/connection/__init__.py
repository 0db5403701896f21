"""How the client reaches a master: addresses, logins, HTTP."""
