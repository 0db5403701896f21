"""``tenax verify-resume``: whether a script that was paused goes on as if it had not been."""
