"""Users, groups, logins, access tokens and settings."""
