"""What Sharewarden does: each use case gets its ports as arguments."""
