"""Changes to the files of a package: edits of text, rewritten data, fixes."""
