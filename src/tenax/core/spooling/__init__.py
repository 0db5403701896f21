"""The files of a spool as a task writes them: lines, or segments that are mapped."""
