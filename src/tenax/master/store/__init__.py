"""All SQL, one file per noun; nothing else in Tenax speaks SQL."""
