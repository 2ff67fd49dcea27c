"""Tables in files: read, written, never left half written."""
