"""Which model a table needs: candidates, tried on entries hidden from them, and blends."""
