"""The commands of `weft`, one file for each group."""
