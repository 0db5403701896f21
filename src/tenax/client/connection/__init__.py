"""How the client reaches a master: addresses, logins, HTTP; and how answers become values and lists of them."""
