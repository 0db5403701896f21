"""Authentication and authorization: passwords, credentials, and who may do what."""
