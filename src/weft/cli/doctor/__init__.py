"""What `weft doctor` looks at."""
