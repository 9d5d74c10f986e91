"""What lies behind a failure: where it shows, what it looks like, what sets it apart."""
