"""Reading metrics and output back: charts, searches, streams."""
