"""What a backup before a migration finds in its environment: a contract between masters and programs of operators."""

#: The database; holds the password.
DATABASE_URL = "TENAX_DATABASE_URL"
#: The name of the first of the migrations that are about to be applied.
FIRST_MIGRATION = "TENAX_FIRST_MIGRATION"
