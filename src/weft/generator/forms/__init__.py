"""Forms and skeletons: plans without a language model, and their scenarios."""
