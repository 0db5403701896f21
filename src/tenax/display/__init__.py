"""What may be shown of what others wrote. Standard library only, Python 3.9: tasks import it too."""
