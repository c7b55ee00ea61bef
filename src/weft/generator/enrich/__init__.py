"""What a language model may add to a package, and the checks that decide whether it stays."""
