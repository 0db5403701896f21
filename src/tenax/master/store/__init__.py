"""All SQL, a folder per noun; nothing else in Tenax speaks SQL."""
