"""The compiler: a plan becomes packages, by stated rules and without a model."""
