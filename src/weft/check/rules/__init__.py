"""The rules, one function for each code, and what they share."""
